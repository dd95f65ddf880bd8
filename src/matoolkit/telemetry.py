"""How the system speaks of itself: readable lines on a terminal, JSON lines otherwise.

A record is an event in words and the things it is about: `log.info("phase dispatched", extra={"batch": 42})`.
Only the names in `FIELDS` are fields, the same everywhere, so that a query over the logs finds them all.
"""

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import orjson

FIELDS = ("runbook", "batch", "phase", "member", "step", "attempt", "job")


class TextFormatter(logging.Formatter):
    """A line for people: `12:31:07 INFO scheduler: phase dispatched  batch=42 phase=prepare`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, part of the system, event and fields; a traceback follows on its own lines."""
        about = " ".join(f"{name}={value}" for name, value in _fields(record).items())
        line = f"{_instant(record):%H:%M:%S} {record.levelname} {_part(record)}: {record.getMessage()}"
        lines = [f"{line}  {about}" if about else line]
        if record.exc_info:
            lines.append(self.formatException(record.exc_info))
        return "\n".join(lines)


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the same as the text line, with the instant in full."""
        entry: dict[str, Any] = {
            "time": _instant(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "part": _part(record),
            "event": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode(errors="replace")


def configure_logging(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Send the system's log to a stream (standard error by default), in the format the settings ask for."""
    stream = sys.stderr if stream is None else stream
    as_text = log_format == "text" or (log_format == "auto" and stream.isatty())
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TextFormatter() if as_text else JsonFormatter())
    send_logs(handler, level)


def send_logs(handler: logging.Handler, level: str) -> None:
    """Send what the system says to a handler, and what its web server finds wrong."""
    for name, least in (("matoolkit", level), ("uvicorn", "WARNING")):
        log = logging.getLogger(name)
        log.handlers[:] = [handler]
        log.propagate = False
        log.setLevel(least)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    given = ((name, getattr(record, name, None)) for name in FIELDS)
    return {name: value for name, value in given if value is not None}


def _instant(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _part(record: logging.LogRecord) -> str:
    return record.name.removeprefix("matoolkit.")
