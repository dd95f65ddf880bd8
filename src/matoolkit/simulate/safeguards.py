"""How many members the source may remove without a person, counted over a day (rule T6)."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from matoolkit.domain.holds import REMOVAL_WINDOW, removal_limit
from matoolkit.domain.states import ABSENT
from matoolkit.runbook.parse import parse_runbook
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.recording import Entry


class Removals:
    """Counts who left each batch, and when."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._gone: dict[int, dict[int, datetime]] = {}

    def see(self, entries: Sequence[Entry]) -> None:
        """Look at who left and who came back in one event."""
        now = self._plant.clock.now()
        released = {entry.id for entry in entries if entry.what == "released"}
        left: set[int] = set()
        # Who was taken out by a person in this event, perhaps after others had left.
        taken: Counter[int] = Counter()
        for entry in entries:
            if entry.what != "member":
                continue
            gone = self._gone.setdefault(entry.about["batch"], {})
            if entry.new == "active":
                gone.pop(entry.id, None)
            elif entry.new == "removed" and entry.about["reason"] == ABSENT:
                gone[entry.id] = now
                left.add(entry.about["batch"])
            elif entry.new == "removed":
                taken[entry.about["batch"]] += 1
        for batch in sorted(left):
            if batch in released:
                # A person approved the removals, so counting starts here.
                self._gone[batch].clear()
            else:
                self._demand_few(batch, now, taken[batch])

    def _demand_few(self, batch: int, now: datetime, taken: int) -> None:
        lately = [member for member, at in self._gone[batch].items() if at > now - REMOVAL_WINDOW]
        look = self._plant.state.look
        ((active,),) = look(f"SELECT COUNT(*) FROM batch_members WHERE batch_id = {batch} AND status = 'active'")
        # Another version may have been published since the tick began.
        texts = [text for (text,) in look("SELECT yaml_content FROM runbooks ORDER BY id DESC LIMIT 2")]
        limits = [safeguards.max_removals if (safeguards := parse_runbook(text).safeguards) else None for text in texts]
        there = len(lately) + active
        most = max(removal_limit(limit, members) for limit in limits for members in (there, there + taken))
        if len(lately) > most:
            raise Violation(f"{len(lately)} members left batch {batch} within a day, {active} stay: {most} may go")
