"""What people look at: batches with their counts, a member's whole history, the state of a runbook.

No answer but a history grows with the number of members; a history grows with what one member did.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

import orjson

from matoolkit.admin.secrecy import secret_columns
from matoolkit.announcing.delays import delays_of
from matoolkit.domain.delays import Delay
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.states import MemberState, MemberStatus, PhaseStatus, SignOffSubject, StepStatus
from matoolkit.errors import HoldChanged, UnknownBatch, UnknownDeadLetter, UnknownMember, UnknownRunbook, UnknownVersion
from matoolkit.runbook.offsets import Offset
from matoolkit.store import Store, Transaction
from matoolkit.store.automation import AutomationRow, TickRow, automation_of, last_tick
from matoolkit.store.batches import BatchRow, batches_by_id, unfinished_batches
from matoolkit.store.cohorts import PilotTally, pilot_tallies
from matoolkit.store.counts import BatchCount, active_counts, batch_counts, member_counts, step_counts
from matoolkit.store.deadletters import DeadLetterRow, dead_letters_by_id
from matoolkit.store.enrolments import members_page
from matoolkit.store.exclusions import count_exclusions
from matoolkit.store.executions import InitRow, RollbackRow, StepRow
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.members import MemberLabel, MemberRow, member_labels, members_by_id
from matoolkit.store.memberstates import last_completed_phases, states_of_members
from matoolkit.store.narrow_members import members_with_keys
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.places import places_taken
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.runbooks import (
    RunbookRow,
    active_runbook,
    latest_version,
    runbook_names,
    runbook_version,
    runbook_versions,
)
from matoolkit.store.signoffs import signatures_of_batches
from matoolkit.store.statecounts import state_counts
from matoolkit.store.steps import steps_of_members
from matoolkit.store.undofailures import count_undo_failures

_HELD_SHOWN = 100


@dataclass(frozen=True, slots=True)
class RolloutView:
    """How a phase goes that not all members go through at once: how far its pilots are, and how many places are taken.

    Without pilots in the batch nothing is said of them.
    """

    members: int
    pilots: PilotTally | None
    pilots_done_at: datetime | None
    places_taken: int


@dataclass(frozen=True, slots=True)
class PhaseView:
    """A phase and how many of its steps are in which state."""

    phase: PhaseRow
    steps: Mapping[StepStatus, int]
    rollout: RolloutView | None = None


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch, and how many of its members have which status and are in which state (rule U1)."""

    batch: BatchRow
    members: Mapping[MemberStatus, int]
    states: Mapping[MemberState, int]


@dataclass(frozen=True, slots=True)
class BatchDetail:
    """A batch with its phases, the steps of its init, and how many undo steps have failed."""

    view: BatchView
    phases: Sequence[PhaseView]
    inits: Sequence[InitRow]
    undo_failures: int


@dataclass(frozen=True, slots=True)
class HoldView:
    """What a batch waits for a person to approve: so many members, the first of them by name, or a new start.

    `waits_for` is what keeps an approval from being followed, if something does. `new_dues` says when the phases that
    have not begun would be due with the new start, and `delays` which of them freezes and windows would then keep until
    they are late (rule K6). `voided` has signed off what would then be another T (rule S5).
    """

    batch: BatchRow
    kind: HoldKind
    count: int
    members: Sequence[str]
    new_start: str | None
    waits_for: str | None = None
    new_dues: Sequence[tuple[str, datetime]] = ()
    delays: Sequence[Delay] = ()
    voided: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member, its state, and the last phase that it has completed (rule U1)."""

    row: MemberRow
    state: MemberState
    last_completed_phase: str | None


@dataclass(frozen=True, slots=True)
class MemberHistory:
    """All that happened to a member of a batch, in all its epochs."""

    member: MemberView
    secret_columns: frozenset[str]
    phases: Mapping[int, str]
    steps: Sequence[StepRow]
    rollbacks: Sequence[RollbackRow]


@dataclass(frozen=True, slots=True)
class RunbookStatus:
    """Whether a runbook is at work, what its last tick did, what went wrong last, and which batches are held."""

    runbook: RunbookRow
    automation: AutomationRow
    tick: TickRow | None
    batches: Sequence[BatchCount]
    held: Sequence[BatchRow]
    excluded: int


def existing_batch(tx: Transaction, batch_id: int) -> BatchRow:
    """Return a batch, or say that there is none."""
    found = batches_by_id(tx, [batch_id])
    if not found:
        raise UnknownBatch(batch_id)
    return found[0]


def latest_runbook(tx: Transaction, name: str) -> RunbookRow:
    """Return the active version of a runbook, else its newest one."""
    row = active_runbook(tx, name) or latest_version(tx, name)
    if row is None:
        raise UnknownRunbook(name, runbook_names(tx))
    return row


def versions_of(store: Store, name: str) -> list[RunbookRow]:
    """Return all versions of a runbook, newest first."""
    with store.reading() as tx:
        latest_runbook(tx, name)
        return runbook_versions(tx, name)


def one_version(store: Store, name: str, version: int) -> RunbookRow:
    """Return one version of a runbook."""
    with store.reading() as tx:
        latest = latest_runbook(tx, name)
        row = runbook_version(tx, name, version)
        if row is None:
            raise UnknownVersion(latest.name, version, runbook_versions(tx, name)[0].version)
        return row


def automation_status(tx: Transaction, name: str) -> AutomationRow:
    """Return whether a runbook is automated; without a decision it is not."""
    runbook = latest_runbook(tx, name)
    return automation_of(tx, name) or AutomationRow(runbook.name, False, None, None, None, None)


def what_waits(store: Store, name: str) -> str | None:
    """Say why no tick acts on decisions about a runbook's batches, if none does (rules T1 and V7)."""
    with store.reading() as tx:
        return _what_ticks_wait_for(tx, name)


