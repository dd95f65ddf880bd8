"""A pile of messages, sorted by what they are about."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from matoolkit.domain.messages import (
    BatchInit,
    MemberAdded,
    MemberRemoved,
    PhaseDue,
    PollCheck,
    RetryCheck,
    WorkerHello,
    WorkerResult,
)
from matoolkit.ids import Kind, parse_job_id
from matoolkit.orchestrator.catalogue import Hello
from matoolkit.orchestrator.expanding import Due
from matoolkit.orchestrator.init import Request
from matoolkit.orchestrator.results import Answer
from matoolkit.ports import Delivery
from matoolkit.store.narrow_executions import batches_of_work
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Inbox:
    """Messages by kind."""

    hellos: list[Hello] = field(default_factory=list)
    answers: dict[Kind, list[Answer]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    checks: dict[Kind, list[PollCheck | RetryCheck]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    inits: list[Request] = field(default_factory=list)
    dues: list[Due] = field(default_factory=list)
    added: list[MemberAdded] = field(default_factory=list)
    removed: list[MemberRemoved] = field(default_factory=list)

    def work(self, kind: Kind) -> set[int]:
        """Return the work of a kind that answers and checks are about."""
        answered = {ref.execution_id for ref, _ in self.answers[kind]}
        return answered | {check.execution_id for check in self.checks[kind]}


def sorted_out(deliveries: Sequence[Delivery]) -> Inbox:
    """Sort a pile."""
    inbox = Inbox()
    for delivery in deliveries:
        match delivery.message:
            case WorkerResult() as result:
                _take_result(inbox, result)
            case PollCheck(kind=kind) | RetryCheck(kind=kind) as check:
                inbox.checks[kind].append(check)
            case BatchInit() as request:
                inbox.inits.append(Request(delivery.received.message_id, request))
            case PhaseDue() as due:
                inbox.dues.append(Due(delivery.received.message_id, due))
            case MemberAdded() as added:
                inbox.added.append(added)
            case MemberRemoved() as removed:
                inbox.removed.append(removed)
            case WorkerHello() as hello:
                inbox.hellos.append(Hello(delivery.received.message_id, hello))
            case other:
                log.warning("a %s is not for the orchestrator", type(other).__name__)
    return inbox


def batches_of(tx: Transaction, inbox: Inbox) -> set[int]:
    """Find the batches that messages concern; those of answers and checks are asked for, one query for each kind."""
    events: Iterable[BatchInit | PhaseDue | MemberAdded | MemberRemoved] = (
        *(request.message for request in inbox.inits),
        *(due.message for due in inbox.dues),
        *inbox.added,
        *inbox.removed,
    )
    found = {event.batch_id for event in events}
    for kind in Kind:
        found.update(batches_of_work(tx, kind, inbox.work(kind)))
    return found


def _take_result(inbox: Inbox, result: WorkerResult) -> None:
    ref = parse_job_id(result.job_id)
    if ref is None:
        log.warning("a result is ignored: its job id is none of ours", extra={"job": result.job_id[:200]})
    else:
        inbox.answers[ref.kind].append((ref, result))
