import io
import json
import logging
from collections.abc import Iterator

import pytest

from matoolkit.telemetry import configure_logging

log = logging.getLogger("matoolkit.scheduler")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger("matoolkit")
    before = root.handlers[:], root.propagate, root.level
    yield
    root.handlers[:], root.propagate, root.level = before


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