def _what_ticks_wait_for(tx: Transaction, name: str) -> str | None:
    runbook = latest_runbook(tx, name)
    if not runbook.is_active:
        return f"no version of {runbook.name} is active: publish one"
    if not automation_status(tx, name).automation_enabled:
        return f"automation of {runbook.name} is off: enable it"
    return None


def _whom_it_waits_for(tx: Transaction, batch: BatchRow) -> str | None:
    """Say so if everybody has left a batch that has not begun: an approval still counts for them."""
    if not batch.is_unbegun or active_counts(tx, [batch.id]):
        return None
    return "nobody is in the batch: it begins when they return, and is cancelled after T"


def runbook_status(store: Store, name: str) -> RunbookStatus:
    """Return how a runbook is doing."""
    with store.reading() as tx:
        runbook = latest_runbook(tx, name)
        counts = [count for count in batch_counts(tx) if count.runbook_name == runbook.name]
        held = [batch for batch in unfinished_batches(tx, runbook.name) if batch.is_held]
        excluded = count_exclusions(tx, runbook.name)
        return RunbookStatus(runbook, automation_status(tx, name), last_tick(tx, name), counts, held, excluded)


def batch_views(tx: Transaction, batches: Sequence[BatchRow]) -> list[BatchView]:
    """Return batches with the counts of their members."""
    counts = member_counts(tx, [batch.id for batch in batches])
    statuses: dict[int, dict[MemberStatus, int]] = defaultdict(dict)
    for count in counts:
        statuses[count.batch_id][count.status] = count.count
    states: dict[int, dict[MemberState, int]] = defaultdict(dict)
    for found in state_counts(tx, counts):
        states[found.batch_id][found.state] = found.count
    return [BatchView(batch, statuses[batch.id], states[batch.id]) for batch in batches]


def member_views(tx: Transaction, rows: Sequence[MemberRow]) -> list[MemberView]:
    """Return members with their states."""
    ids = [row.id for row in rows]
    states, phases = states_of_members(tx, ids), last_completed_phases(tx, ids)
    return [MemberView(row, states[row.id], phases.get(row.id)) for row in rows]


def phase_views(tx: Transaction, batch_id: int) -> list[PhaseView]:
    """Return the phases of a batch, superseded ones included, with the counts of their steps."""
    phases = phases_of_batches(tx, [batch_id])
    counted: dict[int, dict[StepStatus, int]] = defaultdict(dict)
    for count in step_counts(tx, [phase.id for phase in phases]):
        counted[count.phase_execution_id][count.status] = count.count
    rollouts = _rollouts(tx, [phase for phase in phases if phase.member_count is not None])
    return [PhaseView(phase, counted[phase.id], rollouts.get(phase.id)) for phase in phases]


def _rollouts(tx: Transaction, phases: Collection[PhaseRow]) -> dict[int, RolloutView]:
    """Tell how phases with a rollout go; the others did not note with how many members they began."""
    numbers = [phase.id for phase in phases]
    tallies, taken = pilot_tallies(tx, numbers), places_taken(tx, numbers)
    return {
        phase.id: RolloutView(
            phase.member_count or 0, tallies.get(phase.id), phase.pilot_done_at, taken.get(phase.id, 0)
        )
        for phase in phases
    }


