"""Files that people name, and private files."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from matoolkit.errors import UnreadableFile, UnwritableFile
from matoolkit.runbook.presentable import presentable


def read_file(file: str, most_bytes: int) -> bytes:
    """Read a file, or standard input for `-`, but no more of it than shows that it is too large."""
    if file == "-":
        if sys.stdin is None:
            raise UnreadableFile("-", "there is no standard input")
        return sys.stdin.buffer.read(most_bytes + 1)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(most_bytes + 1)
    except OSError as error:
        raise UnreadableFile(name_of(file), _reason(error)) from None
    except ValueError as error:
        raise UnreadableFile(name_of(file), str(error)) from None


def write_file(file: str, pieces: Iterable[bytes], *, replace: bool) -> int:
    """Write a file whole or not at all, and return its size; one that is there is replaced only if asked."""
    path = Path(file)
    if path.exists() and not replace:
        raise UnwritableFile(name_of(file), "it already exists; --force replaces it")
    try:
        return _write(path, pieces, mode=_mode_for(path))
    except (OSError, ValueError) as error:
        raise UnwritableFile(name_of(file), _reason(error)) from None


def write_privately(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, in a folder that is made if need be."""
    make_private_folder(path.parent)
    try:
        _write(path, [content], mode=0o600)
    except OSError as error:
        raise UnwritableFile(str(path), _reason(error)) from None


def make_private_folder(path: Path) -> None:
    """Make a folder that only its owner may read, if it is not there."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFile(str(path), _reason(error)) from None


def name_of(file: str) -> str:
    """Write a file's name so that every output can hold it."""
    return presentable(os.fsencode(file).decode(errors="replace")) or "''"


def _write(path: Path, pieces: Iterable[bytes], mode: int) -> int:
    """Write to another file and rename it, so that no reader ever sees half a file."""
    written = 0
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    beside = Path(name)
    try:
        with os.fdopen(handle, "wb") as opened:
            for piece in pieces:
                written += opened.write(piece)
        beside.chmod(mode)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return written


def _mode_for(path: Path) -> int:
    """Return the permissions for a file: those it has, else those of new files."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        # The mask can only be read by setting it; until it is restored, new files get fewer permissions, not more.
        masked = os.umask(0o077)
        os.umask(masked)
        return 0o666 & ~masked


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or type(error).__name__).lower() if isinstance(error, OSError) else str(error)
