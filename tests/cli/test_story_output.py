"""How the story of `matoolkit up` looks on a terminal, without colour, and in a file."""

import io
import logging
import re
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from rich.console import Console

from matoolkit.cli.story_output import StoryHandler, Teller
from matoolkit.hosting.all_in_one import Places
from matoolkit.hosting.story import Line, Mark
from matoolkit.worker.masking import Masking
from tests.databases import NOON

PLACES = Places("http://127.0.0.1:8080", "http://127.0.0.1:8765", "sqlite:///.matoolkit/matoolkit.db", None)
LONG = Line(NOON, Mark.FOUND, f"12 members: {', '.join(f'user{n}@contoso.com' for n in range(12))}", 1, NOON)
SHORT = Line(NOON + timedelta(seconds=61), Mark.MIGRATED, "ada@contoso.com", 1, NOON)


def told(*lines: Line, terminal: bool, width: int = 80, places: Places = PLACES) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=width, soft_wrap=True, highlight=False, markup=False)
    teller = Teller(console)
    teller.welcome(places)
    teller.tell(lines)
    return file.getvalue().splitlines()


def test_a_line_has_time_batch_offset_glyph_and_word() -> None:
    assert "12:01:01 #1 T+1m1s  ★ migrated  ada@contoso.com" in told(SHORT, terminal=False)


def test_what_came_from_a_source_steers_no_terminal() -> None:
    (line,) = (line for line in told(replace(SHORT, text="ada\x1b[2J\u202e"), terminal=False) if "ada" in line)
    assert line.endswith("ada\ufffd[2J\ufffd")


def test_a_terminal_without_glyphs_gets_letters() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Teller(Console(file=file)).tell([SHORT])
    file.seek(0)
    assert "# migrated" in file.read()


def test_a_terminal_of_80_columns_is_never_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in told(LONG, SHORT, terminal=True)]
    assert max(map(len, plain)) <= 80
    first = next(place for place, line in enumerate(plain) if "12 members" in line)
    assert plain[first + 1].startswith(" " * 32 + "user")


def test_a_file_gets_whole_lines_without_any_colour() -> None:
    lines = told(LONG, SHORT, terminal=False, width=80)
    assert any(line.endswith("user11@contoso.com") and "12 members" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert any("\x1b[1;32m" in line for line in told(SHORT, terminal=True))
    monkeypatch.setenv("NO_COLOR", "1")
    assert not any("32m" in line for line in told(SHORT, terminal=True))


def test_what_to_try_next_is_said_once_somebody_is_through() -> None:
    assert not any("Try next" in line for line in told(LONG, terminal=False))
    lines = told(SHORT, SHORT, terminal=False)
    assert sum("Try next" in line for line in lines) == 1
    assert not any("MATOOLKIT_API_URL" in line for line in lines)


def test_another_port_than_usual_is_said_where_the_command_needs_it() -> None:
    other = Places("http://127.0.0.1:8081", PLACES.tenant_url, PLACES.database, None)
    lines = told(SHORT, terminal=False, places=other)
    assert any("export MATOOLKIT_API_URL=http://127.0.0.1:8081" in line for line in lines)


def test_who_comes_back_is_told_where_everything_stands() -> None:
    before = Line(NOON, Mark.FOUND, "completed: 2 migrated", 1)
    lines = told(SHORT, terminal=False, places=Places("a", "b", "c", (before,)))
    assert any("goes on where it was" in line for line in lines)
    assert "12:00:00 #1         ● found     completed: 2 migrated" in lines
    assert sum("Try next" in line for line in lines) == 1


def test_warnings_are_shown_unless_they_are_about_a_batch_which_the_story_tells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = io.StringIO()
    log = logging.getLogger("matoolkit.test.story")
    monkeypatch.setattr(log, "propagate", False)
    monkeypatch.setattr(log, "handlers", [StoryHandler(Teller(Console(file=file)))])
    log.setLevel("INFO")
    log.warning("taking jobs pauses: %s", "busy")
    log.warning("it failed", extra={"batch": 1, "job": "step-1"})
    log.info("this scheduler works from now on")
    logging.getLogger("matoolkit.hosting.test").info("never seen here")
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("a tick failed")
    lines = file.getvalue().splitlines()
    assert "! warning   taking jobs pauses: busy" in lines[0]
    assert "! warning   a tick failed" in lines[1]
    assert "ValueError: why" in lines[-1]
    assert not any("it failed" in line or "works from now on" in line for line in lines)


def test_a_signal_can_be_told_of_while_a_line_is_printed() -> None:
    """The defect: Ctrl-C came while the main thread printed, which then waited for itself."""

    class Interrupted(io.StringIO):
        is_done = False

        def write(self, text: str) -> int:
            if not self.is_done:
                self.is_done = True
                teller.tell([replace(SHORT, text="SIGINT")])
            return super().write(text)

    file = Interrupted()
    teller = Teller(Console(file=file, width=200))
    printing = threading.Thread(target=teller.tell, args=([SHORT],), daemon=True)
    printing.start()
    printing.join(30)
    assert not printing.is_alive()
    assert "SIGINT" in file.getvalue()
    assert "ada@contoso.com" in file.getvalue()


def test_w8_a_secret_is_masked_in_the_story_as_it_is_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    file, log, masking = io.StringIO(), logging.getLogger("matoolkit.test.secret"), Masking()
    monkeypatch.setattr(log, "propagate", False)
    monkeypatch.setattr(log, "handlers", [StoryHandler(Teller(Console(file=file, width=200)))])
    masking.guard(log)
    masking.begin({"hunter2-hunter2"})
    try:
        raise ValueError("hunter2-hunter2 is wrong")
    except ValueError:
        log.exception("it raised with %s", "hunter2-hunter2")
    assert "it raised" in file.getvalue()
    assert "hunter2" not in file.getvalue()
