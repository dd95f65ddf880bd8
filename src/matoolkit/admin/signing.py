"""Signing off, rejecting, and taking that back: exactly what was shown, by people who may (rules S2 to S7)."""

from collections.abc import Sequence

from matoolkit.admin.approvals import Asking, Request, asking_of, request_of
from matoolkit.admin.recording import locked_batch, record
from matoolkit.announcing.gatekeeping import wake_batches
from matoolkit.domain.digests import Changed, Shown, is_same, parsed_digest
from matoolkit.domain.signoff import Caller, NewSignature, Signature, Signer
from matoolkit.domain.states import UNFINISHED_BATCHES, SignOff, SignOffSubject
from matoolkit.errors import (
    AlreadyBegun,
    AlreadySigned,
    NobodySigned,
    NotAmongSigners,
    NotAsShown,
    NothingToSign,
    NothingToWithdraw,
    PublisherCannotSign,
    TooEarlyToSign,
    TooLateToSign,
    UnknownBatchPhase,
    UnnamedSigner,
)
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.joins import gone_since, join_count, joined_after
from matoolkit.store.phases import phases_by_id
from matoolkit.store.signoffs import note_used, sign, withdraw_signatures

_MOST_NAMED = 5
_LONGEST_ROLES = 200
_SAID = {SignOff.APPROVE: "approved", SignOff.REJECT: "rejected"}


def sign_off(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    phase_id: int | None,
    decision: SignOff,
    *,
    by: Signer,
    digest: str,
    reason: str | None = None,
) -> Request:
    """Approve or reject the beginning of a phase, or else of the init, and let it begin if that was the last approval.

    Those who joined a phase that has begun, and wait in it, are woken at once; phases begin with the next sweep.
    """
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        asking = _asking(tx, batch, phase_id)
        request = request_of(tx, asking)
        refuse_signer(asking, by, decision)
        _refuse_times(asking)
        if not is_same(digest, request.digest):
            raise NotAsShown(asking.name, str(_changed(tx, asking, digest)))
        refuse_twice(asking, by, request.digest)
        store_signature(tx, asking, request, by, decision, reason)
        after = _asking(tx, batch, phase_id)
        _follow(tx, publisher, after, decision)
        told = {"subject": asking.asked.title, "digest": request.digest, "members": request.asking.members}
        progress = {**told, "state": after.state, "signedIn": by.caller is Caller.PERSON}
        record(tx, batch, f"approval.{decision}", by.name, reason, None, progress)
        return request_of(tx, after)


def withdraw(
    store: Store,
    publisher: Publisher,
    batch_id: int,
    phase_id: int | None,
    *,
    by: Signer,
    reason: str | None = None,
) -> Request:
    """Take back all that somebody has signed of a phase, or else of the init, unless it was used (rule S6).

    A rejection is taken back in a batch that has ended too, so that who failed for it can be retried.
    """
    refuse_nobody(by)
    with store.transaction() as tx:
        batch = locked_batch(tx, batch_id)
        asking = _asking(tx, batch, phase_id, is_history=True)
        mine = [one for one in asking.asked.given if one.person == by.person and one.withdrawn_at is None]
        unused = [one.id for one in mine if one.used_at is None]
        if not unused and mine:
            raise AlreadyBegun(asking.name)
        if not withdraw_signatures(tx, unused, tx.time()):
            raise NothingToWithdraw(by.name, asking.name)
        after = _asking(tx, batch, phase_id, is_history=True)
        if batch.status in UNFINISHED_BATCHES:
            # A rejection that is taken back may have been all that was in the way.
            _follow(tx, publisher, after, SignOff.APPROVE)
        told = {"subject": asking.asked.title, "signed": [_SAID[one.decision] for one in mine if one.used_at is None]}
        record(tx, batch, "approval.withdraw", by.name, reason, told, {"state": after.state})
        return request_of(tx, after)


def refuse_signer(asking: Asking, by: Signer, decision: SignOff) -> None:
    """Refuse somebody who may not sign this off: an application, others than those named, the publisher (rule S4)."""
    refuse_nobody(by)
    if not by.is_among(asking.asked.by):
        raise NotAmongSigners(by.name, asking.name, asking.asked.by)
    is_publisher = by.is_called(asking.publisher) and by.caller is Caller.PERSON
    if asking.rule.not_publisher and is_publisher and decision is SignOff.APPROVE:
        raise PublisherCannotSign(by.name, asking.asked.version)


