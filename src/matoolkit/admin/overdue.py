"""Phases that are due and do not begin, although no gate keeps them: then something is wrong (rule U6)."""

from collections.abc import Sequence
from datetime import datetime

from matoolkit.admin.scene import load_scene
from matoolkit.admin.transit import Transit
from matoolkit.store import Transaction
from matoolkit.store.unresolved import PendingPhase, overdue_phases


def phases_that_nothing_keeps(tx: Transaction, due_before: datetime, at: datetime) -> Sequence[PendingPhase]:
    """Return phases that have been due since before a time, longest first.

    Those that a gate of their own keeps are left out: a sign-off that is missing, a window, that they are late.
    """
    due = overdue_phases(tx, due_before, at)
    kept = load_scene(tx, {phase.batch_id for phase in due}, Transit()).kept if due else {}
    return [phase for phase in due if phase.phase_id not in kept]
