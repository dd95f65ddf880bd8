"""The matrix of a batch: every member times every step of its phases, a byte for each cell.

The bytes go step by step, and within a step member by member, in the order of their ids. Who looks again hands over
what was seen before: only phases in which something moves, or whose counts are others now, are read again.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from matoolkit.admin.queries import existing_batch
from matoolkit.domain.matrix import Beginning, CellState, Standing, standing_of, state_in, without_step
from matoolkit.domain.states import PhaseStatus, StepStatus
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.counting import changes_of
from matoolkit.store.counts import PlacedStepCount, step_counts_by_place
from matoolkit.store.matrix import (
    EPOCH_SHIFT,
    EPOCHS,
    INDEX_SHIFT,
    MEMBER_SHIFT,
    members_of_matrix,
    packed_steps_of_phase,
)
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import runbook_version

_MOVING = frozenset({StepStatus.DISPATCHED, StepStatus.POLLING})
_CELL, _INDEX, _EPOCH = (1 << INDEX_SHIFT) - 1, (1 << EPOCH_SHIFT - INDEX_SHIFT) - 1, EPOCHS - 1
# In quotes, because Python 3.11 cannot subscript it.
Numbers: TypeAlias = "array[int]"


@dataclass(frozen=True, slots=True)
class Column:
    """A step of a phase, for all members."""

    phase_id: int
    phase: str
    step_index: int
    step: str


@dataclass(frozen=True, slots=True)
class Everybody:
    """The members of a batch in the order of their ids, and what their cells depend on besides their steps."""

    ids: Numbers
    epochs: Numbers
    standings: bytes
    undone: Sequence[int]
    beginnings: Mapping[int, Beginning]

    def __len__(self) -> int:
        """Say how many they are."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class _Facts:
    """What tells cheaply whether something may have changed."""

    changes: int
    phases: Sequence[PhaseRow]
    counts: Mapping[int, Sequence[PlacedStepCount]]

    def is_at_rest(self, phase_id: int, before: "_Facts | None") -> bool:
        """Whether nothing can have happened in a phase since it was looked at before."""
        counted = self.counts.get(phase_id, ())
        if before is None:
            return not counted
        # Jobs that are out may come back and go out again without a count being another.
        return counted == before.counts.get(phase_id, ()) and not any(one.status in _MOVING for one in counted)


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells of a batch as they were at one look."""

    columns: Sequence[Column]
    members: Everybody
    cells: bytes
    facts: _Facts
    steps: Mapping[int, Sequence[bytes]]


def read_matrix(store: Store, batch_id: int, before: Matrix | None = None) -> Matrix:
    """Read the matrix of a batch, or what can have changed of it since it was read before.

    What tells of changes is read first: what happens while cells are read is noticed at the next look. Each phase is
    read by itself, so that no transaction lasts long.
    """
    with store.reading() as tx:
        changes = changes_of(tx, [batch_id]).get(batch_id, 0)
        if before is not None and before.facts.changes == changes:
            return before
        facts = _facts(tx, batch_id, changes)
        members = _everybody(tx, batch_id)
        known = before is not None and _ids(before.facts.phases) == _ids(facts.phases)
        columns = before.columns if before and known else _columns(tx, batch_id, facts.phases)
    if before is not None and (before.members.ids != members.ids or before.members.epochs != members.epochs):
        before = None  # whose cells are whose has changed
    steps: dict[int, Sequence[bytes]] = {}
    for phase in facts.phases:
        wide = sum(column.phase_id == phase.id for column in columns)
        if before and phase.id in before.steps and facts.is_at_rest(phase.id, before.facts):
            steps[phase.id] = before.steps[phase.id]
        elif facts.is_at_rest(phase.id, None):
            steps[phase.id] = [bytes(len(members))] * wide
        else:
            with store.reading() as tx:
                steps[phase.id] = _steps_of_phase(tx, phase.id, wide, members)
    cells = b"".join(
        cells
        for phase in facts.phases
        for cells in _filled(steps[phase.id], phase, _place_of(phase, facts.phases), members)
    )
    return Matrix(columns, members, cells, facts, steps)


def _facts(tx: Transaction, batch_id: int, changes: int) -> _Facts:
    found = phases_of_batches(tx, [batch_id])
    phases = sorted(
        (phase for phase in found if phase.status is not PhaseStatus.SUPERSEDED), key=lambda phase: phase.order
    )
    counted = groupby(step_counts_by_place(tx, _ids(phases)), lambda one: one.phase_execution_id)
    return _Facts(changes, phases, {number: list(some) for number, some in counted})


def _ids(phases: Sequence[PhaseRow]) -> list[int]:
    return [phase.id for phase in phases]


def _place_of(phase: PhaseRow, phases: Sequence[PhaseRow]) -> int:
    return sum(one.runbook_version == phase.runbook_version and one.order < phase.order for one in phases)


def _columns(tx: Transaction, batch_id: int, phases: Sequence[PhaseRow]) -> list[Column]:
    name = existing_batch(tx, batch_id).runbook_name
    steps = {version: _steps_of_version(tx, name, version) for version in {phase.runbook_version for phase in phases}}
    return [
        Column(phase.id, phase.phase_name, index, step)
        for phase in phases
        for index, step in enumerate(steps[phase.runbook_version].get(phase.phase_name, ()))
    ]


def _steps_of_version(tx: Transaction, name: str, version: int) -> dict[str, list[str]]:
    row = runbook_version(tx, name, version)
    try:
        phases = parse_runbook(row.yaml_content).phases if row else ()
    except InvalidRunbook:
        # Today's rules refuse this document, so nothing of it runs.
        return {}
    return {phase.name: [step.name for step in phase.steps] for phase in phases}


def _everybody(tx: Transaction, batch_id: int) -> Everybody:
    rows = members_of_matrix(tx, batch_id)
    standings = {
        (row.status, row.is_caught_up): standing_of(row.status, is_caught_up=bool(row.is_caught_up)) for row in rows
    }
    return Everybody(
        array("q", [row.id for row in rows]),
        array("q", [row.epoch for row in rows]),
        bytes([standings[row.status, row.is_caught_up] for row in rows]),
        [place for place, row in enumerate(rows) if row.is_undone],
        {
            place: Beginning(row.first_phase_version, row.first_phase_place)
            for place, row in enumerate(rows)
            if row.first_phase_version is not None and row.first_phase_place is not None
        },
    )


def _steps_of_phase(tx: Transaction, phase_id: int, wide: int, members: Everybody) -> list[bytes]:
    """Return the columns of a phase; 0 stands where somebody has no such step in the present epoch."""
    columns = [bytearray(len(members)) for _ in range(wide)]
    first = members.ids[0] if members.ids else 0
    places = {number - first: place for place, number in enumerate(members.ids)}
    epochs = [epoch % EPOCHS for epoch in members.epochs]
    for packed in packed_steps_of_phase(tx, phase_id, first):
        place, index = places.get(packed >> MEMBER_SHIFT), packed >> INDEX_SHIFT & _INDEX
        if place is not None and epochs[place] == packed >> EPOCH_SHIFT & _EPOCH and index < wide:
            columns[index][place] = packed & _CELL
    return [bytes(column) for column in columns]


def _filled(steps: Sequence[bytes], phase: PhaseRow, place: int, members: Everybody) -> list[bytes]:
    """Say of those who have no step in a phase why that is, and of those who were undone that they were."""
    words = bytes(without_step(phase.status, standing) for standing in Standing)
    missing = bytearray(members.standings.translate(words.ljust(256, b"\0")))
    for one, beginning in members.beginnings.items():
        if beginning.version == phase.runbook_version and place < beginning.place:
            missing[one] = CellState.DONE_BEFORE
    return [_filled_column(cells, missing, members.undone) for cells in steps]


def _filled_column(cells: bytes, missing: bytearray, undone: Sequence[int]) -> bytes:
    if cells.count(0) == len(cells):
        return bytes(missing)
    filled = bytearray(cells)
    place = filled.find(0)
    while place >= 0:
        filled[place] = missing[place]
        place = filled.find(0, place + 1)
    for place in undone:
        if state_in(filled[place]) is CellState.SUCCEEDED:
            filled[place] += CellState.UNDONE - CellState.SUCCEEDED
    return bytes(filled)
