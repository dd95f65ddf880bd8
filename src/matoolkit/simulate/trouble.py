"""Errors that the system logs and survives: in the simulation, where nothing is broken, each is a bug."""

import logging
import traceback
from types import TracebackType
from typing import Self

from matoolkit.simulate.invariants import Violation

_ROOT = logging.getLogger("matoolkit")


class TroubleLog(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error with its cause."""
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
        _ROOT.setLevel(logging.ERROR)
        _ROOT.propagate = False
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        _ROOT.removeHandler(self)
        _ROOT.setLevel(self._before[0])
        _ROOT.propagate = self._before[1]
