"""The demo: a handful of people whose waves are minutes ahead, in a database of their own."""

import logging
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from matoolkit.errors import UnreadableFile

FOLDER = Path(".matoolkit")
RUNBOOK = Path("runbooks/demo.yaml")
SOURCE_VARIABLE = "DEMO_SOURCE_URL"

_SOURCE = "demo-source.db"
_STATE = "matoolkit.db"
# The first wave is prepared at once and moves while one looks on; the others come with their whole calendar.
_WAVES = (timedelta(seconds=30), timedelta(minutes=3), timedelta(minutes=5))
_PEOPLE = (
    ("Ada Lovelace", "ada", 1),
    ("Grace Hopper", "grace", 1),
    ("Katherine Johnson", "katherine", 2),
    ("Hedy Lamarr", "hedy", 2),
    ("Radia Perlman", "radia", 3),
    ("Edsger Dijkstra", "edsger", 3),
    ("Alan Turing", "alan", None),
)

log = logging.getLogger(__name__)


def demo_runbook() -> str:
    """Return the demo's runbook."""
    try:
        return RUNBOOK.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFile(str(RUNBOOK), (error.strerror or "it cannot be read").lower()) from None


def demo_source(now: datetime) -> str:
    """Return the address of the demo's source, which is made if it is not there: people, and when they move."""
    path = FOLDER / _SOURCE
    if path.exists():
        log.info("the people of %s move when they were to move; --fresh begins anew", path)
    else:
        FOLDER.mkdir(parents=True, exist_ok=True)
        _make(path, now.replace(microsecond=0))
    return f"sqlite:///{path}"


def begin_anew() -> None:
    """Forget the demo's people and all that happened to them."""
    for name in (_SOURCE, _STATE):
        for tail in ("", "-wal", "-shm"):
            (FOLDER / f"{name}{tail}").unlink(missing_ok=True)


def _make(path: Path, now: datetime) -> None:
    # Whoever looks at the file sees all of it or nothing.
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(unfinished)) as people, people:
        people.execute(
            "CREATE TABLE people (employee_id TEXT PRIMARY KEY, display_name TEXT, nickname TEXT, target_upn TEXT,"
            " aliases TEXT, group_id TEXT, wave INTEGER, cutover_at TEXT)"
        )
        rows = [_person(number, *person, now) for number, person in enumerate(_PEOPLE)]
        people.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    unfinished.rename(path)
    for number, after in enumerate(_WAVES, start=1):
        names = ", ".join(name for name, _, wave in _PEOPLE if wave == number)
        log.info("wave %d moves at %s: %s", number, f"{now + after:%H:%M:%S} UTC", names)


def _person(number: int, name: str, nickname: str, wave: int | None, now: datetime) -> tuple[object, ...]:
    cutover = None if wave is None else f"{now + _WAVES[wave - 1]:%Y-%m-%d %H:%M:%S}"
    aliases = f"smtp:{nickname}@contoso.com,SMTP:{nickname}@fabrikam.com"
    key, group = f"E{1001 + number}", "4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a01"
    return key, name, nickname, f"{nickname}@fabrikam.com", aliases, group, wave, cutover
