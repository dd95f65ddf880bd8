"""What waits for sign-off, and what was signed: what people look at before they sign (rules S1 to S7)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from matoolkit.admin.queries import existing_batch
from matoolkit.announcing.signoffs import shown_now, sign_offs_of_holds, sign_offs_of_inits, sign_offs_of_phases
from matoolkit.announcing.versions import readable_runbook_in, readable_runbooks, runbook_in
from matoolkit.domain.signoff import Signature, SignOffs, awaits
from matoolkit.domain.states import (
    UNFINISHED_BATCHES,
    BatchStatus,
    PhaseStatus,
    SignOffSubject,
)
from matoolkit.runbook.model import Approval, Runbook, Step
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, all_unfinished_batches
from matoolkit.store.counts import active_counts
from matoolkit.store.inits import begun_inits, latest_init_versions
from matoolkit.store.joins import joined_after, late_joins, refreshed_since
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import RunbookRow, runbook_version, runbooks_by_id, versions_under_way
from matoolkit.store.signoffs import signatures_of_batches
from matoolkit.words import counted

_FIRST_MEMBERS = 10
_NEVER = datetime.max.replace(tzinfo=UTC)
# Phases in which somebody may still begin; of the others nobody asks for sign-offs.
_MAY_BEGIN = frozenset({PhaseStatus.PENDING, PhaseStatus.DISPATCHED, PhaseStatus.COMPLETED, PhaseStatus.FAILED})


class ApprovalState(StrEnum):
    """How far a sign-off is."""

    EARLY = "early"
    WAITING = "waiting"
    REJECTED = "rejected"
    LATE = "late"
    GIVEN = "given"
    BEGUN = "begun"


# What somebody can do something about.
WAITING = frozenset({ApprovalState.WAITING, ApprovalState.REJECTED, ApprovalState.LATE})


@dataclass(frozen=True, slots=True)
class Asking:
    """Something that people have to sign off: what it is, its rule, and how many would be covered.

    `uncovered` joined after the sign-offs of a phase that has not begun: they will wait in it for others (rule S3).
    """

    batch: BatchRow
    asked: SignOffs
    rule: Approval
    publisher: str
    steps: Sequence[Step]
    members: int
    due_at: datetime | None = None
    late_after: datetime | None = None
    begun: bool = False
    uncovered: int = 0

    @property
    def state(self) -> ApprovalState:
        """How far it is."""
        if self.begun:
            return ApprovalState.BEGUN
        if self.asked.rejection is not None:
            return ApprovalState.REJECTED
        if self.asked.is_met:
            return ApprovalState.GIVEN
        if self.asked.is_over:
            return ApprovalState.LATE
        return ApprovalState.EARLY if self.asked.is_early else ApprovalState.WAITING

    @property
    def deadline(self) -> datetime | None:
        """Until when it should be given: its end or when the phase is late; without an end when the phase is due."""
        if self.asked.ends_at is None:
            return self.due_at
        return min(self.asked.ends_at, self.late_after or self.asked.ends_at)

    @property
    def waits(self) -> str | None:
        """Say what is missing, in a sentence."""
        why = None if self.begun else awaits(self.asked)
        if why is not None:
            return why.sentence
        if not self.uncovered:
            return None
        verb = "waits" if self.uncovered == 1 else "wait"
        return f"{counted(self.uncovered, 'member')} joined since, and {verb} in the phase for another approval"

    @property
    def name(self) -> str:
        """How to speak of it."""
        if self.asked.subject is SignOffSubject.PHASE:
            return f"phase '{self.asked.title}' of batch {self.batch.id}"
        return f"the {self.asked.subject} of batch {self.batch.id}"


@dataclass(frozen=True, slots=True)
class Request:
    """All that people are shown before they sign: the members, the digest, and whose data changed since the first."""

    asking: Asking
    digest: str
    first_members: Sequence[str]
    data_changed: int


def waiting_approvals(store: Store, *, everything: bool = False) -> list[Asking]:
    """Return what waits for sign-off in all batches, the oldest deadline first; or everything that asks for some."""
    with store.reading() as tx:
        return waiting_in(tx, everything=everything)


def waiting_in(tx: Transaction, *, everything: bool = False) -> list[Asking]:
    """Return the same, read together with other things."""
    found = [one for one in _all(tx, _asking(tx, all_unfinished_batches(tx))) if everything or one.state in WAITING]
    return sorted(found, key=lambda one: (one.deadline or _NEVER, one.batch.id, one.asked.phase_execution_id or 0))


def asked_in_batch(tx: Transaction, batch: BatchRow) -> list[Asking]:
    """Return what is to be signed off in a batch before it begins; sign-offs of its hold are told of with the hold."""
    if batch.status not in UNFINISHED_BATCHES or not _asks(_versions(tx, [batch])[batch.runbook_id].runbook):
        return []
    return [one for one in _all(tx, [batch]) if not one.begun and one.asked.subject is not SignOffSubject.HOLD]


def approvals_of_batch(store: Store, batch_id: int) -> list[Request]:
    """Return everything in a batch that people have to sign off, with what they would sign."""
    with store.reading() as tx:
        batch = existing_batch(tx, batch_id)
        return [request_of(tx, one) for one in _all(tx, [batch], is_history=True)]


def request_of(tx: Transaction, asking: Asking) -> Request:
    """Show what would be signed."""
    asked = asking.asked
    if asked.subject is SignOffSubject.HOLD:
        return Request(asking, asked.digest or "", (), 0)
    number = -1 if asked.asked_after is None else asked.asked_after
    some = joined_after(tx, asked.batch_id, number, _FIRST_MEMBERS)
    since = min((one.signed_at for one in asked.current), default=None)
    changed = 0 if since is None else refreshed_since(tx, asked.batch_id, since)
    return Request(replace(asking, members=some.count), str(shown_now(tx, asked)), some.keys, changed)


def asking_of(tx: Transaction, batch: BatchRow, phase_id: int | None, *, is_history: bool = False) -> Asking | None:
    """Return what must be signed off before a phase begins, or else before the init does, if anything."""
    found = _all(tx, [batch], [phase_id], is_history=is_history)
    return next((one for one in found if one.asked.subject is not SignOffSubject.HOLD), None)


def asking_of_hold(tx: Transaction, batch: BatchRow) -> Asking | None:
    """Return what must be signed off before the hold of a batch ends, if anything."""
    versions = _versions(tx, [batch])
    return next(_holds(tx, [batch], versions), None)


@dataclass(frozen=True, slots=True)
class _Version:
    row: RunbookRow
    runbook: Runbook


def _all(
    tx: Transaction,
    batches: Sequence[BatchRow],
    only: Collection[int | None] | None = None,
    *,
    is_history: bool = False,
) -> list[Asking]:
    """Return what asks for sign-offs in batches; what was signed in those that have ended is history."""
    versions = _versions(tx, batches)
    wanted = [batch for batch in batches if is_history or batch.status in UNFINISHED_BATCHES]
    found = [*_holds(tx, wanted, versions), *_phases(tx, wanted), *_inits(tx, wanted, versions)]
    found = [one if one.batch.status in UNFINISHED_BATCHES else replace(one, begun=True) for one in found]
    return [one for one in found if only is None or one.asked.phase_execution_id in only]


def _asking(tx: Transaction, batches: Sequence[BatchRow]) -> list[BatchRow]:
    """Return the batches in which a version asks for sign-offs; most ask for none, and cost nothing then.

    A phase or an init that is under way may be of an older version (rule V5). A batch with a version that cannot be
    read is left out: it keeps no others from being listed.
    """
    rows = {row.id: row for row in runbooks_by_id(tx, {batch.runbook_id for batch in batches})}
    followed = {row.id: (row.name, row.version) for row in rows.values()}
    versions = {batch.id: {followed[batch.runbook_id]} for batch in batches}
    names = {batch.id: rows[batch.runbook_id].name for batch in batches}
    for one in versions_under_way(tx):
        if one.batch_id in versions:
            versions[one.batch_id].add((names[one.batch_id], one.version))
    older = set().union(*versions.values()) - set(followed.values())
    known = {followed[row.id]: read for row in rows.values() if (read := readable_runbook_in(row)) is not None}
    known |= readable_runbooks(tx, older)
    return [
        batch
        for batch in batches
        if versions[batch.id] <= known.keys() and any(_asks(known[version]) for version in versions[batch.id])
    ]


def _asks(runbook: Runbook) -> bool:
    """Tell whether a runbook asks people to sign anything off."""
    of_phases = any(phase.approval is not None for phase in runbook.phases)
    of_holds = runbook.safeguards is not None and runbook.safeguards.approval is not None
    return of_phases or of_holds or runbook.init_approval is not None


def _versions(tx: Transaction, batches: Sequence[BatchRow]) -> dict[int, _Version]:
    rows = runbooks_by_id(tx, {batch.runbook_id for batch in batches})
    return {row.id: _Version(row, runbook_in(row)) for row in rows}


def _phases(tx: Transaction, batches: Sequence[BatchRow]) -> Iterator[Asking]:
    known = {batch.id: batch for batch in batches}
    phases = [phase for phase in phases_of_batches(tx, known) if phase.status in _MAY_BEGIN]
    versions = _versions_of_phases(tx, phases, known)
    rules = {phase.id: versions[phase.id].runbook.phases[phase.phase_index] for phase in phases}
    approvals = {number: rule.approval for number, rule in rules.items() if rule.approval is not None}
    wanting = [phase for phase in phases if phase.id in approvals]
    asked = sign_offs_of_phases(tx, wanting, approvals, known, tx.time(), for_people=True)
    active = active_counts(tx, {phase.batch_id for phase in wanting})
    late = late_joins(tx, {phase.batch_id for phase in wanting})
    for phase in sorted(wanting, key=lambda phase: (phase.batch_id, phase.order)):
        batch, one = known[phase.batch_id], asked[phase.id]
        members, numbers = active.get(batch.id, 0), late.get(batch.id, {})
        if one.asked_after is not None and one.asked_after >= 0:
            members = _after(numbers, one.asked_after)
        covered = None if one.has_begun else one.covered_no
        rule = rules[phase.id]
        yield Asking(
            batch,
            one,
            approvals[phase.id],
            versions[phase.id].row.published_by,
            rule.steps,
            members,
            None if batch.is_manual else phase.due_at,
            None if batch.is_manual else phase.late_after,
            begun=one.has_begun and not members,
            uncovered=0 if covered is None else _after(numbers, covered),
        )


def _after(numbers: Mapping[int, int], number: int) -> int:
    return sum(count for joined_no, count in numbers.items() if joined_no > number)


def _versions_of_phases(
    tx: Transaction, phases: Sequence[PhaseRow], batches: Mapping[int, BatchRow]
) -> dict[int, _Version]:
    keys = {phase.id: (batches[phase.batch_id].runbook_name, phase.runbook_version) for phase in phases}
    known = _numbered(tx, set(keys.values()))
    return {number: known[key] for number, key in keys.items()}


def _numbered(tx: Transaction, wanted: Collection[tuple[str, int]]) -> dict[tuple[str, int], _Version]:
    rows = ((key, runbook_version(tx, *key)) for key in sorted(wanted))
    return {key: _Version(row, runbook_in(row)) for key, row in rows if row is not None}


def _inits(tx: Transaction, batches: Sequence[BatchRow], versions: Mapping[int, _Version]) -> Iterator[Asking]:
    followed = _versions_of_inits(tx, batches, versions)
    inits = ((batch, followed[batch.id].row.version, followed[batch.id].runbook) for batch in batches)
    asked = sign_offs_of_inits(tx, inits, tx.time())
    active, begun = active_counts(tx, asked), begun_inits(tx, asked)
    for batch in batches:
        one, version = asked.get(batch.id), followed[batch.id]
        rule = version.runbook.init_approval
        if one is None or rule is None:
            continue
        has_begun = batch.status is BatchStatus.ACTIVE or (batch.id, version.row.version, batch.init_count) in begun
        members = active.get(batch.id, 0)
        yield Asking(batch, one, rule, version.row.published_by, version.runbook.init, members, begun=has_begun)


def _versions_of_inits(
    tx: Transaction, batches: Sequence[BatchRow], versions: Mapping[int, _Version]
) -> dict[int, _Version]:
    """Return the versions whose inits batches go through: an unfinished one goes on under its own (rule V5)."""
    newest = latest_init_versions(tx, [one.id for one in batches if one.status is BatchStatus.INIT_DISPATCHED])
    current = {batch.id: versions[batch.runbook_id] for batch in batches}
    names = {batch.id: batch.runbook_name for batch in batches}
    older = {number: one for number, one in newest.items() if one != current[number].row.version}
    known = _numbered(tx, {(names[number], one) for number, one in older.items()})
    return current | {number: known[names[number], one] for number, one in older.items()}


def _holds(tx: Transaction, batches: Sequence[BatchRow], versions: Mapping[int, _Version]) -> Iterator[Asking]:
    of_batches = ((batch, versions[batch.runbook_id]) for batch in batches)
    wanted = {batch: (version, rule) for batch, version in of_batches if (rule := _rule_of_holds(version)) is not None}
    holds = ((batch, version.row.version, rule) for batch, (version, rule) in wanted.items())
    asked = sign_offs_of_holds(tx, holds, tx.time())
    active = active_counts(tx, asked)
    for batch, (version, rule) in wanted.items():
        if batch.id in asked:
            members, is_approved = active.get(batch.id, 0), batch.approved_hold_key == batch.hold_key
            yield Asking(batch, asked[batch.id], rule, version.row.published_by, (), members, begun=is_approved)


def _rule_of_holds(version: _Version) -> Approval | None:
    safeguards = version.runbook.safeguards
    return None if safeguards is None else safeguards.approval


def signatures(asking: Asking) -> Sequence[tuple[Signature, str | None]]:
    """Return what was signed, each with why it does not count, if it does not."""
    return [(one, _void(asking.asked, one)) for one in asking.asked.given]


def _void(asked: SignOffs, one: Signature) -> str | None:
    return "it was withdrawn" if one.withdrawn_at is not None else asked.voided(one)


def voided_by_version(tx: Transaction, batches: Sequence[BatchRow], *, rerun_init: bool) -> dict[int, list[Signature]]:
    """Return the approvals that would not count any more if batches took another version (rules S5 and V1)."""
    pending = {
        phase.id for phase in phases_of_batches(tx, [one.id for one in batches]) if phase.status is PhaseStatus.PENDING
    }
    waiting = {one.id for one in batches if one.status is BatchStatus.INIT_DISPATCHED} if rerun_init else set()
    starts = {one.id: one.batch_start_time for one in batches}
    found: dict[int, list[Signature]] = {}
    for one in signatures_of_batches(tx, starts):
        is_about_what_ends = one.phase_execution_id in pending or (
            one.subject is SignOffSubject.INIT and one.batch_id in waiting
        )
        counts = one.is_approval and one.used_at is None and one.batch_start_time == starts[one.batch_id]
        if counts and is_about_what_ends:
            found.setdefault(one.batch_id, []).append(one)
    return found
