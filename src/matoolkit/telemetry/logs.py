"""The log: readable lines on a terminal, JSON lines otherwise.

A record is an event in words and the things it is about: `log.info("phase dispatched", extra={"batch": 42})`.
Only the names in `FIELDS` are fields, the same everywhere, so that a query over the logs finds them all.

Everything that is said goes the same way: other libraries' logs, Python's warnings, and errors that end a thread.
"""

import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

from matoolkit.errors import MatoolkitError
from matoolkit.telemetry.tracing import current_ids
from matoolkit.visible import visible, visible_json

# What our own lines tell already: when the database, the sign-in or the receiver of telemetry is away, these libraries
# say so at every try.
QUIET = ("sqlalchemy.pool", "psycopg", "psycopg.pool", "azure", "opentelemetry")
_UNCAUGHT = logging.getLogger("matoolkit.uncaught")

_json_handlers: list[logging.Handler] = []

FIELDS = ("runbook", "batch", "phase", "member", "step", "attempt", "job", "worker")

# What every line of this process is about, whichever library writes it.
_bound: dict[str, str] = {}


class TextFormatter(logging.Formatter):
    """A line for people: `12:31:07 INFO scheduler: phase dispatched  batch=42 phase=prepare`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, part of the system, event and fields; a traceback follows on its own lines."""
        about = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{_instant(record):%H:%M:%S} {record.levelname} {_part(record)}: {record.getMessage()}"
        lines = [visible(f"{line}  {about}" if about else line)]
        if record.exc_info:
            lines.append(visible(self.formatException(record.exc_info), keep="\n"))
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the same as the text line, with the instant in full, the fields of the process, and the trace."""
        entry: dict[str, Any] = {
            "time": _instant(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "part": _part(record),
            "event": record.getMessage(),
            **_bound,
            **_fields(record),
            **current_ids(),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return visible_json(orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode(errors="replace"))


def configure_logging(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Send the system's log to a stream (standard error by default), in the format the settings ask for."""
    stream = sys.stderr if stream is None else stream
    as_text = log_format == "text" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    send_logs(handler, level)
    _json_handlers[:] = [] if as_text else [handler]


def bind_fields(**fields: str) -> None:
    """Let every JSON line of this process have these fields, and no others that were bound before."""
    _bound.clear()
    _bound.update(fields)


def log_the_end(error: MatoolkitError) -> bool:
    """Say in the log why the process ends, if every line has to be JSON; says whether it was said."""
    if not _json_handlers:
        return False
    hint = f"; {error.hint}" if error.hint else ""
    _UNCAUGHT.critical("the process ends: %s%s (%s)", error.message, hint, error.code)
    return True


def speaks_json() -> bool:
    """Tell whether every line of the log has to be JSON."""
    return bool(_json_handlers)


def speak_plainly() -> None:
    """Forget that every line has to be JSON: most commands have no log, and print what goes wrong."""
    _json_handlers.clear()
    _quieten()


def send_logs(handler: logging.Handler, level: str) -> None:
    """Send what the system says to a handler, and what others find wrong: libraries, Python, its threads."""
    root = logging.getLogger()
    for old in logging.getLogger("matoolkit").handlers:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name, least in (("matoolkit", level), ("uvicorn", "WARNING")):
        log = logging.getLogger(name)
        log.handlers[:] = [handler]
        log.propagate = False
        log.setLevel(least)
    _quieten()
    logging.captureWarnings(capture=True)
    threading.excepthook = _thread_ended
    sys.unraisablehook = _not_raised


def _quieten() -> None:
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        name = ended.thread.name if ended.thread else "a thread"
        _UNCAUGHT.error("%s ended with an error", name, exc_info=ended.exc_value)


def _not_raised(found: "sys.UnraisableHookArgs") -> None:
    _UNCAUGHT.error("%s: %r", found.err_msg or "an error could not be raised", found.object, exc_info=found.exc_value)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    given = ((name, getattr(record, name, None)) for name in FIELDS)
    return {name: value for name, value in given if value is not None}


def _instant(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix("matoolkit.")
