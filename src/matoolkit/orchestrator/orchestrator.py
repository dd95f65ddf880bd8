"""The orchestrator: takes piles of events and results, and decides each in one transaction (rule M4)."""

import logging
from collections.abc import Sequence

from matoolkit.errors import MatoolkitError
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda, Limits, open_agenda
from matoolkit.orchestrator.catalogue import announce
from matoolkit.orchestrator.checks import apply_checks
from matoolkit.orchestrator.consequences import follow_up
from matoolkit.orchestrator.expanding import expand_phases
from matoolkit.orchestrator.inbox import batches_of, sorted_out
from matoolkit.orchestrator.init import request_inits
from matoolkit.orchestrator.joiners_and_leavers import add_members, remove_members
from matoolkit.orchestrator.results import apply_answers
from matoolkit.orchestrator.sweeps import (
    sweep_dead_jobs,
    sweep_endings,
    sweep_leavers,
    sweep_lost_jobs,
    sweep_waiting_members,
)
from matoolkit.orchestrator.versions import Versions
from matoolkit.outages import Outage
from matoolkit.ports import Delivery, Publisher
from matoolkit.store import Store
from matoolkit.store.narrow_executions import states_of
from matoolkit.store.sql.transaction import Transaction

_SWEEPS = (sweep_lost_jobs, sweep_dead_jobs, sweep_waiting_members, sweep_leavers, sweep_endings)

log = logging.getLogger(__name__)


class Orchestrator:
    """Handles what scheduler, workers and people set in motion; any number of them may run beside each other."""

    def __init__(self, store: Store, publisher: Publisher, limits: Limits | None = None) -> None:
        self._store = store
        self._publisher = publisher
        self._limits = limits or Limits()
        self._versions = Versions()
        self._troubles = {sweep: Outage(_title(sweep.__name__), log) for sweep in _SWEEPS}

    def handle(self, tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        """Do what a pile of messages asks for, in the transaction in which they are completed."""
        inbox = sorted_out(deliveries)
        if inbox.hellos:
            announce(tx, inbox.hellos, tx.time())
            self._versions.expect_news()
        agenda = self._open(tx, batches_of(tx, inbox))
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
        follow_up(agenda)

    def sweep(self) -> None:
        """Look after what no message will: lost and dead jobs, members who still wait, what is over."""
        for sweep, trouble in self._troubles.items():
            try:
                sweep(self._store, self._open)
            except Exception as fault:  # noqa: BLE001 - it is told, and the next sweeps go on
                trouble.failed(fault)
                if isinstance(fault, MatoolkitError) and fault.is_outage:
                    return
            else:
                trouble.worked()

    def _open(self, tx: Transaction, batch_ids: set[int]) -> Agenda:
        return open_agenda(tx, self._publisher, self._versions, self._limits, batch_ids)


def _title(name: str) -> str:
    return f"the sweep of {name.removeprefix('sweep_').replace('_', ' ')}"
