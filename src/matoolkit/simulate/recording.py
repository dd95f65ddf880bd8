"""Reading what the database wrote down."""

from dataclasses import dataclass
from typing import Any

import orjson

from matoolkit.simulate.database import MemoryDatabase


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that was committed: a row that moved, or a message that was published."""

    seq: int
    what: str
    id: int
    old: str | None
    new: str | None
    about: dict[str, Any]

    def __str__(self) -> str:
        if self.what in ("bus_messages", "outbox"):
            return f"{self.what} + {self.new}"
        if self.what == "handled":
            return f"handled {self.new}"
        if self.what in ("held", "released"):
            return f"batch {self.id} {self.what}: {self.about['reason']}"
        job = f" {self.about['job']}" if self.new == "dispatched" and "job" in self.about else ""
        return f"{self.what} {self.id} {self.old} → {self.new}{job}"


def entries_after(database: MemoryDatabase, seq: int) -> list[Entry]:
    """Return what was committed since."""
    found = database.look(f"SELECT seq, what, id, old, new, about FROM sim_log WHERE seq > {seq} ORDER BY seq")
    return [Entry(number, what, row, old, new, orjson.loads(about)) for number, what, row, old, new, about in found]
