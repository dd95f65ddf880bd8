"""What is known while a pile of messages is handled, and what is still to do.

Handlers change rows and note here what that touches: members that may have a next step, phases and batches that may
have ended. The consequences are worked out once for the whole agenda, and all messages leave together.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from matoolkit.announcing.doors import phase_doors
from matoolkit.announcing.signoffs import sign_offs_of_inits
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.gates import Gate, Gates
from matoolkit.domain.signoff import SignOffs
from matoolkit.domain.states import UNFINISHED_BATCHES, BatchStatus, PhaseStatus
from matoolkit.orchestrator.versions import Definition, Version, Versions
from matoolkit.ports import Outgoing, Publisher
from matoolkit.runbook.model import Rollout, Runbook
from matoolkit.store.batches import NarrowBatch, lock_narrow_batches
from matoolkit.store.gates import gates_in_force
from matoolkit.store.narrow_executions import InitState, NextStep, StepState
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Limits:
    """What the settings say about work in general."""

    step_timeout: timedelta = timedelta(hours=24)
    throttle_limit: timedelta = timedelta(hours=24)
    slice_size: int = 5000


class Limited(NamedTuple):
    """A phase under way that not all members go through at once, and what the runbook says of that."""

    phase: PhaseRow
    rollout: Rollout

    @property
    def has_budget(self) -> bool:
        """Whether it counts when members fail; not where a phase was opened for a person's retry of some."""
        is_limited = self.rollout.pilot_first or self.rollout.max_failures is not None
        return is_limited and self.phase.member_count is not None


@dataclass(slots=True)
class Offered:
    """How far a pile has come in offering the places of a phase: up to which step, and in how many rounds."""

    after: int = 0
    rounds: int = 0


@dataclass(slots=True)
class Agenda:
    """Batches that are locked, their phases, and what was touched so far."""

    tx: Transaction
    at: datetime
    publisher: Publisher
    versions: Versions
    limits: Limits
    batches: dict[int, NarrowBatch]
    gates: Gates
    phases: dict[int, PhaseRow]
    numbers_of_phases: dict[int, list[int]]
    # Since when gates were read that were shut at some time, and which (rule G7).
    gates_since: tuple[datetime, Sequence[Gate]] | None = None
    steps_of_phases: dict[int, Sequence[Definition]] = field(default_factory=dict)
    known_doors: dict[int, PhaseDoor] = field(default_factory=dict)
    offered: dict[int, Offered] = field(default_factory=dict)
    failed_in: set[int] = field(default_factory=set)
    failed_steps: list[StepState | NextStep] = field(default_factory=list)
    failed_inits: list[InitState] = field(default_factory=list)
    members_to_continue: set[int] = field(default_factory=set)
    inits_to_continue: set[int] = field(default_factory=set)
    phases_to_end: set[int] = field(default_factory=set)
    batches_to_end: set[int] = field(default_factory=set)
    messages: list[Outgoing] = field(default_factory=list)

    def version_of(self, batch_id: int) -> Version:
        """Return the version that a batch follows."""
        return self.versions.of_batch(self.tx, self.batches[batch_id].runbook_id)

    def version(self, batch_id: int, number: int) -> Version:
        """Return a version of the runbook of a batch, whether the batch still follows it or not."""
        return self.versions.numbered(self.tx, self.batches[batch_id].runbook_name, number)

    def phases_of(self, batch_id: int) -> Sequence[PhaseRow]:
        """Return all phases of a batch."""
        return [self.phases[number] for number in self.numbers_of_phases.get(batch_id, ())]

    def doors(self, phase_ids: Collection[int]) -> Mapping[int, PhaseDoor]:
        """Return phases as gates see them, at least these."""
        wanted = [self.phases[number] for number in phase_ids if number not in self.known_doors]
        if wanted:
            phases = self.phases.values()
            found = phase_doors(self.tx, wanted, phases, self.batches, self.at, self._runbook_of)
            for door in found.values():
                # Nobody takes a place before all who wait for one were compared (rule C5).
                if door.places is not None:
                    door.places.free = 0
            self.known_doors |= found
        return self.known_doors

    def init_sign_offs(self, versions: Mapping[int, Version]) -> Mapping[int, SignOffs]:
        """Return what must be signed off before inits of batches begin, by batch; most ask for nothing."""
        wanted = ((self.batches[number], one.number, one.runbook) for number, one in versions.items())
        return sign_offs_of_inits(self.tx, wanted, self.at)

    def limited_phases(self) -> list[Limited]:
        """Return the phases under way that have a rollout."""
        under_way = (
            phase
            for phase in self.phases.values()
            if phase.status is PhaseStatus.DISPATCHED and self.batches[phase.batch_id].status in UNFINISHED_BATCHES
        )
        rules = ((phase, self._runbook_of(phase).phases[phase.phase_index].rollout) for phase in under_way)
        return [Limited(phase, rollout) for phase, rollout in rules if rollout is not None]

    def _runbook_of(self, phase: PhaseRow) -> Runbook:
        return self.version(phase.batch_id, phase.runbook_version).runbook

    def place_of(self, phase: PhaseRow) -> int:
        """Return where a phase stands in the order in which members go through the phases of its version."""
        others = (other for other in self.phases_of(phase.batch_id) if other.runbook_version == phase.runbook_version)
        return sum(other.order < phase.order for other in others)

    def note_status(self, batch_ids: Collection[int], status: BatchStatus) -> None:
        """Remember which status batches have now."""
        for batch_id in batch_ids:
            self.batches[batch_id] = replace(self.batches[batch_id], status=status)

    def is_done(self) -> bool:
        """Tell whether nothing is left that may have consequences."""
        return not (self.failed_steps or self.failed_inits or self.members_to_continue or self.inits_to_continue)


def open_agenda(
    tx: Transaction, publisher: Publisher, versions: Versions, limits: Limits, batch_ids: Collection[int]
) -> Agenda:
    """Lock the batches that messages concern, in the order of their ids, and only then read (rules M5 and G3)."""
    batches = {batch.id: batch for batch in lock_narrow_batches(tx, batch_ids)}
    phases = {phase.id: phase for phase in phases_of_batches(tx, batches)}
    numbers: dict[int, list[int]] = {}
    for phase in phases.values():
        numbers.setdefault(phase.batch_id, []).append(phase.id)
    at = tx.time()
    gates = Gates(gates_in_force(tx, at) if batches else ())
    versions.refresh(tx, at)
    return Agenda(tx, at, publisher, versions, limits, batches, gates, phases, numbers)
