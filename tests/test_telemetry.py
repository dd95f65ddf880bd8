import io
import json
import logging
import threading
import warnings

import pytest

from matoolkit.errors import StoreUnavailable
from matoolkit.telemetry import configure_logging, log_the_end

log = logging.getLogger("matoolkit.scheduler")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_readable_lines() -> None:
    stream = Terminal()
    configure_logging("INFO", "auto", stream)
    log.info("phase dispatched", extra={"batch": 42, "phase": "prepare"})
    assert stream.getvalue()[8:] == " INFO scheduler: phase dispatched  batch=42 phase=prepare\n"


def test_anything_else_gets_json_lines() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "auto", stream)
    log.warning("member %s removed", "a@b.c", extra={"batch": 42, "member": "a@b.c"})
    entry = json.loads(stream.getvalue())
    assert entry.pop("time").endswith("Z")
    assert entry == {
        "level": "WARNING",
        "part": "scheduler",
        "event": "member a@b.c removed",
        "batch": 42,
        "member": "a@b.c",
    }


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_traceback_is_kept(log_format: str) -> None:
    stream = io.StringIO()
    configure_logging("INFO", log_format, stream)
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("tick failed")
    assert "ValueError: broken" in stream.getvalue()


def test_less_than_the_level_is_not_logged() -> None:
    stream = io.StringIO()
    configure_logging("WARNING", "json", stream)
    log.info("nothing to see")
    assert not stream.getvalue()


def entries(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_what_others_say_is_json_too() -> None:
    """SQLAlchemy, azure-identity and Python itself wrote plain lines."""
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    logging.getLogger("some.library").error("it broke")
    logging.getLogger("some.library").info("it works")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("this is old", DeprecationWarning, stacklevel=1)
    ended = threading.Thread(target=lambda: 1 / 0, name="reader")
    ended.start()
    ended.join()
    library, warning, thread = entries(stream)
    assert (library["part"], library["event"]) == ("some.library", "it broke")
    assert "this is old" in warning["event"]
    assert (thread["level"], thread["event"]) == ("ERROR", "reader ended with an error")
    assert "ZeroDivisionError" in thread["exception"]


def test_an_error_that_nobody_can_catch_is_json_too() -> None:
    class Broken:
        def __del__(self) -> None:
            raise ValueError("too late")

    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    Broken()
    (entry,) = entries(stream)
    assert "ValueError: too late" in entry["exception"]


@pytest.mark.parametrize("library", ["sqlalchemy.pool", "azure.identity", "psycopg"])
def test_what_our_own_lines_tell_of_an_outage_is_not_told_again(library: str) -> None:
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    logging.getLogger(library).error("no connection")
    assert not stream.getvalue()


def test_why_a_process_ends_is_json_where_all_lines_are() -> None:
    stream = io.StringIO()
    assert not log_the_end(StoreUnavailable("no answer"))
    configure_logging("INFO", "text", stream)
    assert not log_the_end(StoreUnavailable("no answer"))
    configure_logging("INFO", "json", stream)
    assert log_the_end(StoreUnavailable("no answer"))
    (entry,) = entries(stream)
    assert entry["event"].startswith("the process ends: no answer; check that the database runs")
    assert entry["event"].endswith("(DB503)")


def test_the_last_one_who_asked_has_the_log() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("INFO", "json", first)
    configure_logging("INFO", "json", second)
    logging.getLogger("some.library").error("it broke")
    assert not first.getvalue()
    assert len(entries(second)) == 1


def test_s11_a_text_log_writes_control_characters_out_and_stays_on_its_line() -> None:
    stream = Terminal()
    configure_logging("INFO", "text", stream)
    try:
        raise ValueError("\x1b[2Jgone")
    except ValueError:
        log.exception("member %s", "a\x1b]0;owned\x07\n12:00:00 ERROR fake", extra={"member": "\x9b31mb\u202e"})
    first, *traceback = stream.getvalue().splitlines()
    assert first.endswith(r"member a\x1b]0;owned\x07\n12:00:00 ERROR fake  member=\x9b31mb\u202e")
    assert traceback[-1] == r"ValueError: \x1b[2Jgone"
    assert all(line.isprintable() for line in traceback)


def test_s11_a_json_log_is_printable_and_means_the_same() -> None:
    stream = io.StringIO()
    configure_logging("INFO", "json", stream)
    log.info("member %s", "a\x1b\x7f\x9b\u202e\U000e0001")
    assert stream.getvalue().removesuffix("\n").isprintable()
    assert json.loads(stream.getvalue())["event"] == "member a\x1b\x7f\x9b\u202e\U000e0001"
