"""Dead letters: sent again or discarded by a person (rule M7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import orjson

from matoolkit.admin.reinitializing import retry_init_within
from matoolkit.admin.retrying import retry_members_within
from matoolkit.admin.retryplan import Chosen, Terms
from matoolkit.admin.undoretries import reasons_against
from matoolkit.announcing.messages import retry_check
from matoolkit.domain.messages import Message
from matoolkit.domain.retrying import DataChoice
from matoolkit.domain.states import DeadLetterStatus, StepStatus
from matoolkit.errors import DeadLetterResolved, NothingToRetry, UnknownDeadLetter
from matoolkit.ids import JobRef, Kind, asked_for, parse_job_id, resent_again
from matoolkit.ports import Outgoing, Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.batches import lock_batches
from matoolkit.store.deadletters import (
    DeadLetterRow,
    Resend,
    dead_letters_by_id,
    discard_dead_letters,
    resend_dead_letters,
)
from matoolkit.store.executions import inits_by_id, rollbacks_by_id, steps_by_id
from matoolkit.store.moves import reopen
from matoolkit.store.runbooks import lock_runbook

# Reads a message from its topic, its type and its body.
Read = Callable[[str, str, str], Message]


@dataclass(frozen=True, slots=True)
class Resent:
    """What was done with a dead letter: the id under which it was sent again, or the work that is retried."""

    letter_id: int
    message_id: str | None
    retried: str | None


def resend_dead_letter(
    store: Store, publisher: Publisher, read: Read, letter_id: int, *, by: str, reason: str | None = None
) -> Resent:
    """Send a dead letter again under a new id; a job is tried again as its step, with a new attempt."""
    with store.transaction() as tx:
        letter = _open_letter(tx, letter_id)
        ref = parse_job_id(letter.message_id)
        retried = None if ref is None else _retry(tx, publisher, ref, letter, by, reason)
        message_id = resent_again(letter.message_id) if ref is None else letter.message_id
        if ref is None:
            message = read(letter.topic, letter.message_type, letter.body)
            publisher.publish(tx, [Outgoing(message_id, message)])
        _insist(tx, letter_id, resend_dead_letters(tx, [Resend(letter_id, message_id)], by, tx.time()))
        _record(tx, letter, "dead_letter.resend", by, reason, {"message_id": message_id, "retried": retried})
        return Resent(letter_id, None if ref else message_id, retried)


def discard_dead_letter(store: Store, letter_id: int, *, by: str, reason: str | None = None) -> None:
    """Discard a dead letter for good."""
    with store.transaction() as tx:
        letter = _open_letter(tx, letter_id)
        _insist(tx, letter_id, discard_dead_letters(tx, [letter_id], by, tx.time()))
        _record(tx, letter, "dead_letter.discard", by, reason, None)


def _open_letter(tx: Transaction, letter_id: int) -> DeadLetterRow:
    letters = dead_letters_by_id(tx, [letter_id])
    if not letters:
        raise UnknownDeadLetter(letter_id)
    if letters[0].status is not DeadLetterStatus.OPEN:
        raise DeadLetterResolved(letter_id, letters[0].status)
    return letters[0]


def _insist(tx: Transaction, letter_id: int, moved: Sequence[int]) -> None:
    """Roll back if another person resolved the letter while we looked at it."""
    if not moved:
        raise DeadLetterResolved(letter_id, dead_letters_by_id(tx, [letter_id])[0].status)


def _retry(
    tx: Transaction, publisher: Publisher, ref: JobRef, letter: DeadLetterRow, by: str, reason: str | None
) -> str:
    """Retry the work of a dead job like a person's retry, and say what is retried."""
    match ref.kind:
        case Kind.STEP:
            step = next(iter(steps_by_id(tx, [ref.execution_id])), None)
            if step is None or step.job_id != letter.message_id or step.status is not StepStatus.FAILED:
                raise NothingToRetry(letter.message_id, "its step has moved on since")
            # This job is sent again, so the member keeps the row that the job was made from.
            terms = Terms(data=DataChoice.KEPT)
            retry_members_within(tx, publisher, step.batch_id, Chosen([step.batch_member_id]), terms, by, reason)
        case Kind.INIT:
            init = next(iter(inits_by_id(tx, [ref.execution_id])), None)
            if init is None or init.job_id != letter.message_id or init.status is not StepStatus.FAILED:
                raise NothingToRetry(letter.message_id, "its init has moved on since")
            retry_init_within(tx, publisher, init.batch_id, by, reason)
        case Kind.ROLLBACK:
            _retry_rollback(tx, publisher, ref, letter)
    return f"{ref.kind}-{ref.execution_id}"


def _retry_rollback(tx: Transaction, publisher: Publisher, ref: JobRef, letter: DeadLetterRow) -> None:
    rollback = next(iter(rollbacks_by_id(tx, [ref.execution_id])), None)
    if rollback is None or rollback.job_id != letter.message_id or rollback.status is not StepStatus.FAILED:
        raise NothingToRetry(letter.message_id, "its rollback has moved on since")
    (batch,) = lock_batches(tx, [rollback.batch_id])
    lock_runbook(tx, batch.runbook_name)
    if against := reasons_against(tx, batch, [rollback]):
        raise NothingToRetry(letter.message_id, against[rollback.id])
    reopen(tx, Kind.ROLLBACK, [rollback.id])
    check = retry_check(Kind.ROLLBACK, rollback.id, rollback.attempt)
    publisher.publish(tx, [replace(check, message_id=asked_for(check.message_id, letter.id))])


def _record(
    tx: Transaction,
    letter: DeadLetterRow,
    action: str,
    by: str,
    reason: str | None,
    after: dict[str, str | None] | None,
) -> None:
    entry = NewAuditEntry(
        actor=by,
        action=action,
        subject_type="dead_letter",
        subject_id=str(letter.id),
        before_json=orjson.dumps({"message_id": letter.message_id, "reason": letter.reason}).decode(),
        after_json=None if after is None else orjson.dumps(after).decode(),
        reason=reason,
    )
    record_changes(tx, [entry], tx.time())
