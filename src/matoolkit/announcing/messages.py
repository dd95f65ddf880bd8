"""What the orchestrator is told: each event is built here, with its first id, and nowhere else (rules M2 and M9)."""

from datetime import datetime
from typing import Protocol

from matoolkit.domain.messages import BatchInit, BatchWake, MemberAdded, MemberRemoved, PhaseDue, PollCheck, RetryCheck
from matoolkit.ids import (
    Kind,
    batch_init_id,
    batch_wake_id,
    member_added_id,
    member_removed_id,
    phase_due_id,
    poll_check_id,
    retry_check_id,
)
from matoolkit.ports import Outgoing
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow
from matoolkit.store.waking import WokenBatch


class Member(Protocol):
    """What messages say about a member, in whichever record a service has it."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def batch_id(self) -> int:
        """Its batch."""

    @property
    def member_key(self) -> str:
        """Its key, as it is spelled."""

    @property
    def epoch(self) -> int:
        """The number of its run through the batch."""


def batch_init(batch: NarrowBatch, version: int) -> Outgoing:
    """Say that the init of a batch is to run; the batch has counted this request."""
    message = BatchInit(batch.id, batch.runbook_name, version)
    return Outgoing(batch_init_id(batch.id, version, batch.init_count), message)


def phase_due(phase: PhaseRow, batch: NarrowBatch) -> Outgoing:
    """Say that a phase is due; the phase has counted this dispatch."""
    message = PhaseDue(batch.id, batch.runbook_name, phase.runbook_version, phase.phase_name, phase.id)
    return Outgoing(phase_due_id(phase.id, phase.dispatch_count), message)


def member_added(member: Member) -> Outgoing:
    """Say that a member has to catch up with its batch."""
    message = MemberAdded(member.batch_id, member.member_key, member.id)
    return Outgoing(member_added_id(member.id, member.epoch), message)


def member_removed(member: Member) -> Outgoing:
    """Say that a member left its batch."""
    message = MemberRemoved(member.batch_id, member.member_key, member.id)
    return Outgoing(member_removed_id(member.id, member.epoch), message)


def batch_wake(batch: WokenBatch) -> Outgoing:
    """Say that all who wait in a batch are to be looked at again; the batch has counted this."""
    return Outgoing(batch_wake_id(batch.id, batch.wake_count), BatchWake(batch.id, batch.runbook_name))


def poll_check(kind: Kind, execution_id: int, attempt: int) -> Outgoing:
    """Say that work is to be polled again after an attempt."""
    return Outgoing(poll_check_id(kind, execution_id, attempt), PollCheck(execution_id, kind))


def retry_check(kind: Kind, execution_id: int, attempt: int, not_before: datetime | None = None) -> Outgoing:
    """Say that work is to be tried again after an attempt."""
    return Outgoing(retry_check_id(kind, execution_id, attempt), RetryCheck(execution_id, kind), not_before)
