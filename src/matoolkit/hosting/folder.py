"""The folder in which `matoolkit up` keeps everything, used by one process at a time."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from matoolkit.errors import AlreadyUp
from matoolkit.privacy import private_file, private_folder

FOLDER = Path(".matoolkit")
SOURCE = FOLDER / "demo-source.db"
TENANT = FOLDER / "tenant.json"
STATE = FOLDER / "matoolkit.db"
ROWS = FOLDER / "rows.json"
# Forms of the pages that were open before must not change what begins anew, so it is forgotten too.
KEY = FOLDER / "pages.key"

_LOCK = "up.lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes and other people; the lock ends with this process, even after a kill."""
    private_folder(folder)
    private_file(folder / _LOCK)
    # SQLite knows on every system how to lock a file so that the lock ends with its process.
    try:
        lock = sqlite3.connect(folder / _LOCK, timeout=0, isolation_level=None)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as fault:
        if fault.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise AlreadyUp(str(folder)) from None
        raise OSError(f"{folder / _LOCK} cannot be written") from fault
    with closing(lock):
        yield


def forget_all() -> None:
    """Forget the demo's people, its tenant, and all that happened."""
    for path in (STATE, SOURCE, TENANT, ROWS, KEY):
        for tail in ("", "-wal", "-shm"):
            path.with_name(f"{path.name}{tail}").unlink(missing_ok=True)
