"""`matoolkit config`: an option, else the environment, else the file, and everybody can see which (rule A3)."""

import json
import stat
from pathlib import Path

import pytest

from matoolkit.cli.program import run


def shown(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, tuple[str | None, str]]:
    capsys.readouterr()
    assert run(["config", "show", "--json", *options]) == 0
    return {one["key"]: (one["value"], one["source"]) for one in json.loads(capsys.readouterr().out)}


def test_a3_the_option_wins_over_the_environment_and_that_over_the_file(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown(capsys)["api-url"] == ("http://127.0.0.1:8080", "default")
    assert run(["config", "set", "api-url", "https://file.example/"]) == 0
    path = str(home / ".matoolkit" / "config.json")
    assert shown(capsys)["api-url"] == ("https://file.example", path)
    monkeypatch.setenv("MATOOLKIT_API_URL", "https://environment.example")
    assert shown(capsys)["api-url"] == ("https://environment.example", "MATOOLKIT_API_URL")
    given = shown(capsys, "--api-url", "https://option.example")
    assert given["api-url"] == ("https://option.example", "--api-url")
    assert given["tenant-id"] == (None, "not set")
    assert given["api-timeout"] == ("1m", "default")


def test_a_setting_is_written_for_its_owner_alone_and_taken_out_again(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "set", "tenant_id", "contoso"]) == 0
    assert run(["config", "set", "api-timeout", "90s"]) == 0
    path = home / ".matoolkit" / "config.json"
    assert json.loads(path.read_text(encoding="utf-8")) == {"tenant-id": "contoso", "api-timeout": "90s"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["config", "set", "tenant-id", ""]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {"api-timeout": "90s"}
    capsys.readouterr()
    assert run(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{path}\n"


def test_a_token_is_neither_kept_nor_shown(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["config", "set", "access-token", "hunter2"]) == 2
    said = capsys.readouterr()
    assert "MATOOLKIT_ACCESS_TOKEN" in said.err
    assert "hunter2" not in said.err
    assert not (home / ".matoolkit").exists()
    monkeypatch.setenv("MATOOLKIT_ACCESS_TOKEN", "hunter2")
    assert shown(capsys)["access-token"] == ("(set, not shown)", "MATOOLKIT_ACCESS_TOKEN")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["api-ulr", "https://x"], "did you mean 'api-url'?"),
        (["nonsense", "x"], "there are api-url, tenant-id"),
        (["api-url", "somewhere"], "MATOOLKIT_API_URL should be an address"),
        (["api-url", "https://name:word@x.example"], "without a name"),
        (["api-url", "http://x:99999999"], "should be an address"),
        (["api-timeout", "soon"], "MATOOLKIT_API_TIMEOUT is not a duration"),
    ],
)
def test_a_setting_that_cannot_be_used_is_not_written(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run(["config", "set", *arguments]) == 2
    assert told in capsys.readouterr().err
    assert not (home / ".matoolkit").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "should be a JSON object whose values are texts"),
        ('{"api-url": 5}', "should be a JSON object whose values are texts"),
        ('{"api-ulr": "x"}', "did you mean 'api-url'?"),
        ('{"access-token": "x"}', "is not a setting"),
        ('{"api-url": "x"}', "config.json should be an address"),
    ],
)
def test_a_file_that_cannot_be_used_is_said_to_be(
    home: Path, capsys: pytest.CaptureFixture[str], content: str, told: str
) -> None:
    (home / ".matoolkit").mkdir(parents=True)
    (home / ".matoolkit" / "config.json").write_text(content, encoding="utf-8")
    assert run(["batch", "list"]) == 2
    assert told in capsys.readouterr().err


def test_a_home_that_cannot_be_written_to_is_an_error(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.write_text("a file", encoding="utf-8")
    assert run(["config", "set", "api-url", "https://x.example"]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert run(["config", "show"]) == 0
