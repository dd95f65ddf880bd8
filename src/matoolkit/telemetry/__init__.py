"""How the system speaks of itself: its log, its spans (`tracing`) and its numbers (`metering`)."""

from matoolkit.telemetry.logs import (
    QUIET,
    JsonFormatter,
    TextFormatter,
    bind_fields,
    configure_logging,
    log_the_end,
    send_logs,
    speak_plainly,
    speaks_json,
)

__all__ = [
    "QUIET",
    "JsonFormatter",
    "TextFormatter",
    "bind_fields",
    "configure_logging",
    "log_the_end",
    "send_logs",
    "speak_plainly",
    "speaks_json",
]
