"""Cancelled steps of members: their jobs are taken back, and their phases may be over."""

from collections.abc import Sequence

from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.store.steps import CancelledStep


def note_cancelled(agenda: Agenda, cancelled: Sequence[CancelledStep]) -> None:
    """Take back jobs that no worker has seen, and look whether the phases have ended."""
    withdraw_unsent(agenda.tx, agenda.publisher, cancelled)
    agenda.phases_to_end.update(step.phase_execution_id for step in cancelled)
