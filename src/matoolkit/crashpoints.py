"""Named boundaries at which a test can make the process die.

Code that must survive a crash says so by reaching a point: `BEFORE_COMMIT.reached()`. In production nothing
is armed and that is one look at an empty dictionary. A test arms a point by name, to raise or to kill the
process the n-th time it is reached:

    with crashing("store.before_commit", on_hit=3): ...
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn


class SimulatedCrash(BaseException):
    """The process is to be regarded as dead; no handler of ordinary errors may catch it."""


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """One named boundary."""

    name: str

    def reached(self) -> None:
        """Die here if a test wants it."""
        if _armed and (armed := _armed.get(self.name)) is not None:
            armed.hit(self.name)


@dataclass(slots=True)
class _Armed:
    hits_left: int
    crash: Callable[[str], None]

    def hit(self, name: str) -> None:
        self.hits_left -= 1
        if self.hits_left == 0:
            self.crash(name)


_points: dict[str, CrashPoint] = {}
_armed: dict[str, _Armed] = {}


def crash_point(name: str) -> CrashPoint:
    """Declare a boundary, once, as a constant of the module that has it."""
    return _points.setdefault(name, CrashPoint(name))


def known_points() -> tuple[str, ...]:
    """Names of all boundaries that the imported modules have."""
    return tuple(sorted(_points))


def raise_crash(name: str) -> NoReturn:
    """Crash by an exception that unwinds the stack, as fast as tests want it."""
    raise SimulatedCrash(name)


def kill_process(name: str) -> None:  # noqa: ARG001 - the signature of every crash
    """Crash for real: the operating system ends the process, and nothing is cleaned up."""
    os.kill(os.getpid(), signal.SIGKILL)


def arm(name: str, *, on_hit: int = 1, crash: Callable[[str], None] = raise_crash) -> None:
    """Let the n-th arrival at a point crash; a name that no module declares is a mistake of the test."""
    if name not in _points:
        raise KeyError(f"no crash point is called {name!r}; known are {', '.join(known_points())}")
    _armed[name] = _Armed(on_hit, crash)


def disarm(name: str) -> None:
    """Let the point be passed again."""
    _armed.pop(name, None)


@contextmanager
def crashing(name: str, *, on_hit: int = 1, crash: Callable[[str], None] = raise_crash) -> Iterator[None]:
    """Arm a point for the length of a block."""
    arm(name, on_hit=on_hit, crash=crash)
    try:
        yield
    finally:
        disarm(name)
