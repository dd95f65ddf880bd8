"""Files that only their owner may use: they hold people's data, or code that is executed."""

import logging
import os
import stat
from pathlib import Path

_FOLDER = 0o700
_FILE = 0o600

log = logging.getLogger(__name__)


def private_folder(folder: Path) -> None:
    """Make a folder into which only its owner can look, files in it included; one that is there is made so."""
    folder.mkdir(_FOLDER, parents=True, exist_ok=True)
    _close(folder, _FOLDER)
    for path in folder.iterdir():
        if path.is_file():
            _close(path, _FILE)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner can read, unless there is one."""
    if not path.exists():
        path.touch(_FILE)


def writers_besides_us(path: Path) -> str | None:
    """Say who else can change a file or folder. Root can change everything anyway; on a read-only mount nobody can."""
    if os.name != "posix" or os.statvfs(path).f_flag & os.ST_RDONLY:
        return None
    found = path.stat()
    if found.st_uid not in (0, os.geteuid()):
        return "it belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users may write to it"
    return None


def _close(path: Path, mode: int) -> None:
    if stat.S_IMODE(path.stat().st_mode) == mode:
        return
    try:
        path.chmod(mode)
    except OSError as fault:
        log.warning("%s may be read by others, and that cannot be changed: %s", path, fault.strerror)
