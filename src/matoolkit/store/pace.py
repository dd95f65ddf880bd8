"""How fast the calendar of a database runs, and since when (rule U5)."""

from dataclasses import dataclass
from datetime import datetime

from matoolkit.clock import Pace
from matoolkit.store.schema import pace
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Transaction

_ONLY = "up"


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    speed: int
    origin: datetime


def stored_pace(tx: Transaction) -> Pace | None:
    """Return the pace that the database was begun with; nothing if `matoolkit up` never ran on it."""
    rows = tx.rows(_Row, select_records(_Row, pace))
    return Pace(rows[0].speed, rows[0].origin) if rows else None


def keep_pace(tx: Transaction, begun: Pace) -> None:
    """Store the pace of a database that has none yet; it never changes."""
    tx.execute(insert_each(tx, pace, [_Row(_ONLY, begun.speed, begun.origin)], {}, ("name",)))
