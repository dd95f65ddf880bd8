"""Opening a list: below the folder of lists only, and only if nobody is writing it (rule U4)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed, did_you_mean

QUIET_SECONDS = 10
MOST_BYTES = 1024 * 1024 * 1024

_LATER = "the next tick tries again"


def find_list(folder: Path, name: str) -> Path:
    """Return where a list is. Links are followed, but not out of the folder."""
    try:
        root = folder.resolve(strict=True)
        path = (root / name).resolve()
    except (OSError, RuntimeError):
        message = "the folder that MATOOLKIT_FILES names cannot be opened"
        raise SourceFailed(message, hint="create it, or correct the setting") from None
    if not path.is_relative_to(root):
        message = f"the file '{name}' is not below the folder that MATOOLKIT_FILES names"
        raise SourceFailed(message, hint="put the file itself there; a link must not lead out of the folder")
    if not path.is_file():
        message = f"there is no file '{name}' in the folder that MATOOLKIT_FILES names"
        raise SourceFailed(message, hint=did_you_mean(path.name, _neighbours(path)) or "put the file there")
    return path


@contextmanager
def opened_while_quiet(path: Path, name: str, clock: Clock) -> Iterator[BinaryIO]:
    """Open a list that nobody has changed for a while; it is an error if somebody does before it has been read."""
    try:
        before = _state(path)
        _require_quiet(name, before, clock)
        with path.open("rb") as file:
            yield file
        is_same = _state(path) == before
    except OSError as fault:
        message = f"the file '{name}' cannot be read: {fault.strerror or fault}"
        hint = "close it where it is open, and let the scheduler's account read it"
        raise SourceFailed(message, hint=hint) from fault
    if not is_same:
        raise SourceFailed(f"the file '{name}' was changed while it was read", hint=_LATER)


def _require_quiet(name: str, state: tuple[int, int], clock: Clock) -> None:
    size, changed_ns = state
    if size > MOST_BYTES:
        raise SourceFailed(f"the file '{name}' has {size:,} bytes, and at most {MOST_BYTES:,} are read")
    age = (clock.now() - datetime.fromtimestamp(changed_ns / 1e9, UTC)).total_seconds()
    if age < 0:
        message = f"the file '{name}' was changed in the future"
        raise SourceFailed(message, hint="compare the clocks of this machine and of the one that keeps the file")
    if age < QUIET_SECONDS:
        message = f"the file '{name}' was changed {age:.0f} s ago; it is read once {QUIET_SECONDS} s have passed"
        raise SourceFailed(message, hint=_LATER)


def _state(path: Path) -> tuple[int, int]:
    """Return size and time of change; one that was set back, as copying does, leaves the other time new."""
    found = path.stat()
    return found.st_size, max(found.st_mtime_ns, found.st_ctime_ns)


def _neighbours(path: Path) -> list[str]:
    return [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
