"""The orchestrator: takes piles of events and results, and decides each in one transaction (rule M4).

`hosting/orchestrator.py` gives `Orchestrator.handle` to two loops of `bus/consumer.py`, for events and for results.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from matoolkit.announcing.gatekeeping import take_back_all
from matoolkit.domain.messages import (
    BatchInit,
    BatchWake,
    MemberAdded,
    MemberRemoved,
    PhaseDue,
    PollCheck,
    RetryCheck,
    WorkerHello,
    WorkerResult,
)
from matoolkit.errors import MatoolkitError
from matoolkit.ids import Kind, parse_job_id
from matoolkit.orchestrator.agenda import Agenda, Limits, open_agenda
from matoolkit.orchestrator.catalogue import Hello, keep_hellos
from matoolkit.orchestrator.checks import apply_checks
from matoolkit.orchestrator.consequences import follow_up
from matoolkit.orchestrator.expanding import Due, expand_phases
from matoolkit.orchestrator.init import Request, request_inits
from matoolkit.orchestrator.joiners_and_leavers import add_members, remove_members
from matoolkit.orchestrator.results import MatchedResult, apply_answers
from matoolkit.orchestrator.sweeps import (
    OpenAgenda,
    sweep_dead_jobs,
    sweep_endings,
    sweep_leavers,
    sweep_lost_jobs,
    sweep_waiting_members,
)
from matoolkit.orchestrator.versions import Versions
from matoolkit.orchestrator.waking import Wake, wake_batches
from matoolkit.outages import Outage
from matoolkit.ports import Delivery, Publisher
from matoolkit.store import Store
from matoolkit.store.gatekeeping import gates_to_sweep
from matoolkit.store.narrow_executions import batches_of_work, states_of
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry.tracing import NO_SPAN, next_trace

_SWEEPS = (sweep_lost_jobs, sweep_dead_jobs, sweep_waiting_members, sweep_leavers, sweep_endings)

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Inbox:
    """Messages by kind."""

    hellos: list[Hello] = field(default_factory=list)
    answers: dict[Kind, list[MatchedResult]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    checks: dict[Kind, list[PollCheck | RetryCheck]] = field(default_factory=lambda: {kind: [] for kind in Kind})
    inits: list[Request] = field(default_factory=list)
    wakes: list[Wake] = field(default_factory=list)
    dues: list[Due] = field(default_factory=list)
    added: list[MemberAdded] = field(default_factory=list)
    removed: list[MemberRemoved] = field(default_factory=list)

    @property
    def has_answers(self) -> bool:
        """Whether a job was answered."""
        return any(self.answers.values())

    def work(self, kind: Kind) -> set[int]:
        """Return the work of a kind that answers and checks are about."""
        answered = {ref.execution_id for ref, _ in self.answers[kind]}
        return answered | {check.execution_id for check in self.checks[kind]}


class Orchestrator:
    """Handles the messages of scheduler, workers and people; any number of orchestrators may run at the same time."""

    def __init__(self, store: Store, publisher: Publisher, limits: Limits | None = None) -> None:
        self._store = store
        self._publisher = publisher
        self._limits = limits or Limits()
        self._versions = Versions()
        sweeps = (self.sweep_gates, *_SWEEPS)
        self._troubles = {sweep: Outage(_title(sweep.__name__), log) for sweep in sweeps}

    def handle(self, tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        """Do what a pile of messages asks for, in the transaction in which they are completed."""
        inbox = _sorted_out(deliveries)
        if inbox.hellos:
            keep_hellos(tx, inbox.hellos, tx.time())
            self._versions.expect_news()
        agenda = self._open(tx, _batches_of(tx, inbox))
        # Read after the batches are locked, so that no decision rests on rows that another process is changing (rule
        # M5).
        for kind in Kind:
            if work := inbox.work(kind):
                states = states_of(tx, kind, work)
                # Results and checks have topics of their own: no pile has an answer and a check of the same work.
                apply_answers(agenda, kind, states, inbox.answers[kind])
                apply_checks(agenda, kind, states, inbox.checks[kind])
        request_inits(agenda, inbox.inits)
        remove_members(agenda, {removed.batch_member_id for removed in inbox.removed})
        add_members(agenda, {added.batch_member_id for added in inbox.added})
        expand_phases(agenda, inbox.dues)
        wake_batches(agenda, inbox.wakes)
        # A trace covers one step of some members, from what sent it to the handling of its answer. What follows from
        # answers begins the next, or the trace of a batch would grow for days.
        with next_trace("send what follows") if inbox.has_answers else NO_SPAN:
            follow_up(agenda)

    def sweep(self) -> None:
        """Find work that no message announces: lost and dead jobs, members that wait, phases and batches to end."""
        for sweep, trouble in self._troubles.items():
            try:
                sweep(self._store, self._open)
            except Exception as fault:  # noqa: BLE001 - it is told, and the next sweeps go on
                trouble.failed(fault)
                # The other sweeps would meet the same outage.
                if isinstance(fault, MatoolkitError) and fault.is_outage:
                    return
            else:
                trouble.worked()

    def sweep_gates(self, store: Store, _: OpenAgenda) -> None:
        """Take back the jobs behind gates whose shutting nobody finished (rule G4)."""
        with store.reading() as tx:
            unswept = [gate for gate in gates_to_sweep(tx, tx.time()) if gate.opened_at is None]
        for gate in unswept:
            take_back_all(store, self._publisher, gate)

    def _open(self, tx: Transaction, batch_ids: set[int]) -> Agenda:
        return open_agenda(tx, self._publisher, self._versions, self._limits, batch_ids)


def _sorted_out(deliveries: Sequence[Delivery]) -> _Inbox:
    """Sort a pile."""
    inbox = _Inbox()
    for delivery in deliveries:
        match delivery.message:
            case WorkerResult() as result:
                _take_result(inbox, result)
            case PollCheck(kind=kind) | RetryCheck(kind=kind) as check:
                inbox.checks[kind].append(check)
            case BatchInit() as request:
                inbox.inits.append(Request(delivery.received.message_id, request))
            case BatchWake() as wake:
                inbox.wakes.append(Wake(delivery.received.message_id, wake))
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


def _batches_of(tx: Transaction, inbox: _Inbox) -> set[int]:
    """Find the batches that messages concern; those of answers and checks are asked for, one query for each kind."""
    events: Iterable[BatchInit | BatchWake | PhaseDue | MemberAdded | MemberRemoved] = (
        *(request.message for request in inbox.inits),
        *(due.message for due in inbox.dues),
        *(wake.message for wake in inbox.wakes),
        *inbox.added,
        *inbox.removed,
    )
    found = {event.batch_id for event in events}
    for kind in Kind:
        found.update(batches_of_work(tx, kind, inbox.work(kind)))
    return found


def _take_result(inbox: _Inbox, result: WorkerResult) -> None:
    ref = parse_job_id(result.job_id)
    if ref is None:
        log.warning("a result is ignored: its job id is none of ours", extra={"job": result.job_id[:200]})
    else:
        inbox.answers[ref.kind].append((ref, result))


def _title(name: str) -> str:
    return f"the sweep of {name.removeprefix('sweep_').replace('_', ' ')}"
