"""What explains some batches, read at once: the same that decides about them (rule X1)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.admin.transit import Transit, look_for_messages
from matoolkit.announcing.doors import load_doors
from matoolkit.domain.cohorts import is_soak_over
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.gates import Gates, kept_phases, may_be_about
from matoolkit.domain.keys import folded
from matoolkit.domain.states import OPEN_PHASES, BatchStatus, PhaseStatus
from matoolkit.domain.why import Why
from matoolkit.domain.windows import has_opened
from matoolkit.store import Transaction
from matoolkit.store.automation import TickRow, automated_runbooks, last_ticks
from matoolkit.store.batches import BatchRow, batches_by_id
from matoolkit.store.gatekeeping import GateRow, gates_to_sweep, unopened_gates
from matoolkit.store.gates import gates_in_force
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import RunbookRow, runbooks_by_id


@dataclass(frozen=True, slots=True)
class Scene:
    """Batches with their phases, the gates that are in force, and what the scheduler did last.

    `kept` are the phases that are due and do not begin, and why. `opening` are gates that have been opened, or whose
    time is over, while those whom they kept are yet to be woken.
    """

    at: datetime
    batches: Mapping[int, BatchRow]
    phases: Mapping[int, Sequence[PhaseRow]]
    doors: Mapping[int, PhaseDoor]
    gates: Gates
    kept: Mapping[int, Sequence[Why]]
    versions: Mapping[int, RunbookRow]
    automated: Collection[str]
    ticks: Mapping[str, TickRow]
    opening: Sequence[GateRow]
    unopened: Sequence[GateRow]
    transit: Transit

    def version_of(self, batch: BatchRow) -> RunbookRow:
        """Return the version that a batch follows."""
        return self.versions[batch.runbook_id]

    def tick_of(self, batch: BatchRow) -> TickRow | None:
        """Return the last tick of a batch's runbook."""
        return self.ticks.get(folded(batch.runbook_name))

    def is_automated(self, batch: BatchRow) -> bool:
        """Tell whether the scheduler reads the source of a batch's runbook."""
        return folded(batch.runbook_name) in self.automated

    def pending_of(self, batch: BatchRow) -> list[PhaseRow]:
        """Return the phases of a batch that have not begun, in their order."""
        pending = [phase for phase in self.phases[batch.id] if phase.status is PhaseStatus.PENDING]
        return sorted(pending, key=lambda phase: phase.order)

    def running_of(self, batch: BatchRow) -> list[PhaseRow]:
        """Return the phases of a batch that are under way, in their order."""
        running = [phase for phase in self.phases[batch.id] if phase.status is PhaseStatus.DISPATCHED]
        return sorted(running, key=lambda phase: phase.order)

    @property
    def folds(self) -> list[str]:
        """The folded keys of people who have a gate of their own."""
        return sorted({gate.member_key_fold for gate in self.gates.in_force if gate.member_key_fold is not None})

    def is_about_to_wake(self, batch: BatchRow, fold: str | None = None) -> bool:
        """Tell whether a gate was opened that kept something in a batch, or a person, who is yet to be woken."""
        return any(self._is_opened(phase) for phase in self.running_of(batch)) or any(
            may_be_about(gate, batch.id, batch.runbook_name) and (fold is None or gate.member_key_fold in (None, fold))
            for gate in self.opening
        )

    def _is_opened(self, phase: PhaseRow) -> bool:
        """Tell whether time has opened a phase, and the next sweep wakes those who waited in it (rule G8)."""
        door = self.doors[phase.id]
        soak = door.rules.rollout.soak if door.rules.rollout is not None else None
        looked_at = phase.woken_at or phase.dispatched_at
        has_window_opened = door.hours is not None and has_opened(door.hours, looked_at, self.at)
        return has_window_opened or is_soak_over(phase.pilot_done_at, soak, phase.woken_at, self.at)


def load_scene(tx: Transaction, batch_ids: Collection[int], transit: Transit | None = None) -> Scene:
    """Read what explains batches; what it costs does not grow with their members."""
    at = tx.time()
    batches = {batch.id: batch for batch in batches_by_id(tx, batch_ids)}
    phases: dict[int, list[PhaseRow]] = {number: [] for number in batches}
    for phase in phases_of_batches(tx, batches):
        phases[phase.batch_id].append(phase)
    every = [phase for mine in phases.values() for phase in mine]
    doors = load_doors(tx, [phase for phase in every if phase.status in OPEN_PHASES], batches, at)
    gates = Gates(gates_in_force(tx, at))
    unopened = unopened_gates(tx)
    return Scene(
        at,
        batches,
        phases,
        doors,
        gates,
        kept_phases(gates, [doors[phase.id] for phase in every if _is_due(phase, batches[phase.batch_id], at)]),
        {row.id: row for row in runbooks_by_id(tx, {batch.runbook_id for batch in batches.values()})},
        automated_runbooks(tx),
        {folded(tick.runbook_name): tick for tick in last_ticks(tx)},
        _opening(tx, unopened, at),
        unopened,
        look_for_messages(tx) if transit is None else transit,
    )


def _is_due(phase: PhaseRow, batch: BatchRow, at: datetime) -> bool:
    is_pending = phase.status is PhaseStatus.PENDING and batch.status is BatchStatus.ACTIVE
    return is_pending and phase.due_at is not None and phase.due_at <= at


def _opening(tx: Transaction, unopened: Sequence[GateRow], at: datetime) -> list[GateRow]:
    opened = [gate for gate in gates_to_sweep(tx, at) if gate.opened_at is not None]
    return opened + [gate for gate in unopened if gate.shut_until is not None and gate.shut_until <= at]
