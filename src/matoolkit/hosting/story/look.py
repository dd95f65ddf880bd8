"""One look at the state: the newest batches, and all that belongs to them; and two looks compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Protocol, TypeVar

from matoolkit.domain.states import ENDED_BATCHES, OPEN_STEPS, MemberStatus
from matoolkit.hosting.story.lines import Line, Mark
from matoolkit.store import Store
from matoolkit.store.automation import TickRow, last_ticks
from matoolkit.store.batches import BatchRow, batches_page
from matoolkit.store.counts import member_counts
from matoolkit.store.enrolments import members_page
from matoolkit.store.executions import RollbackRow, StepRow
from matoolkit.store.members import MemberRow
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.rollbacks import rollbacks_of_batches
from matoolkit.store.steps import steps_of_members

MOST_BATCHES = 20
# In a larger batch a line for each member is too much; its phases are still told.
MOST_MEMBERS = 50


class _Numbered(Protocol):
    @property
    def id(self) -> int: ...


RowT = TypeVar("RowT", bound=_Numbered)

Counts = Mapping[int, Mapping[MemberStatus, int]]


@dataclass(frozen=True)
class Look:
    """What was there, by number; the members of large batches are only counted."""

    batches: Mapping[int, BatchRow] = field(default_factory=dict)
    counts: Counts = field(default_factory=dict)
    phases: Mapping[int, PhaseRow] = field(default_factory=dict)
    members: Mapping[int, MemberRow] = field(default_factory=dict)
    steps: Mapping[int, StepRow] = field(default_factory=dict)
    rollbacks: Mapping[int, RollbackRow] = field(default_factory=dict)
    ticks: Mapping[str, TickRow] = field(default_factory=dict)

    def members_of(self, batch_id: int) -> list[MemberRow]:
        """Return the members of a batch, if it is not a large one."""
        return [member for member in self.members.values() if member.batch_id == batch_id]

    def phases_of(self, batch_id: int) -> Sequence[PhaseRow]:
        """Return the phases of a batch."""
        return self._phases_by_batch.get(batch_id, ())

    def steps_of(self, member: MemberRow) -> list[StepRow]:
        """Return the steps of a member since it last started all over."""
        return [step for step in self._steps_by_member.get(member.id, ()) if step.epoch == member.epoch]

    @cached_property
    def _phases_by_batch(self) -> dict[int, list[PhaseRow]]:
        return _grouped(self.phases.values(), lambda phase: phase.batch_id)

    @cached_property
    def _steps_by_member(self) -> dict[int, list[StepRow]]:
        return _grouped(self.steps.values(), lambda step: step.batch_member_id)


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was, what is, and the time for what has none of its own."""

    before: Look
    after: Look
    now: datetime

    def line(self, at: datetime | None, mark: Mark, text: str, batch_id: int) -> Line:
        """Return a line about a batch."""
        return Line(at or self.now, mark, text, batch_id, self.after.batches[batch_id].batch_start_time)


def look_at(store: Store, before: Look) -> Look:
    """Look again; batches that ended before, have not changed and undo nothing are not read again."""
    with store.reading() as tx:
        newest = {batch.id: batch for batch in reversed(batches_page(tx, limit=MOST_BATCHES))}
        undoing = {one.batch_id for one in before.rollbacks.values() if one.status in OPEN_STEPS}
        quiet = {number for number, batch in newest.items() if _ended_before(batch, before)} - undoing
        changing = sorted(newest.keys() - quiet)
        counts: dict[int, dict[MemberStatus, int]] = {number: {} for number in changing}
        for count in member_counts(tx, changing):
            counts[count.batch_id][count.status] = count.count
        small = [number for number in changing if sum(counts[number].values()) <= MOST_MEMBERS]
        members = [member for number in small for member in members_page(tx, number, limit=MOST_MEMBERS)]
        return Look(
            newest,
            {**before.counts, **counts},
            _with(before.phases, phases_of_batches(tx, changing)),
            _with(before.members, members),
            _with(before.steps, steps_of_members(tx, [member.id for member in members])),
            _with(before.rollbacks, rollbacks_of_batches(tx, small)),
            {tick.runbook_name: tick for tick in last_ticks(tx)},
        )


def _ended_before(batch: BatchRow, before: Look) -> bool:
    return batch.status in ENDED_BATCHES and before.batches.get(batch.id) == batch


def _with(known: Mapping[int, RowT], seen: Sequence[RowT]) -> dict[int, RowT]:
    return {**known, **{row.id: row for row in seen}}


def _grouped(rows: Iterable[RowT], key: Callable[[RowT], int]) -> dict[int, list[RowT]]:
    groups: dict[int, list[RowT]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups
