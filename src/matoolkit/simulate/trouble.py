"""Errors that the system logs and survives: in the simulation, where nothing is broken, each is a bug.

So is a warning with a traceback: loops that try again tell in that way of what they did not expect.
"""

import logging
import traceback
from types import TracebackType
from typing import Self

from matoolkit.simulate.invariants import Violation

_ROOT = logging.getLogger("matoolkit")


class TroubleLog(logging.Handler):
    """Keeps what is logged as an error, or with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error with its cause."""
        if record.levelno < logging.ERROR and not record.exc_info:
            return
        cause = record.exc_info[1] if record.exc_info else None
        where = "".join(traceback.format_exception(cause)[-6:]) if cause else ""
        self._found.append(f"{record.getMessage()}\n{where}")

    def check(self) -> None:
        """Demand that nothing was logged as an error."""
        if self._found:
            raise Violation(f"an error was logged: {self._found[0]}")

    def __enter__(self) -> Self:
        self._before = (_ROOT.level, _ROOT.propagate)
        _ROOT.addHandler(self)
        _ROOT.setLevel(logging.WARNING)
        _ROOT.propagate = False
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _ROOT.removeHandler(self)
        _ROOT.setLevel(self._before[0])
        _ROOT.propagate = self._before[1]
