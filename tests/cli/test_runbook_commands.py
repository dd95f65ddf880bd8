"""`matoolkit runbook`, as people and pipelines use it."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from matoolkit.cli.program import run

RUNBOOKS = Path(__file__).parents[2] / "runbooks"
GOOD = str(RUNBOOKS / "demo.yaml")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """Spoil the demo in three places."""
    text = Path(GOOD).read_text(encoding="utf-8")
    text = text.replace("retry:", "retrys:").replace("T-1m", "T-1").replace("{{nickname}}", "{{nickname2}}")
    path = tmp_path / "broken.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.fixture
def warned(tmp_path: Path) -> str:
    path = tmp_path / "warned.yaml"
    path.write_text(Path(GOOD).read_text(encoding="utf-8").replace("{{nickname}}", "{{nickname2}}"), encoding="utf-8")
    return str(path)


def test_good_runbooks_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "lint", *map(str, sorted(RUNBOOKS.glob("*.yaml")))]) == 0
    assert capsys.readouterr() == ("", "0 errors, 0 warnings in 4 files\n")


def test_the_samples_lint_without_a_warning_even_strictly() -> None:
    assert run(["runbook", "lint", "--strict", *map(str, sorted(RUNBOOKS.glob("*.yaml")))]) == 0


def test_a_finding_is_a_line_with_position_the_source_with_a_caret_and_a_hint(
    broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runbook", "lint", broken]) == 1
    out, err = capsys.readouterr()
    assert out.split("\n\n")[0].splitlines() == [
        f"{broken}:18:1: error: unknown key 'retrys' [RB101]",
        "    18 | retrys:",
        "       | ^^^^^^",
        "       hint: did you mean 'retry'?",
    ]
    assert err == "2 errors, 1 warning in 1 file\n"


def test_the_caret_stands_under_the_place_whatever_stands_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wide.yaml"
    path.write_text('{x-日本: "漢字", nope: 1}', encoding="utf-8")
    run(["runbook", "lint", str(path)])
    lines = capsys.readouterr().out.splitlines()
    caret = next(line for line in lines if "^^^^" in line)
    # Each of the four wide characters takes two columns on a terminal.
    assert caret.index("^") == "     1 | ".__len__() + '{x-日本: "漢字", '.__len__() + 4


def test_warnings_do_not_fail_unless_asked_to(warned: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "lint", warned]) == 0
    assert ": warning: " in capsys.readouterr().out
    assert run(["runbook", "lint", "--strict", warned]) == 1
    assert ": error: " in capsys.readouterr().out


def test_r11_an_unknown_function_is_an_error_when_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unknown.yaml"
    path.write_text(
        Path(GOOD).read_text(encoding="utf-8").replace("New-ExchangeMailUser", "New-Mailbox"), encoding="utf-8"
    )
    assert run(["runbook", "lint", str(path)]) == 0
    assert "warning: no worker is known to have a function 'New-Mailbox'" in capsys.readouterr().out
    assert run(["runbook", "lint", "--strict", str(path)]) == 1
    assert "error: no worker is known to have a function 'New-Mailbox'" in capsys.readouterr().out


def test_json_is_only_json(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "lint", "-o", "json", GOOD, broken]) == 1
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["errors"], document["warnings"], err) == (2, 1, "")
    assert document["findings"][0] == {
        "file": broken,
        "line": 18,
        "column": 1,
        "severity": "error",
        "code": "RB101",
        "message": "unknown key 'retrys'",
        "hint": "did you mean 'retry'?",
        "path": ["retrys"],
    }
    run(["runbook", "lint", "--json", GOOD, broken])
    assert json.loads(capsys.readouterr().out) == document


def test_github_gets_workflow_commands(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["runbook", "lint", "-o", "github", broken])
    assert capsys.readouterr().out.splitlines()[0] == (
        f"::error file={broken},line=18,col=1,title=RB101::unknown key 'retrys' (did you mean 'retry'?)"
    )


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"name: [")))
    assert run(["runbook", "lint", "-"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:1:8: error: ")


@pytest.mark.parametrize(("name", "why"), [("nope.yaml", "no such file"), (".", "is a directory"), ("a\0b", "null")])
def test_a_file_that_cannot_be_read_is_said_and_the_others_are_still_checked(
    name: str, why: str, broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runbook", "lint", f"{tmp_path}/{name}", broken]) == 3
    out, err = capsys.readouterr()
    assert "RB101" in out
    assert why in err
    assert "IN404" in err


SECRETS = [
    "data_source:\n  connection: Server=x;Password=hunter2\n",
    "data_source:\n  conn: postgresql://me:hunter2@db/x\n",
    "name: postgresql://me:hunter2@db/x\n",
    "data_source:\n  batch_time_zone: Server=x;Pwd=hunter2\n",
    "phases:\n- steps:\n  - params: {nope: [Password: hunter2]}\n",
    "phases:\n- steps:\n  - {params: {Password: hunter2}, nope: 1}\n",
    "phases:\n- steps:\n  - params:\n      Password: hunter2 # x: [\n      Password: hunter2\n",
    "a:\n  Password: hunter2: x\n",
    'a:\n  Password: "hunter2\n',
    "a:\n  AdminPassword: *hunter2\n",
    "a:\n  ClientSecret: !hunter2 x\n",
    "a:\n  ApiKey: hunter2: x\n",
    "nope: 1 # password: hunter2\n",
    "phases:\n- steps:\n  - {name: a, worker_id: w, function: New-EntraUser, params: {Password: 'a{{{hunter2}}'}}\n",
    "phases:\n- steps:\n  - {name: a, worker_id: w, function: New-EntraUser, params: {Password: [hunter2]}}\n",
]


@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("output", ["text", "json", "github"])
def test_secrets_are_not_shown(text: str, output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "secret.yaml"
    path.write_text(text, encoding="utf-8")
    assert run(["runbook", "lint", "-o", output, str(path)]) == 1
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err


@pytest.mark.parametrize("line", ["Password: secret:initial", 'Password: "{{Pwd}}"', "connection: SOURCE_URL"])
def test_references_to_secrets_are_shown(line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reference.yaml"
    path.write_text(line, encoding="utf-8")
    run(["runbook", "lint", str(path)])
    assert line in capsys.readouterr().out


def test_a_document_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "steers.yaml"
    path.write_text('"\\e[31mred\\nline\\u202E": 1\n', encoding="utf-8")
    for output in ("text", "github"):
        run(["runbook", "lint", "-o", output, str(path)])
        out = capsys.readouterr().out
        assert "\x1b[31m" not in out
        assert "\u202e" not in out
        assert r"'\x1b[31mred\nline\u202e'" in out


def test_what_is_endless_is_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "endless.yaml"
    path.write_text(f"{'a' * 100_000}: 1\n", encoding="utf-8")
    run(["runbook", "lint", str(path)])
    assert len(capsys.readouterr().out) < 2_000


def test_an_unreadable_file_is_part_of_the_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "lint", "--json", "nope.yaml"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["unreadable"] == [
        {"file": "nope.yaml", "message": "cannot read nope.yaml: no such file or directory"}
    ]


def test_a_file_whose_name_is_not_text_can_be_linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = f"{tmp_path}/\udcff.yaml"
    Path(name).write_text("nope: 1", encoding="utf-8")
    assert run(["runbook", "lint", "--json", name]) == 1
    assert "\ufffd.yaml" in json.loads(capsys.readouterr().out)["findings"][0]["file"]


def test_a_full_disk_is_no_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("typer.echo", full)
    assert run(["runbook", "lint", "--json", GOOD]) == 6
    assert "no space left on device" in capsys.readouterr().err


def test_thousands_of_findings_are_counted_and_the_worst_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = "".join(f"    - {{name: s{n}, worker_id: w, function: Nope}}\n" for n in range(300))
    path = tmp_path / "many.yaml"
    path.write_text(f"name: a\nphases:\n  - name: p\n    offset: T-0\n    steps:\n{steps}bad: 1\n", encoding="utf-8")
    run(["runbook", "lint", str(path)])
    out, err = capsys.readouterr()
    assert "RB101" in out
    assert err == "2 errors, 300 warnings in 1 file; 200 of 302 shown, -o json shows all\n"


def test_the_schema_is_printed_in_both_dialects(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "schema"]) == 0
    assert "2020-12" in json.loads(capsys.readouterr().out)["$schema"]
    assert run(["runbook", "schema", "--draft", "draft-07"]) == 0
    assert "draft-07" in json.loads(capsys.readouterr().out)["$schema"]


def test_a_code_is_explained_and_an_unknown_one_gets_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "rb204"]) == 0
    assert capsys.readouterr().out.startswith("RB204 unknown rollback (error)")
    assert run(["explain", "RB2044"]) == 3
    assert "did you mean 'RB204'?" in capsys.readouterr().err


def test_functions_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "functions"]) == 0
    assert "Set-EntraUserEnabled         UserId* Enabled*" in capsys.readouterr().out


def test_wrong_usage_ends_with_2_and_the_nearest_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["runbook", "lnt"]) == 2
    assert "lint" in capsys.readouterr().err
    assert run(["runbook", "lint"]) == 2


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("matoolkit ")


def test_a_bug_is_a_sentence_and_a_traceback_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken_linter(_: bytes) -> None:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr("matoolkit.runbook.parse.lint_runbook", broken_linter)
    assert run(["runbook", "lint", GOOD]) == 6
    assert "Traceback" not in (err := capsys.readouterr().err)
    assert "MT500" in err
    monkeypatch.setenv("MATOOLKIT_DEBUG", "1")
    run(["runbook", "lint", GOOD])
    assert "Traceback" in capsys.readouterr().err


def test_the_installed_command_runs_without_a_terminal_and_without_utf8(broken: str) -> None:
    command = [str(Path(sys.executable).with_name("matoolkit")), "runbook", "lint", broken]
    environ = {"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 1
    assert "RB101" in done.stdout
    assert "\x1b" not in done.stdout
