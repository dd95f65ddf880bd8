"""A member's situation, put together in one way for those who decide about it and those who explain it (rule X1)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from matoolkit.domain.doors import PhaseDoor, Work
from matoolkit.domain.gates import Gates
from matoolkit.domain.progress import OpenCompensation, OpenWork, Situation
from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.narrow_executions import ExecutionState, NextStep, RollbackState
from matoolkit.store.phases import PhaseRow


class Participant(Protocol):
    """What a decision wants to know of a member, in whichever record a service has it."""

    @property
    def member_key(self) -> str:
        """Its key, as it is spelled."""

    @property
    def status(self) -> MemberStatus:
        """Whether it takes part."""

    @property
    def epoch(self) -> int:
        """The number of its run through the batch."""

    @property
    def joined_no(self) -> int | None:
        """The number with which it joined or returned; none if its batch was made with it (rule S3)."""

    @property
    def is_pilot(self) -> bool | None:
        """Whether it goes first (rule C1)."""


def situation_of(
    batch: NarrowBatch,
    member: Participant,
    gates: Gates,
    steps: Sequence[NextStep],
    rollbacks: Sequence[RollbackState],
    phases: Mapping[int, PhaseDoor],
    places: Collection[int] = (),
) -> Situation:
    """Put together what decides what a member does next, given what it has open and in which phases it has a place."""
    return Situation(
        member.status,
        batch.status,
        gates,
        Work(
            *(batch.runbook_name, batch.id),
            member_key=member.member_key,
            joined_no=member.joined_no or 0,
            is_pilot=bool(member.is_pilot),
        ),
        open_compensations(rollbacks) if rollbacks else (),
        # A job of an older epoch that is still out counts too: the member waits for it (rule O5).
        [step for step in steps if step.epoch == member.epoch or step.is_in_flight],
        phases,
        places,
    )


def undoing_of_init(batch: NarrowBatch, gates: Gates, rollbacks: Sequence[RollbackState]) -> Situation:
    """Put together what decides how the undoing of an init goes on; only its own rollback can block an init."""
    return Situation(
        MemberStatus.ACTIVE,
        BatchStatus.ACTIVE,
        gates=gates,
        work=Work(batch.runbook_name, batch.id),
        compensations=open_compensations(rollbacks),
        steps=(),
        phases={},
    )


def open_work(state: ExecutionState) -> OpenWork:
    """Return of a step what decides whether it is sent."""
    return OpenWork(state.id, state.step_index, state.status, state.lost_at, state.retry_after)


def open_compensations(rollbacks: Sequence[RollbackState]) -> list[OpenCompensation]:
    """Number compensating steps by their sequence; the sequence that was created first comes first."""
    first: dict[str, int] = {}
    for rollback in rollbacks:
        first[rollback.sequence_key] = min(rollback.id, first.get(rollback.sequence_key, rollback.id))
    return [
        OpenCompensation(
            rollback.id,
            rollback.step_index,
            rollback.status,
            rollback.lost_at,
            rollback.retry_after,
            first[rollback.sequence_key],
        )
        for rollback in rollbacks
    ]


def unexpanded_before(phases: Iterable[PhaseRow], later: PhaseRow) -> list[int]:
    """Return the phases of a batch that come before one, have begun, and have not given everybody its steps yet."""
    return [
        phase.id
        for phase in phases
        if phase.status is PhaseStatus.DISPATCHED and phase.expanded_at is None and phase.order < later.order
    ]