def refuse_nobody(by: Signer) -> None:
    """Refuse an application, and a person who could be taken for another one (rule S4)."""
    if by.caller is Caller.APPLICATION:
        raise NobodySigned(by.name)
    if by.caller is Caller.UNNAMED:
        raise UnnamedSigner(by.name)


def refuse_twice(asking: Asking, by: Signer, digest: str) -> None:
    """Refuse a second sign-off of the same list by the same person; who has rejected it takes that back first."""
    asked = asking.asked
    for one in asked.given:
        counts = one.withdrawn_at is None and asked.voided(one) is None
        if counts and one.person == by.person and is_same(one.digest, digest):
            raise AlreadySigned(by.name, asking.name, _SAID[one.decision], asked.command("withdraw"))


def store_signature(
    tx: Transaction, asking: Asking, request: Request, by: Signer, decision: SignOff, reason: str | None
) -> None:
    """Store a sign-off; it covers everybody who has joined by then."""
    asked = asking.asked
    new = NewSignature(
        batch_id=asked.batch_id,
        subject=asked.subject,
        phase_execution_id=asked.phase_execution_id,
        hold_key=asked.digest if asked.subject is SignOffSubject.HOLD else None,
        runbook_version=asked.version,
        batch_start_time=asked.start,
        digest=request.digest,
        covered_after=asked.asked_after,
        covered_no=join_count(tx, asked.batch_id),
        members=request.asking.members,
        decision=decision,
        signed_by=by.name,
        roles=", ".join(sorted(by.roles))[:_LONGEST_ROLES],
        is_signed_in=by.caller is Caller.PERSON,
        signed_at=asked.at,
        reason=reason,
    )
    sign(tx, new)


def _asking(tx: Transaction, batch: BatchRow, phase_id: int | None, *, is_history: bool = False) -> Asking:
    what, why = f"the init of batch {batch.id}", "its runbook asks for none, or it has no init"
    if phase_id is not None:
        found = [phase for phase in phases_by_id(tx, [phase_id]) if phase.batch_id == batch.id]
        if not found:
            raise UnknownBatchPhase(batch.id, phase_id)
        what = f"phase '{found[0].phase_name}' of batch {batch.id}"
        why = f"it is {found[0].status}, or its runbook asks for none"
    if batch.status not in UNFINISHED_BATCHES and not is_history:
        raise NothingToSign(what, f"the batch is {batch.status}")
    asking = asking_of(tx, batch, phase_id, is_history=is_history)
    if asking is None:
        raise NothingToSign(what, why)
    return asking


def _refuse_times(asking: Asking) -> None:
    asked = asking.asked
    if asking.begun:
        raise AlreadyBegun(asking.name)
    if asked.is_early and asked.opens_at is not None:
        raise TooEarlyToSign(asking.name, asked.opens_at)
    if asked.is_over and asked.ends_at is not None:
        raise TooLateToSign(asking.name, asked.ends_at)


def _changed(tx: Transaction, asking: Asking, digest: str) -> Changed:
    """Say what is different from what somebody saw, as far as the digest tells."""
    asked, seen = asking.asked, parsed_digest(digest)
    if seen is None:
        return Changed()
    after = -1 if asked.asked_after is None else asked.asked_after
    joined = joined_after(tx, asked.batch_id, max(seen.joined_no, after), _MOST_NAMED)
    left = gone_since(tx, asked.batch_id, seen.joined_no, after, seen.members, _MOST_NAMED)
    return Changed(
        joined.count,
        joined.keys,
        left.count,
        left.keys,
        None if _is_same_time(seen, asking) else (seen.start, asked.start),
        None if seen.version == asked.version else (seen.version, asked.version),
    )


def _is_same_time(seen: Shown, asking: Asking) -> bool:
    start = asking.asked.start
    return seen.start == (None if start is None else start.replace(microsecond=0))


def _follow(tx: Transaction, publisher: Publisher, after: Asking, decision: SignOff) -> None:
    asked = after.asked
    if asked.has_begun:
        if asked.is_met:
            note_used(tx, [one.id for one in _unused(asked.standing)], asked.at)
        # Those who were rejected fail now.
        if asked.is_met or decision is SignOff.REJECT:
            wake_batches(tx, publisher, [asked.batch_id])
    elif asked.subject is SignOffSubject.INIT and asked.is_met and not after.begun:
        wake_batches(tx, publisher, [asked.batch_id])


def _unused(given: Sequence[Signature]) -> list[Signature]:
    return [one for one in given if one.used_at is None]
