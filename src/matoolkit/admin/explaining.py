"""Why does nothing happen? Batches, phases and members explained, and what comes next (rules X1 to X5).

The members of a batch are grouped by what decides for what they wait. One of each group is asked, so what an answer
costs does not grow with members.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter

from matoolkit.admin.batchwhys import BatchWhys
from matoolkit.admin.failurewhys import failures_of
from matoolkit.admin.memberwhys import MemberWhys, whys_of_members
from matoolkit.admin.queries import existing_batch
from matoolkit.admin.scene import Scene, load_scene
from matoolkit.admin.transit import Transit
from matoolkit.admin.upcoming import Coming, Ending, what_comes
from matoolkit.domain.explaining import without_repeats
from matoolkit.domain.keys import folded
from matoolkit.domain.states import OPEN_PHASES, OPEN_STEPS, UNFINISHED_BATCHES, BatchStatus, MemberStatus, PhaseStatus
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.errors import NoSuchPhase, UnknownMember
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.counts import step_counts_by_place
from matoolkit.store.members import MemberRow, members_by_id
from matoolkit.store.phases import PhaseRow
from matoolkit.store.waiting import SAMPLES, WaitingMember, open_batches, waiting_members

_KINDS = {kind: place for place, kind in enumerate(WhyKind)}
_LAST = (1 << 30, 0, 0)


@dataclass(frozen=True, slots=True)
class Sample:
    """One of the members of a line."""

    member_id: int
    member_key: str


@dataclass(slots=True)
class Line:
    """Members who wait for the same: how many, and some of them. Who waits for two things is in two lines."""

    why: Why
    phase: PhaseRow | None
    members: int = 0
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PhaseExplained:
    """A phase that has not ended, and for what it waits."""

    phase: PhaseRow
    whys: Sequence[Why]


@dataclass(frozen=True, slots=True)
class Unexplained:
    """Something open that has no reason to wait; there is none unless there is a bug (rule X5)."""

    batch_id: int
    what: str
    things: int = 1


@dataclass(frozen=True, slots=True)
class BatchExplained:
    """For what a batch waits: as a whole, phase by phase, and its members in lines; and what comes next."""

    at: datetime
    batch: BatchRow
    phase: PhaseRow | None
    whys: Sequence[Why]
    phases: Sequence[PhaseExplained]
    members: int
    lines: Sequence[Line]
    coming: Sequence[Coming]
    unexplained: Sequence[Unexplained]


@dataclass(frozen=True, slots=True)
class MemberExplained:
    """For what a member waits, and what comes next for it."""

    at: datetime
    batch: BatchRow
    member: MemberRow
    phase: PhaseRow | None
    is_open: bool
    whys: Sequence[Why]
    coming: Sequence[Coming]

    @property
    def is_stuck(self) -> bool:
        """Whether it waits for a person."""
        return any(why.ended_by is EndedBy.PERSON for why in self.whys)

    @property
    def unexplained(self) -> Sequence[Unexplained]:
        """Itself, if nothing says what it waits for."""
        if not self.is_open or self.whys:
            return ()
        return (Unexplained(self.batch.id, f"member {self.member.id}"),)


def explain_batch(store: Store, batch_id: int, phase_name: str | None = None) -> BatchExplained:
    """Say what a batch waits for; with a phase only what is about that."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        scene = load_scene(tx, [batch_id])
        phase = None if phase_name is None else _phase_named(scene, batch, phase_name)
        return _Explaining(tx, scene).batch(batch, phase)


def explain_member(store: Store, batch_id: int, member_id: int) -> MemberExplained:
    """Say what a member waits for."""
    with store.reading() as tx:
        return explained_member(tx, existing_batch(tx, batch_id), member_id)


def explained_member(tx: Transaction, batch: BatchRow, member_id: int) -> MemberExplained:
    """Say what a member of a batch waits for."""
    if not any(one.batch_id == batch.id for one in members_by_id(tx, [member_id])):
        raise UnknownMember(batch.id, member_id)
    scene = load_scene(tx, [batch.id])
    of_batches = BatchWhys(tx, scene)
    found = whys_of_members(tx, scene, of_batches, [member_id])[member_id]
    waits_for_init = any(why.kind is WhyKind.INIT for why in found.whys)
    of_init = of_batches.of_batch(batch) if waits_for_init else []
    whys = [*failures_of(tx, scene, found.member), *found.whys, *of_init]
    one = replace(found, whys=without_repeats(whys))
    following = scene.pending_of(batch) if one.member.status is MemberStatus.ACTIVE and one.is_open else ()
    coming = what_comes(scene, batch, [Ending(why, one.phase) for why in one.whys], following)
    return MemberExplained(scene.at, batch, one.member, one.phase, one.is_open, one.whys, coming)


def unexplained(tx: Transaction, transit: Transit | None = None) -> list[Unexplained]:
    """Return everything open that has no reason to wait, in all batches (rule X5).

    `transit` is what is on its way to the orchestrator, if the caller knows it better than this database does.
    """
    scene = load_scene(tx, open_batches(tx), transit)
    explaining = _Explaining(tx, scene)
    return [thing for batch in scene.batches.values() for thing in explaining.batch(batch).unexplained]


