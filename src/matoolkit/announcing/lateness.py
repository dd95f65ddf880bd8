"""Phases that are late, and that a person let begin nevertheless (rules K5 and S7)."""

from collections.abc import Collection

from matoolkit.store.lateness import late_gates_opened_by_people
from matoolkit.store.sql.transaction import Transaction


def let_in_late(tx: Transaction, phase_ids: Collection[int]) -> set[int]:
    """Return the phases that a person let begin although they are late, for the time at which they are due now."""
    return {gate.phase_execution_id for gate in late_gates_opened_by_people(tx, phase_ids) if not gate.is_moved}
