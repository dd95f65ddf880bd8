"""The demo: people whose waves are minutes ahead, in a database of their own, and what their tenant has in it.

People join late and leave without any write to that database, because its view looks at the clock.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from matoolkit.privacy import private_file

NAME = "demo"
RUNBOOK = Path(__file__).with_name("demo.yaml")
SOURCE_VARIABLE = "DEMO_SOURCE_URL"

_GROUP = "4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a01"
_NO_GROUP = "4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a99"

# What is in the tenant before anybody moves. Addresses that Exchange writes are seen by Graph a little later.
TENANT_AT_FIRST: dict[str, Any] = {
    "domains": ["fabrikam.com"],
    "groups": [{"id": _GROUP, "displayName": "Fabrikam staff"}],
    "lags": {"graph": 0, "exchange": 0, "sync": 4},
}


# Seconds after the beginning: the T of each wave (the last leaves time to try things), and when one person joins the
# second wave late and another leaves it.
_WAVES = (10, 130, 720)
_LATE_FROM = 45
_GONE_FROM = 60


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    wave: int
    is_late: bool = False
    leaves: bool = False
    group: str = _GROUP

    @property
    def nickname(self) -> str:
        return self.name.partition(" ")[0].casefold()


_PEOPLE = (
    _Person("Ada Lovelace", 1),
    _Person("Grace Hopper", 1),
    _Person("Alan Turing", 1, group=_NO_GROUP),
    _Person("Katherine Johnson", 2),
    _Person("Edsger Dijkstra", 2),
    _Person("Hedy Lamarr", 2, leaves=True),
    _Person("Emmy Noether", 2, is_late=True),
    _Person("Dorothy Vaughan", 3),
    _Person("Claude Shannon", 3),
    _Person("Joan Clarke", 0),
)
_TABLE = """
CREATE TABLE people (
    email TEXT PRIMARY KEY, display_name TEXT, nickname TEXT, target_upn TEXT, aliases TEXT, group_id TEXT,
    cutover_at TEXT, approved_at TEXT, withdrawn_at TEXT
)
"""
_VIEW = """
CREATE VIEW approved_people AS
SELECT email, display_name, nickname, target_upn, aliases, group_id, cutover_at
FROM people
WHERE CURRENT_TIMESTAMP >= approved_at AND (withdrawn_at IS NULL OR CURRENT_TIMESTAMP < withdrawn_at)
"""
# An ambiguous time: its row is set aside.
_UNREADABLE = "03/04/2027"


def make_source(path: Path, now: datetime) -> None:
    """Make the demo's source and replace an older one; a reader of the file sees all of it or nothing."""
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    private_file(unfinished)
    with closing(sqlite3.connect(unfinished)) as people, people:
        people.execute(_TABLE)
        people.execute(_VIEW)
        rows = [_row(person, now.replace(microsecond=0)) for person in _PEOPLE]
        people.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    unfinished.replace(path)


def _row(person: _Person, beginning: datetime) -> tuple[str | None, ...]:
    def after(seconds: int) -> str:
        return f"{beginning + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"

    name = person.nickname
    return (
        f"{name}@contoso.com",
        person.name,
        name,
        f"{name}@fabrikam.com",
        f"smtp:{name}.contoso@fabrikam.com,X500:/o=Contoso/cn={name}",
        person.group,
        after(_WAVES[person.wave - 1]) if person.wave else _UNREADABLE,
        after(_LATE_FROM if person.is_late else 0),
        after(_GONE_FROM) if person.leaves else None,
    )
