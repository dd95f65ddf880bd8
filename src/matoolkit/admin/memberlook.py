"""A member with all that was done for it, for what it waits, and what is still to come; read at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.admin.explaining import MemberExplained, explained_member
from matoolkit.admin.queries import MemberHistory, existing_batch, member_history
from matoolkit.domain.keys import folded
from matoolkit.domain.states import UNFINISHED_BATCHES, MemberStatus, PhaseStatus, StepStatus
from matoolkit.store import Store
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.exclusions import Exclusion, exclusion_of
from matoolkit.store.executions import StepRow
from matoolkit.store.people import enrolments_of_key
from matoolkit.store.phases import PhaseRow, phases_of_batches

_MOST_PLACES = 20


@dataclass(frozen=True, slots=True)
class ToCome:
    """What a member has still to do: the steps of a phase that has begun, or a phase and when it is due."""

    text: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MemberLook:
    """A member with its batch and all its places, read at once."""

    at: datetime
    batch: BatchRow
    phases: Sequence[PhaseRow]
    history: MemberHistory
    places: Sequence[Enrolment]
    exclusion: Exclusion | None
    explained: MemberExplained

    @property
    def steps(self) -> list[StepRow]:
        """The steps of its present epoch, in their order."""
        epoch = self.history.member.row.epoch
        return self.in_order([step for step in self.history.steps if step.epoch == epoch])

    def in_order(self, steps: Sequence[StepRow]) -> list[StepRow]:
        """Sort steps as a member goes through them (rule O3)."""
        order = {phase.id: phase.order for phase in self.phases}
        return sorted(steps, key=lambda step: (order[step.phase_execution_id], step.step_index))

    @property
    def following(self) -> list[ToCome]:
        """What is still to come for a member who goes on."""
        goes_on = self.history.member.row.status is MemberStatus.ACTIVE and self.batch.status in UNFINISHED_BATCHES
        return [*self._steps_to_come(), *self._phases_to_come()] if goes_on else []

    def _steps_to_come(self) -> Iterator[ToCome]:
        by_phase: dict[int, list[str]] = {}
        for step in self.steps:
            if step.status is StepStatus.PENDING and not step.retry_after:
                by_phase.setdefault(step.phase_execution_id, []).append(step.step_name)
        for phase_id, names in by_phase.items():
            yield ToCome(f"{self.history.phases.get(phase_id, '')}: {', '.join(names)}")

    def _phases_to_come(self) -> Iterator[ToCome]:
        pending = [phase for phase in self.phases if phase.status is PhaseStatus.PENDING]
        for phase in sorted(pending, key=lambda phase: phase.order):
            yield ToCome(f"{phase.phase_name}, due" if phase.due_at else phase.phase_name, phase.due_at)


def look_at_member(store: Store, batch_id: int, member_id: int) -> MemberLook:
    """Look at a member."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        history = member_history(store.within(tx), batch_id, member_id)
        key = history.member.row.member_key
        return MemberLook(
            tx.time(),
            batch,
            phases_of_batches(tx, [batch_id]),
            history,
            enrolments_of_key(tx, key, _MOST_PLACES),
            exclusion_of(tx, batch.runbook_name, folded(key)),
            explained_member(tx, batch, member_id),
        )
