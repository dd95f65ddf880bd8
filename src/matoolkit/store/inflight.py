"""Batches in flight as the rules of version transitions see them (rules V2 to V6)."""

from collections import defaultdict
from collections.abc import Sequence

from matoolkit.domain.states import OverdueBehavior
from matoolkit.domain.transitions import BatchInFlight, PhaseInFlight, TargetVersion
from matoolkit.runbook.model import Runbook
from matoolkit.store.batches import BatchRow
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import RunbookRow
from matoolkit.store.sql.transaction import Transaction


def batches_in_flight(tx: Transaction, batches: Sequence[BatchRow], runbook_id: int | None) -> list[BatchInFlight]:
    """Return batches with all their phases; those that follow the version with this id are current."""
    phases: dict[int, list[PhaseRow]] = defaultdict(list)
    for phase in phases_of_batches(tx, [batch.id for batch in batches]):
        phases[phase.batch_id].append(phase)
    return [in_flight(batch, phases[batch.id], runbook_id) for batch in batches]


def in_flight(batch: BatchRow, phases: Sequence[PhaseRow], runbook_id: int | None) -> BatchInFlight:
    """Say of a batch what matters to a new version."""
    return BatchInFlight(
        id=batch.id,
        status=batch.status,
        start_time=batch.batch_start_time,
        phases=tuple(_phase(phase) for phase in phases),
        is_current=batch.runbook_id == runbook_id,
        is_manual=batch.is_manual,
        is_reopened=batch.reopened_at is not None,
        is_held=batch.is_held,
        is_unbegun=batch.is_unbegun,
    )


def target_of(row: RunbookRow, runbook: Runbook) -> TargetVersion:
    """Return a stored version as a target; `ignore` is for the one transition that follows its publication (V4)."""
    overdue = OverdueBehavior.RERUN if row.ignore_overdue_applied else row.overdue_behavior
    return TargetVersion(row.version, runbook, overdue, row.rerun_init)


def _phase(row: PhaseRow) -> PhaseInFlight:
    return PhaseInFlight(
        id=row.id,
        version=row.runbook_version,
        name=row.phase_name,
        index=row.phase_index,
        offset_minutes=row.offset_minutes,
        status=row.status,
        # One that was skipped has no dispatch, but is opened with its steps for a member who joins late (rule O10).
        was_dispatched=row.dispatched_at is not None or row.expanded_at is not None,
    )
