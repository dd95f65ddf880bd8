"""What was committed, in words that people read."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.recording import Entry

_FEW = 3
_BATCHES = {
    "init_dispatched": "init begins",
    "active": "its phases can begin",
    "completed": "is completed",
    "failed": "has failed",
    "cancelled": "is cancelled",
}
_PHASES = {"dispatched": "begins", "superseded": "is superseded by the new version"}


class Timeline:
    """Records what happens, with times before or after T."""

    def __init__(self, database: MemoryDatabase, start: datetime) -> None:
        self._database = database
        self._start = start
        self.lines: list[str] = []

    def say(self, at: datetime, what: str) -> None:
        """Write a line."""
        self.lines.append(f"{relative(at, self._start):>10}  {what}")

    def tell(self, at: datetime, entries: Iterable[Entry]) -> None:
        """Write what some entries mean; what many members do alike is one line."""
        said: Counter[str] = Counter()
        joining: dict[int, list[str]] = {}
        for entry in entries:
            if entry.what == "new_member":
                joining.setdefault(entry.about["batch"], []).append(entry.about["key"])
            elif line := self._work(entry) if entry.what in ("step", "rollback") else self._told(entry):
                said[line] += 1
        for batch, keys in joining.items():
            self.say(at, f"batch {batch}: {', '.join(keys) if len(keys) <= _FEW else f'{len(keys)} people'} join")
        for line, count in said.items():
            self.say(at, f"{line} ({count} times)" if count > 1 else line)

    def _told(self, entry: Entry) -> str | None:
        match entry.what:
            case "batch":
                return self._batch(entry)
            case "held":
                return f"batch {entry.id} is held: {entry.about['reason']}"
            case "released":
                return f"batch {entry.id}: the hold has ended"
            case "phase":
                word = _PHASES.get(entry.new or "", f"is {entry.new}")
                return f"batch {entry.about['batch']}: phase {entry.about['name']} {word}"
            case "member" if entry.old != entry.new:
                key = self._key(entry.id)
                said = {"removed": "leaves", "failed": "has failed", "active": "is back"}[entry.new or ""]
                return f"batch {entry.about['batch']}: {key} {said}"
            case "init" if entry.new in ("succeeded", "failed"):
                return f"batch {entry.about['batch']}: init step {entry.about['name']} {entry.new}"
            case _:
                return None

    def _batch(self, entry: Entry) -> str | None:
        if entry.about["start"] != entry.about["old_start"]:
            return f"batch {entry.id} is rescheduled to {entry.about['start'][:16]}"
        return f"batch {entry.id} {_BATCHES.get(entry.new or '', entry.new)}" if entry.old != entry.new else None

    def _work(self, entry: Entry) -> str | None:
        about = entry.about
        where = f"batch {about['batch']}: {about['name']}"
        match entry.old, entry.new:
            case _, "succeeded":
                return (
                    f"{where} done"
                    if entry.what == "step"
                    else f"{where} undoes the work of {self._key(about['member'])}"
                )
            case _, "failed" | "poll_timeout":
                return f"{where} has failed for {self._key(about['member'])}: {about['message']}"
            case "dispatched", "pending":
                return f"{where} is tried again later: {about['message']}"
            case _:
                return None

    def _key(self, member: int | None) -> str:
        if member is None:
            return "init"
        found = self._database.look(f"SELECT member_key FROM batch_members WHERE id = {member}")
        return str(found[0][0])


def relative(at: datetime, start: datetime) -> str:
    """Write an instant as people count: T-5d 02:30, T+0:15."""
    seconds = int((at - start).total_seconds())
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    days, rest = divmod(rest, 86_400)
    hours, rest = divmod(rest, 3600)
    clock = f"{hours:02}:{rest // 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")
    return f"T{sign}{days}d {clock}" if days else f"T{sign}{clock}"
