"""`matoolkit worker`: what it can do, and what it needs to know."""

from pathlib import Path

import orjson
import pytest

from matoolkit.cli.program import run


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("WORKER_ID", raising=False)
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", f"sqlite:///{tmp_path}/state.db")


def test_the_functions_are_listed_with_parameters_and_docs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "functions"]) == 0
    listed = capsys.readouterr().out
    assert "\nNew-EntraUser  " in listed
    assert f"  {'UserPrincipalName*':<32} string\n" in listed
    assert f"  {'Password':<32} string, secret\n" in listed


def test_the_functions_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "functions", "--json"]) == 0
    by_name = {one["name"]: one for one in orjson.loads(capsys.readouterr().out)}
    assert {"name": "Password", "type": "string", "mandatory": False, "secret": True} in by_name["New-EntraUser"][
        "parameters"
    ]


def test_w5_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text("1 +", encoding="utf-8")
    monkeypatch.setenv("CUSTOM_MODULES_PATH", str(tmp_path))
    assert run(["worker", "functions"]) == 1
    printed = capsys.readouterr()
    assert "New-EntraUser" in printed.out
    assert f"{tmp_path}/broken.py: SyntaxError" in printed.err
    assert "1 file cannot be used" in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["worker"], "give --id, or set WORKER_ID"),
        (["worker", "--id", "no spaces"], "WORKER_ID should have letters, digits, - and _ only"),
        (["worker", "--id", "w"], "matoolkit db upgrade"),
        (["worker", "run", "--id", "w"], "matoolkit db upgrade"),
        (["worker", "run"], "give --id, or set WORKER_ID"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) != 0
    assert said in capsys.readouterr().err
