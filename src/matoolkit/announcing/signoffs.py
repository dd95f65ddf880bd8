"""What must be signed off before phases and inits begin, and what was, as gates see it (rules S1 to S6)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from matoolkit.domain.digests import Shown, shown
from matoolkit.domain.doors import PhaseDoor
from matoolkit.domain.signoff import VALID, Signature, SignOffs, times_of, used_by, who_may
from matoolkit.domain.states import PhaseStatus, SignOff, SignOffSubject
from matoolkit.runbook.model import Approval, Runbook
from matoolkit.store.batches import BatchRow, NarrowBatch
from matoolkit.store.joins import active_members, join_count
from matoolkit.store.lateness import inits_let_in_late, late_gates_opened_by_people
from matoolkit.store.phases import PhaseRow
from matoolkit.store.signoffs import note_used, signatures_of_batches
from matoolkit.store.sql.transaction import Transaction


def with_sign_offs(
    tx: Transaction,
    doors: Mapping[int, PhaseDoor],
    phases: Collection[PhaseRow],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
) -> dict[int, PhaseDoor]:
    """Return phases as gates see them with their sign-offs; asked for only where a runbook wants some."""
    approvals = {phase.id: rule for phase in phases if (rule := doors[phase.id].rules.approval) is not None}
    wanting = [phase for phase in phases if phase.id in approvals]
    asked = sign_offs_of_phases(tx, wanting, approvals, batches, at)
    return {**doors, **{number: replace(doors[number], sign_offs=one) for number, one in asked.items()}}


def sign_offs_of_phases(
    tx: Transaction,
    phases: Collection[PhaseRow],
    approvals: Mapping[int, Approval],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
    *,
    for_people: bool = False,
) -> dict[int, SignOffs]:
    """Return what must be signed off before phases begin, by their ids, and what was.

    Only people want to know whether late joiners were rejected as a list; each of them fails by itself.
    """
    if not phases:
        return {}
    of_batches = {phase.batch_id for phase in phases}
    given, lifted = signatures_of_batches(tx, of_batches), phases_let_in_late(tx, [phase.id for phase in phases])
    found = {}
    for phase in phases:
        batch, has_begun = batches[phase.batch_id], phase.status is not PhaseStatus.PENDING
        asked = _asked(batch, SignOffSubject.PHASE, approvals[phase.id], phase.runbook_version, at)
        mine = [one for one in given if one.phase_execution_id == phase.id]
        asked = replace(
            asked,
            phase_execution_id=phase.id,
            title=phase.phase_name,
            # Only a phase that has not begun can be late: who joins it afterwards has no gate that lifts the time.
            ends_at=None if has_begun or phase.id in lifted else asked.ends_at,
            has_begun=has_begun,
            given=mine,
            used_no=used_by(mine, asked.count),
        )
        found[phase.id] = _with_digest(tx, asked) if for_people or not asked.has_begun else asked
    return found


def phases_let_in_late(tx: Transaction, phase_ids: Collection[int]) -> set[int]:
    """Return the phases that a person let begin although they are late, for the time at which they are due now."""
    return {gate.phase_execution_id for gate in late_gates_opened_by_people(tx, phase_ids) if not gate.is_moved}


def sign_offs_of_init(
    tx: Transaction, batch: NarrowBatch, version: int, runbook: Runbook, at: datetime
) -> SignOffs | None:
    """Return what must be signed off before an init begins, if anything, and what was."""
    return sign_offs_of_inits(tx, [(batch, version, runbook)], at).get(batch.id)


def sign_offs_of_inits(
    tx: Transaction, inits: Iterable[tuple[NarrowBatch, int, Runbook]], at: datetime
) -> dict[int, SignOffs]:
    """Return what must be signed off before inits of versions begin, and what was; most ask for nothing."""
    asked = {
        batch: _asked(batch, SignOffSubject.INIT, runbook.init_approval, version, at)
        for batch, version, runbook in inits
        if runbook.init_approval is not None and runbook.init
    }
    if not asked:
        return {}
    lifted, given = inits_let_in_late(tx, asked), _given(tx, [batch.id for batch in asked], SignOffSubject.INIT)
    found = {}
    for batch, wanted in asked.items():
        ends_at = None if batch.id in lifted else wanted.ends_at
        found[batch.id] = _with_digest(tx, replace(wanted, ends_at=ends_at, given=given.get(batch.id, ())))
    return found


def sign_offs_of_holds(
    tx: Transaction, holds: Iterable[tuple[BatchRow, int, Approval]], at: datetime
) -> dict[int, SignOffs]:
    """Return what must be signed off before the holds of batches end, and what was; times do not matter there."""
    asked = {
        batch: _asked(batch, SignOffSubject.HOLD, approval, version, at)
        for batch, version, approval in holds
        if batch.hold_key is not None
    }
    given = _given(tx, [batch.id for batch in asked], SignOffSubject.HOLD)
    found = {}
    for batch, wanted in asked.items():
        mine = [one for one in given.get(batch.id, ()) if one.hold_key == batch.hold_key]
        found[batch.id] = replace(
            wanted, title="its hold", opens_at=None, ends_at=None, digest=batch.hold_key, given=mine
        )
    return found


def shown_now(tx: Transaction, asked: SignOffs) -> Shown:
    """Return the digest of what is asked now; the caller has locked the batch (rule S2)."""
    members = active_members(tx, asked.batch_id, asked.asked_after)
    subject = f"{asked.subject} {asked.title}"
    return shown(asked.batch_id, subject, asked.version, asked.start, join_count(tx, asked.batch_id), members)


def use_sign_offs(
    tx: Transaction,
    begun: Collection[PhaseRow],
    runbooks: Mapping[int, Runbook],
    batches: Mapping[int, NarrowBatch],
    at: datetime,
) -> None:
    """Note which sign-offs phases begin with: nothing voids these any more (rule S5). The rows are those of before.

    A phase may also be opened for late joiners or retried members without having begun; then enough may have signed.
    """
    rules = {phase.id: runbooks[phase.id].phases[phase.phase_index].approval for phase in begun}
    approvals = {number: rule for number, rule in rules.items() if rule is not None}
    wanting = [phase for phase in begun if phase.id in approvals]
    # For people: a phase that is opened for some has not begun for all, and a rejection of the list counts there.
    asked = sign_offs_of_phases(tx, wanting, approvals, batches, at, for_people=True)
    note_used(tx, [one.id for each in asked.values() if each.is_met for one in each.standing], at)


def _asked(batch: NarrowBatch, subject: SignOffSubject, approval: Approval, version: int, at: datetime) -> SignOffs:
    opens_at, ends_at = times_of(approval, batch.batch_start_time, is_manual=batch.is_manual)
    return SignOffs(
        batch_id=batch.id,
        subject=subject,
        phase_execution_id=None,
        title=str(subject),
        count=approval.count,
        by=who_may(approval),
        valid=approval.valid or VALID,
        version=version,
        start=batch.batch_start_time,
        at=at,
        opens_at=opens_at,
        ends_at=ends_at,
    )


def _given(tx: Transaction, batch_ids: Collection[int], subject: SignOffSubject) -> dict[int, list[Signature]]:
    given: dict[int, list[Signature]] = {}
    for one in signatures_of_batches(tx, batch_ids) if batch_ids else ():
        if one.subject is subject:
            given.setdefault(one.batch_id, []).append(one)
    return given


def _with_digest(tx: Transaction, asked: SignOffs) -> SignOffs:
    # Only a rejection is compared with what is asked now, and few are rejected.
    is_rejected = any(one.decision is SignOff.REJECT and one.withdrawn_at is None for one in asked.given)
    return replace(asked, digest=str(shown_now(tx, asked))) if is_rejected else asked
