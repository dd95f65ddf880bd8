"""What the system says, on its way to the host of a function app, which knows to which call each line belongs."""

import copy
import logging

from matoolkit.telemetry import QUIET, JsonFormatter, TextFormatter

# Each call takes the lease and lets it go, so its changes of hands are no news.
_LEASES = "matoolkit.scheduler.leasing"


class ToHost(logging.Handler):
    """Gives lines to the handlers of the host, with their fields written out: the host takes only the text."""

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on."""
        line = copy.copy(record)
        # The formatter has written the traceback into the text.
        line.msg, line.args, line.exc_info, line.exc_text = self.format(record), None, None, None
        logging.getLogger().handle(line)


def send_logs_to_host(level: str, log_format: str) -> None:
    """Send our lines to the host: as JSON if the settings say so, as text otherwise."""
    handler = ToHost()
    handler.addFilter(_is_news)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    ours = logging.getLogger("matoolkit")
    ours.handlers[:] = [handler]
    ours.propagate = False
    ours.setLevel(level)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)


def _is_news(record: logging.LogRecord) -> bool:
    return record.name != _LEASES or record.levelno >= logging.WARNING
