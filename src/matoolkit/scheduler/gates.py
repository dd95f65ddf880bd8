"""Gates that open by themselves, and work behind them that is yet to be woken (rule G8)."""

import logging
from datetime import datetime

from matoolkit.announcing.gatekeeping import wake_all
from matoolkit.domain.gates import GateKind
from matoolkit.ports import Publisher
from matoolkit.scheduler.lateness import without_subject
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.gatekeeping import (
    batches_without_work,
    gates_by_id,
    gates_to_sweep,
    open_gates,
    unopened_gates,
)
from matoolkit.store.phases import phases_over
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)

_CALENDAR = "calendar"
_ENDED = "system"


def look_after_gates(store: Store, publisher: Publisher, confirm: Confirm) -> int:
    """Open gates whose time is over or whose batch has ended, wake what open gates kept, and return how many opened."""
    with store.reading() as tx:
        over = any(ids for ids, *_ in _over(tx, tx.time()))
    if over:
        with store.transaction() as tx:
            confirm(tx)
            _open_those_over(tx, tx.time())
    with store.reading() as tx:
        opened = [gate for gate in gates_to_sweep(tx, tx.time()) if gate.opened_at is not None]
    for gate in opened:
        wake_all(store, publisher, gate, confirm)
    return len(opened)


def _open_those_over(tx: Transaction, at: datetime) -> None:
    opened: list[int] = []
    for ids, by, why in _over(tx, at):
        opened += open_gates(tx, ids, at, by, why)
    for gate in gates_by_id(tx, opened):
        log.info("gate %s opened by %s", gate.id, gate.opened_by, extra={"batch": gate.batch_id})


def _over(tx: Transaction, at: datetime) -> list[tuple[list[int], str, str | None]]:
    """Return the gates that open by themselves: their numbers, who opens them, and why."""
    unopened = unopened_gates(tx)
    timed_out = [gate.id for gate in unopened if gate.shut_until is not None and gate.shut_until <= at]
    ended = set(batches_without_work(tx, [gate.batch_id for gate in unopened if gate.batch_id is not None]))
    gone = phases_over(tx, [gate.phase_execution_id for gate in unopened if gate.phase_execution_id is not None])
    over = (gate for gate in unopened if gate.batch_id in ended or gate.phase_execution_id in gone)
    without_work = [gate.id for gate in over if gate.id not in timed_out]
    late = without_subject(tx, at) if any(gate.kind is GateKind.LATE for gate in unopened) else []
    return [
        (timed_out, _CALENDAR, None),
        (without_work, _ENDED, "what it kept has ended"),
        (late, _ENDED, "the phase is due at another time now, or does not begin any more"),
    ]