def batch_detail(store: Store, batch_id: int) -> BatchDetail:
    """Return a batch with its phases, the steps of its init, and counts instead of rows."""
    with store.reading() as tx:
        (view,) = batch_views(tx, [existing_batch(tx, batch_id)])
        failed = count_undo_failures(tx, batch_id=batch_id)
        return BatchDetail(view, phase_views(tx, batch_id), inits_of_batches(tx, [batch_id]), failed)


def hold_of(store: Store, batch_id: int) -> HoldView:
    """Return what a batch is held for, with the first of the members that it is about."""
    with store.reading() as tx:
        batch, held = _hold(tx, batch_id)
        kind = HoldKind(held.get("kind", HoldKind.REMOVALS))
        count, labels = _held_slice(tx, batch, held, after=0, limit=_HELD_SHOWN)
        members = [label.member_key for label in labels]
        waits_for = _what_ticks_wait_for(tx, batch.runbook_name) or _whom_it_waits_for(tx, batch)
        start = held.get("start")
        if start is None:
            return HoldView(batch, kind, count, members, start, waits_for)
        at = datetime.fromisoformat(start)
        pending = [phase for phase in phases_of_batches(tx, [batch_id]) if phase.status is PhaseStatus.PENDING]
        due = {phase.id: Offset(phase.offset_minutes).due_at(at) for phase in pending}
        dues = sorted(((phase.phase_name, due[phase.id]) for phase in pending), key=itemgetter(1))
        late = delays_of(tx, {batch.id: batch}, pending, due, tx.time())
        return HoldView(batch, kind, count, members, start, waits_for, dues, late, _voided(tx, batch_id))


def _voided(tx: Transaction, batch_id: int) -> list[str]:
    given = signatures_of_batches(tx, [batch_id])
    of_others = (one for one in given if one.subject is not SignOffSubject.HOLD)
    return sorted({one.signed_by for one in of_others if one.is_approval and one.used_at is None})


def held_members(store: Store, batch_id: int, *, after: int, limit: int) -> tuple[int, list[MemberLabel]]:
    """Return how many members a hold is about, and a slice of them, by id, from after an id."""
    with store.reading() as tx:
        return _held_slice(tx, *_hold(tx, batch_id), after=after, limit=limit)


def _hold(tx: Transaction, batch_id: int) -> tuple[BatchRow, dict[str, Any]]:
    batch = existing_batch(tx, batch_id)
    if not batch.is_held:
        raise HoldChanged(batch_id, None)
    return batch, orjson.loads(batch.hold_json or "{}")


def _held_slice(
    tx: Transaction, batch: BatchRow, held: Mapping[str, Any], *, after: int, limit: int
) -> tuple[int, list[MemberLabel]]:
    """Return how many members a hold is about, and a slice of them: those that it names, or all of a late batch."""
    if batch.hold_kind is HoldKind.LATE:
        # These may be very many, and nobody has listed them.
        count = active_counts(tx, [batch.id]).get(batch.id, 0)
        rows = members_page(tx, batch.id, status=MemberStatus.ACTIVE, after=after, limit=limit)
        return count, [MemberLabel(row.id, row.batch_id, row.member_key, row.epoch) for row in rows]
    ids = _named_by(tx, batch, held)
    begin = bisect_right(ids, after)
    return len(ids), member_labels(tx, ids[begin : begin + limit])


def _named_by(tx: Transaction, batch: BatchRow, held: Mapping[str, Any]) -> list[int]:
    if keys := held.get("memberKeys"):
        return [member.id for member in members_with_keys(tx, batch.id, keys) if member.status is MemberStatus.ACTIVE]
    return sorted(held.get("memberIds") or [])


def member_history(store: Store, batch_id: int, member_id: int) -> MemberHistory:
    """Return all that happened to a member of a batch."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        found = [member for member in members_by_id(tx, [member_id]) if member.batch_id == batch_id]
        if not found:
            raise UnknownMember(batch_id, member_id)
        phases = {phase.id: phase.phase_name for phase in phases_of_batches(tx, [batch_id])}
        steps, rollbacks = steps_of_members(tx, [member_id]), rollbacks_of_members(tx, [member_id])
        (member,) = member_views(tx, found)
        return MemberHistory(member, secret_columns(tx, batch.runbook_name), phases, steps, rollbacks)


def one_dead_letter(store: Store, letter_id: int) -> DeadLetterRow:
    """Return a dead letter with its content."""
    with store.reading() as tx:
        found = dead_letters_by_id(tx, [letter_id])
    if not found:
        raise UnknownDeadLetter(letter_id)
    return found[0]


def member_keys(tx: Transaction, member_ids: Collection[int]) -> dict[int, str]:
    """Return the keys of members."""
    return {label.id: label.member_key for label in member_labels(tx, member_ids)}
