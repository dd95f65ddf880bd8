"""How the command line behaves: exit codes, confirmations, forms, terminals, and servers that do not answer."""

import csv
import io
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from matoolkit.cli.commands import batch as batch_commands
from matoolkit.cli.program import run
from matoolkit.doors.bodies import CSV_BYTES
from tests.cli.conftest import Cli
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


COMMAND = [sys.executable, "-c", "from matoolkit.cli.main import main; main()"]


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command believe that it writes to a terminal of 80 columns."""
    for name, value in {"TTY_COMPATIBLE": "1", "COLUMNS": "80", "LINES": "40", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)


REFUSALS: list[tuple[str, int, str]] = [
    ("batch get 99", 3, "AD404: matoolkit explain AD404"),
    ("runbook get wavs", 3, "did you mean 'wave'?"),
    ("batch gte 1", 2, "Did you mean 'get'?"),
    ("batch get one", 2, "Invalid value for 'ID'"),
    ("batch list --status asleep", 2, "asleep"),
    ("runbook delete wave", 2, "VERSION or --version"),
    ("runbook delete wave 1 --version 2", 2, "VERSION or --version"),
    ("runbook delete wave 7 --yes", 3, "PB405"),
    ("runbook delete wave 1", 2, "give --yes"),
    ("batch create wave nowhere.csv", 3, "cannot read nowhere.csv: no such file or directory"),
    ("hold show 99", 3, "AD404"),
    ("batch list --api-url ftp://x", 2, "--api-url should be an address"),
    ("batch list --api-url http://127.0.0.1:1", 6, "connection refused"),
    ("runbook get ..", 3, "PB404"),
    ("runbook get a/b", 3, "404"),
]


def test_a_refusal_is_an_exit_code_and_a_sentence_on_standard_error(cli: Cli) -> None:
    cli.published()
    for arguments, code, said in REFUSALS:
        assert cli(*arguments.split(), code=code) == ""
        assert said in cli.err, arguments


def test_a_runbook_with_errors_is_refused_with_its_lines(cli: Cli) -> None:
    path = cli.file("bad.yaml", "name: x\nphasez: []\n")
    cli("runbook", "publish", path, code=1)
    assert f"{path}:2:1: error: unknown key 'phasez' [RB101]" in cli.err
    assert "     2 | phasez: []" in cli.err
    assert "RB400: matoolkit explain" in cli.err


def test_a_runbook_comes_from_standard_input_and_an_unchanged_one_is_left_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.published()
    content = Path(cli.folder / "wave.yaml").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert cli.json("runbook", "publish", "-", "--name", "wave")["isNew"] is False
    cli("runbook", "publish", str(cli.folder / "wave.yaml"), "--again", "--overdue", "ignore", "--rerun-init")
    assert "published wave v2" in cli.err
    cli("runbook", "publish", str(cli.folder / "wave.yaml"), "--name", "other", code=2)
    assert "PB422" in cli.err


def test_a_file_that_is_too_large_is_refused_and_never_sent_in_part(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.published()
    assert batch_commands.MOST_BYTES == CSV_BYTES
    monkeypatch.setattr(batch_commands, "MOST_BYTES", 60)
    cli("batch", "create", "wave", cli.people(*(f"u{number}@x" for number in range(20))), code=2)
    assert "AP413" in cli.err
    assert cli.json("batch", "list") == []


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, []), ("n\n", 1, ["wave"]), ("", 1, ["wave"])])
def test_what_cannot_be_taken_back_is_asked_about(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, typed: str, code: int, left: list[str]
) -> None:
    cli.published()
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert cli("runbook", "delete", "wave", "--version", "1", code=code) == ""
    assert "put wave v1 out of use? [y/N]" in cli.err
    assert [row["name"] for row in cli.json("runbook", "list")] == left


def test_the_question_says_what_is_at_stake(cli: Cli, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x")
    monkeypatch.setattr("sys.stdin", Terminal("n\nn\n"))
    cli("batch", "cancel", batch, code=1)
    assert f"batch {batch} of wave, 2 members, 2 open phases: nothing is undone" in cli.err
    member = cli.json("batch", "members", batch)[0]
    cli("batch", "remove-member", batch, str(member["id"]), code=1)
    assert f"take ann@x out of batch {batch}?" in cli.err
    assert cli.json("batch", "get", batch)["members"] == {"active": 2}


def test_the_same_data_comes_in_every_form(cli: Cli) -> None:
    cli.published()
    batch = cli.created("=cmd|calc", "ann@x")
    listed = cli.json("batch", "members", batch)
    assert [member["memberKey"] for member in listed] == ["=cmd|calc", "ann@x"]
    lines = cli("batch", "members", batch, "-o", "jsonl").splitlines()
    assert [orjson.loads(line) for line in lines] == listed
    assert yaml.safe_load(cli("batch", "members", batch, "-o", "yaml")) == listed
    csv = cli("batch", "members", batch, "-o", "csv").splitlines()
    assert csv[0] == "id,key,state,completed,added,left,failed,reason,pilot"
    assert csv[1].split(",")[1] == "'=cmd|calc"
    table = cli("batch", "members", batch).splitlines()
    assert table[0].split() == ["ID", "KEY", "STATE", "COMPLETED", "ADDED", "LEFT", "FAILED", "REASON", "PILOT"]
    assert table[2].split()[1:3] == ["ann@x", "waiting"]
    assert "\x1b" not in cli.out
    assert yaml.safe_load(cli("batch", "get", batch, "-o", "yaml"))["runbookName"] == "wave"
    assert cli("batch", "get", batch, "-o", "csv").splitlines()[0].startswith("id,runbook,status")
    assert orjson.loads(cli("batch", "get", batch, "-o", "jsonl"))["failures"] == []


def test_pages_are_followed_and_what_was_left_out_is_said(cli: Cli) -> None:
    cli.published()
    batch = cli.created(*(f"u{number:04}@x" for number in range(1203)))
    assert len(cli.json("batch", "members", batch)) == 100
    assert cli.err == "the first 100 of 1,203; --all lists all\n"
    assert len(cli.json("batch", "members", batch, "--all")) == 1203
    assert cli.err == ""
    assert len(cli.json("batch", "members", batch, "--limit", "1100")) == 1100
    assert len(cli.json("batch", "members", batch, "--key", "U000")) == 10
    assert cli.err == "10 that match, 1,203 in all\n"
    cli("batch", "members", batch, "--key", "u1", "--limit", "5")
    assert cli.err == "the first 5 of 203 that match, 1,203 in all; --all lists all\n"
    cli("audit", "list", "--limit", "1")
    assert cli.err == "the first 1; --all lists all\n"


def test_a_table_fits_a_terminal_and_is_not_cut_when_piped(
    cli: Cli, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.published()
    key = f"{'a' * 150}@x"
    batch = cli.created(key)
    assert key in cli("batch", "members", batch)
    request.getfixturevalue("terminal")
    shown = cli("batch", "members", batch)
    assert all(len(line) <= 80 for line in _without_colours(shown).splitlines())
    assert "○ waiting" in shown
    assert "\x1b[36m" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[36m" not in cli("batch", "members", batch)


def test_a_watch_redraws_on_a_terminal_and_ends_with_its_batch(cli: Cli, stage: Stage, terminal: None) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x")

    def advance() -> None:
        run(["batch", "advance", batch, "--json"])
        cli.capsys.readouterr()
        stage.run()

    cli.clock.meanwhile = [advance] * 3
    cli("batch", "get", batch, "--watch", "--wait")
    shown = _without_colours(cli.out)
    assert "✔ completed" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_watch_that_is_piped_prints_what_changed(cli: Cli) -> None:
    cli.published()
    batch = cli.created("ann@x")

    def cancel() -> None:
        run(["batch", "cancel", batch, "--yes", "--json"])

    cli.clock.meanwhile = [lambda: None, cancel]
    cli("batch", "get", batch, "--watch", "--wait", code=1)
    lines = [orjson.loads(line) for line in cli.out.splitlines() if line.startswith('{"id"')]
    assert [line["status"] for line in lines] == ["detected", "cancelled"]


@pytest.mark.parametrize("where", ["terminal", "pipe"])
def test_lists_are_watched_until_interrupted(cli: Cli, request: pytest.FixtureRequest, where: str) -> None:
    cli.published()
    batch = cli.created("ann@x")
    if where == "terminal":
        request.getfixturevalue("terminal")

    def interrupt() -> None:
        raise KeyboardInterrupt

    for command in (
        "batch list",
        f"batch phases {batch}",
        f"batch failures {batch}",
        "runbook status wave",
        "hold list",
    ):
        cli.clock.meanwhile = [lambda: None, interrupt]
        cli(*command.split(), "--watch", code=130)


def test_waiting_shows_a_bar_on_a_terminal(cli: Cli, stage: Stage, terminal: None) -> None:
    cli.published()
    batch = cli.created("ann@x", "bob@x")
    cli.clock.meanwhile = [stage.run]
    cli("batch", "advance", batch, "--wait")
    cli.clock.meanwhile = [stage.handle, stage.run]
    cli("batch", "advance", batch, "--wait")
    assert "phase 'first'" in cli.err
    assert "0/4" in _without_colours(cli.err)


def test_names_and_numbers_are_completed_and_an_error_completes_nothing(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.published()
    batch = cli.created("ann@x")
    assert "wave" in _completed(cli, monkeypatch, "matoolkit runbook get w")
    assert batch in _completed(cli, monkeypatch, "matoolkit batch get ")
    assert "retry-init" in _completed(cli, monkeypatch, "matoolkit batch ret")
    monkeypatch.setenv("MATOOLKIT_API_URL", "http://127.0.0.1:1")
    assert _completed(cli, monkeypatch, "matoolkit batch get ").strip() == ""


def test_a_process_on_a_real_terminal_and_one_without(cli: Cli) -> None:
    cli.published()
    batch = cli.created("ann@x")
    command = [*COMMAND, "batch", "get", batch]
    piped = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert "\x1b" not in piped.stdout
    assert f"batch {batch} · wave" in piped.stdout
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environ) as process:
        os.close(theirs)
        shown = _read_to_the_end(ours)
        assert process.wait(30) == 0
    assert "\x1b[" in shown
    assert "○ detected" in shown


STEERING = "a\x1b[31mb\x07c\x9b2Jd@x"


def test_s11_a_pipe_gets_keys_as_they_are_and_a_terminal_sees_them_written_out(cli: Cli) -> None:
    cli.published()
    batch = cli.created(STEERING, "\x1b]0;owned\x07@x")
    keys = [STEERING, "\x1b]0;owned\x07@x"]
    listed = ["batch", "members", batch]
    for words in (listed, [*listed, "-o", "csv"], [*listed, "-o", "json"], ["batch", "export", batch]):
        shown = _on_a_terminal(*words)
        assert "owned" in shown
        assert {letter for letter in shown if not letter.isprintable()} <= {"\r", "\n"}, words
    for words in ([*listed, "-o", "csv"], ["batch", "export", batch]):
        rows = csv.DictReader(io.StringIO(_through_a_pipe(*words)))
        assert [row.get("key") or row["member_key"] for row in rows] == keys
    assert [item["memberKey"] for item in orjson.loads(_through_a_pipe(*listed, "-o", "json"))] == keys
    assert [item["memberKey"] for item in yaml.safe_load(_through_a_pipe(*listed, "-o", "yaml"))] == keys
    assert "\x9b" not in _through_a_pipe(*listed, "-o", "json")


def _on_a_terminal(*words: str) -> str:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "dumb"}  # no colours, so every escape is somebody else's
    with subprocess.Popen([*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environ):
        os.close(theirs)
        return _read_to_the_end(ours)


def _through_a_pipe(*words: str) -> str:
    return subprocess.run([*COMMAND, *words], capture_output=True, check=True).stdout.decode()


def _read_to_the_end(terminal: int) -> str:
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # the other side has closed it
            piece = b""
        if not piece:
            os.close(terminal)
            return b"".join(pieces).decode()
        pieces.append(piece)


def _completed(cli: Cli, monkeypatch: pytest.MonkeyPatch, words: str) -> str:
    monkeypatch.setenv("_MATOOLKIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    run([])
    monkeypatch.delenv("_MATOOLKIT_COMPLETE")
    out: Any = cli.capsys.readouterr()
    return str(out.out)


def _without_colours(text: str) -> str:
    import re

    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_times_are_local_on_request_and_always_have_their_zone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.published()
    batch = cli.created("ann@x")
    assert "UTC" in cli("batch", "members", batch)
    for wanted in (["--local"], []):
        monkeypatch.setenv("TZ", "Asia/Kolkata")
        time.tzset()
        shown = cli("batch", "members", batch, *wanted)
        assert "IST" in shown
        assert "UTC" not in shown
        assert cli.json("batch", "members", batch, *wanted)[0]["addedAt"].endswith("Z")
        monkeypatch.setenv("MATOOLKIT_TIMES", "local")
    monkeypatch.delenv("TZ")
    time.tzset()
    monkeypatch.setenv("MATOOLKIT_TIMES", "lokal")
    cli("batch", "list", code=2)
    assert "MATOOLKIT_TIMES should be 'utc' or 'local'" in cli.err


def test_a_key_is_never_cut(cli: Cli, terminal: None) -> None:
    cli.published()
    batch = cli.created(f"{'x' * 150}@contoso.com")
    shown = _without_colours(cli("batch", "members", batch))
    assert shown.count("x") == 150
    assert "…" not in shown
