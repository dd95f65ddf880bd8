"""Phases that begin (rules T8 and O13)."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

from matoolkit.announcing.cohorts import begin_cohorts
from matoolkit.announcing.messages import phase_due
from matoolkit.announcing.signoffs import use_sign_offs
from matoolkit.announcing.versions import runbooks_of
from matoolkit.ports import Publisher
from matoolkit.store.batches import NarrowBatch
from matoolkit.store.phases import PhaseRow, dispatch_phases
from matoolkit.store.sql.transaction import Transaction


def dispatch_and_announce(
    tx: Transaction,
    publisher: Publisher,
    phases: Collection[PhaseRow],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
) -> list[PhaseRow]:
    """Let phases begin, tell the orchestrator, and return those that did, in the order given."""
    moved = set(dispatch_phases(tx, [phase.id for phase in phases], at))
    # The phases were read before `dispatch_count` grew, so the number of this dispatch is one higher.
    begun = [replace(phase, dispatch_count=phase.dispatch_count + 1) for phase in phases if phase.id in moved]
    runbooks = runbooks_of(tx, begun, batches)
    begin_cohorts(tx, begun, runbooks)
    use_sign_offs(tx, begun, runbooks, batches, at)
    publisher.publish(tx, [phase_due(phase, batches[phase.batch_id]) for phase in begun])
    return begun
