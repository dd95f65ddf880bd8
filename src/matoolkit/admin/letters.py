"""Dead letters as a person looks at them: each with the work that it was to do."""

from dataclasses import dataclass

from matoolkit.admin.queries import existing_batch, one_dead_letter
from matoolkit.domain.states import DeadLetterStatus, StepStatus
from matoolkit.ids import JobRef, Kind, parse_job_id
from matoolkit.store import Store, Transaction
from matoolkit.store.deadletters import DeadLetterRow
from matoolkit.store.executions import ExecutionRow, RollbackRow, StepRow, inits_by_id, rollbacks_by_id, steps_by_id
from matoolkit.store.members import member_labels


@dataclass(frozen=True, slots=True)
class LetterWork:
    """The work of a dead job, and whether it still waits for a person's decision; the member is empty for an init."""

    kind: Kind
    batch_id: int
    runbook_name: str
    step_name: str
    attempt: int
    member_id: int | None
    member_key: str | None
    is_waiting: bool


@dataclass(frozen=True, slots=True)
class LetterLook:
    """A dead letter; a job that is unknown here has no work, and neither has a message that is no job."""

    letter: DeadLetterRow
    is_job: bool
    work: LetterWork | None

    @property
    def is_open(self) -> bool:
        """Whether nobody has decided about it."""
        return self.letter.status is DeadLetterStatus.OPEN

    @property
    def can_be_sent(self) -> bool:
        """Whether sending it again would do something, as far as can be seen without reading it."""
        return self.is_open and (not self.is_job or (self.work is not None and self.work.is_waiting))


def look_at_letter(store: Store, letter_id: int) -> LetterLook:
    """Look at a dead letter and at the work that it was to do."""
    with store.reading() as tx:
        letter = one_dead_letter(store.within(tx), letter_id)
        ref = parse_job_id(letter.message_id)
        return LetterLook(letter, ref is not None, _work(tx, ref, letter) if ref else None)


def _work(tx: Transaction, ref: JobRef, letter: DeadLetterRow) -> LetterWork | None:
    row = _row(tx, ref)
    if row is None:
        return None
    batch = existing_batch(tx, row.batch_id)
    member = row.batch_member_id if isinstance(row, (StepRow, RollbackRow)) else None
    labels = member_labels(tx, [member]) if member is not None else []
    is_waiting = row.job_id == letter.message_id and row.status is StepStatus.FAILED
    key = labels[0].member_key if labels else None
    return LetterWork(ref.kind, batch.id, batch.runbook_name, row.step_name, ref.attempt, member, key, is_waiting)


def _row(tx: Transaction, ref: JobRef) -> ExecutionRow | None:
    ids = [ref.execution_id]
    match ref.kind:
        case Kind.STEP:
            return next(iter(steps_by_id(tx, ids)), None)
        case Kind.INIT:
            return next(iter(inits_by_id(tx, ids)), None)
        case Kind.ROLLBACK:
            return next(iter(rollbacks_by_id(tx, ids)), None)