class _Explaining:
    """Explains the batches of a scene; the members of all of them are read together."""

    def __init__(self, tx: Transaction, scene: Scene) -> None:
        self._scene = scene
        self._of_batches = BatchWhys(tx, scene)
        rows = waiting_members(tx, scene.batches, scene.at, scene.folds, scene.transit.members, by_joining=True)
        self._groups = [list(group) for _, group in groupby(rows, attrgetter("group"))]
        self._whys = whys_of_members(tx, scene, self._of_batches, [group[0].member_id for group in self._groups])
        self._in_phases = _members_in_phases(tx, scene)

    def batch(self, batch: BatchRow, phase: PhaseRow | None = None) -> BatchExplained:
        """Explain a batch, or one of its phases."""
        groups = [group for group in self._groups if group[0].batch_id == batch.id]
        opened = [one for one in _in_order(self._scene.phases[batch.id]) if one.status in OPEN_PHASES]
        phases = [
            PhaseExplained(one, self._of_batches.of_phase(one, self._in_phases.get(one.id)))
            for one in opened
            if phase is None or one == phase
        ]
        if phase is not None and not phases:
            phases = [PhaseExplained(phase, self._of_batches.of_phase(phase))]
        whys, lines = self._of_batches.of_batch(batch), _lines(self._told(groups, phase))
        endings = [
            *(Ending(why) for why in whys),
            *(Ending(why, one.phase) for one in phases for why in one.whys),
            *(Ending(line.why, line.phase, line.members) for line in lines),
        ]
        following = [one for one in self._scene.pending_of(batch) if phase is None or one == phase]
        coming = what_comes(self._scene, batch, endings, following if batch.status in UNFINISHED_BATCHES else ())
        members = sum(group[0].members for group in groups if self._whys[group[0].member_id].is_open)
        left_over = list(self._left_over(batch, whys, phases, groups))
        return BatchExplained(self._scene.at, batch, phase, whys, phases, members, lines, coming, left_over)

    def _told(
        self, groups: Sequence[Sequence[WaitingMember]], phase: PhaseRow | None
    ) -> Iterator[tuple[Sequence[WaitingMember], MemberWhys]]:
        for group in groups:
            one = self._whys[group[0].member_id]
            if phase is None or one.phase == phase:
                yield group, one
            elif one.is_open and one.phase is not None and one.phase.order < phase.order:
                before = Why(WhyKind.EARLIER_PHASE, f"{one.phase.phase_name} comes first")
                yield group, replace(one, whys=[before])

    def _left_over(
        self,
        batch: BatchRow,
        whys: Sequence[Why],
        phases: Sequence[PhaseExplained],
        groups: Sequence[Sequence[WaitingMember]],
    ) -> Iterator[Unexplained]:
        """Name what is open and has no reason to wait."""
        for group in groups:
            one = self._whys[group[0].member_id]
            if one.is_open and not one.whys:
                yield Unexplained(batch.id, f"member {group[0].member_id}", group[0].members)
        for phase in phases:
            if not phase.whys:
                yield Unexplained(batch.id, f"phase {phase.phase.phase_name}")
        # An active one whose parts have all ended ends with the same pile, or a sweep finds it (rule O16). While one is
        # yet to begin, its phases and members say no more than that they wait for it.
        begins = batch.status in UNFINISHED_BATCHES and batch.status is not BatchStatus.ACTIVE
        if begins and not whys:
            yield Unexplained(batch.id, "the batch")


def _lines(told: Iterator[tuple[Sequence[WaitingMember], MemberWhys]]) -> list[Line]:
    """Put together those who wait for the same, phase by phase."""
    lines: dict[tuple[object, ...], Line] = {}
    for group, one in told:
        for why in one.whys:
            phase = one.phase
            key = (phase.id if phase else None, why.kind, why.sentence, why.gate_id, why.command)
            line = lines.setdefault(key, Line(replace(why, detail=None, work_id=None), phase))
            line.members += group[0].members
            line.samples += [Sample(member.member_id, member.member_key) for member in group]
            line.why = replace(
                line.why, since=_first(line.why.since, why.since), until=_first(line.why.until, why.until)
            )
    for line in lines.values():
        line.samples = sorted(line.samples, key=attrgetter("member_id"))[:SAMPLES]
    return sorted(lines.values(), key=_place)


def _place(line: Line) -> tuple[object, ...]:
    order = line.phase.order if line.phase is not None else _LAST
    return order, -line.members, _KINDS[line.why.kind], line.why.sentence


def _first(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((at for at in (one, other) if at is not None), default=None)


def _in_order(phases: Sequence[PhaseRow]) -> list[PhaseRow]:
    return sorted(phases, key=lambda phase: phase.order)


def _members_in_phases(tx: Transaction, scene: Scene) -> dict[int, int]:
    """Count the members who have something open in phases that are under way: so many have the last step open."""
    running = [one.id for mine in scene.phases.values() for one in mine if one.status is PhaseStatus.DISPATCHED]
    found: dict[int, tuple[int, int]] = {}
    for count in step_counts_by_place(tx, running):
        if count.status in OPEN_STEPS:
            last, members = found.get(count.phase_execution_id, (-1, 0))
            members = members if count.step_index == last else 0
            found[count.phase_execution_id] = (count.step_index, members + count.count)
    return {number: members for number, (_, members) in found.items()}


def _phase_named(scene: Scene, batch: BatchRow, name: str) -> PhaseRow:
    """Return the phase of this name; if several versions have one, that of the latest."""
    named = [phase for phase in scene.phases[batch.id] if folded(phase.phase_name) == folded(name)]
    if not named:
        raise NoSuchPhase(batch.id, name)
    return max(named, key=attrgetter("runbook_version"))
