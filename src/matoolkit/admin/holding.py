"""Holds as a person looks at them: what each stands for, whom it concerns, and what would come next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matoolkit.admin.queries import HoldView, existing_batch, held_members, hold_of
from matoolkit.domain.states import MemberState, PhaseStatus
from matoolkit.errors import HoldChanged, InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchFilter, BatchRow, batches_page, count_batches
from matoolkit.store.counts import active_counts
from matoolkit.store.members import MemberLabel
from matoolkit.store.memberstates import last_completed_phases, states_of_members
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.runbooks import RunbookRow, runbooks_by_id

_HELD = BatchFilter(is_held=True)
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class HeldBatch:
    """A batch that waits for a person, how many are in it, and the phase that would begin next."""

    batch: BatchRow
    members: int
    following: PhaseRow | None


@dataclass(frozen=True, slots=True)
class ConcernedMember:
    """A member that a hold is about."""

    id: int
    member_key: str
    state: MemberState
    last_completed_phase: str | None


@dataclass(frozen=True, slots=True)
class HoldLook:
    """A held batch with a slice of the members that it is about; without a hold if the batch is not held."""

    held: HeldBatch
    version: int
    hold: HoldView | None
    members: Sequence[ConcernedMember]
    removal_steps: Sequence[str]

    @property
    def is_approved(self) -> bool:
        """Whether a person has approved it, so that only a tick is missing."""
        return self.hold is not None and self.held.batch.approved_hold_key == self.held.batch.hold_key


def held_page(store: Store, *, before: int | None, limit: int) -> tuple[int, list[HeldBatch]]:
    """Return how many batches are held, and a slice of them, newest first, from before an id."""
    with store.reading() as tx:
        return count_batches(tx, _HELD), _with_what_follows(tx, batches_page(tx, _HELD, before=before, limit=limit))


def look_at_hold(store: Store, batch_id: int, *, after: int = 0, limit: int = 100) -> HoldLook:
    """Look at a hold and at those whom it concerns, from after an id."""
    with store.reading() as tx:
        (held,) = _with_what_follows(tx, [existing_batch(tx, batch_id)])
        (runbook,) = runbooks_by_id(tx, [held.batch.runbook_id])
        try:
            hold = hold_of(store.within(tx), batch_id)
        except HoldChanged:
            return HoldLook(held, runbook.version, None, (), ())
        _, labels = held_members(store.within(tx), batch_id, after=after, limit=limit)
        return HoldLook(held, runbook.version, hold, _concerned(tx, labels), _removal_steps(runbook))


def everybody_concerned(store: Store, batch_id: int) -> Iterator[ConcernedMember]:
    """Yield all members that a hold is about; none any more once it has ended."""
    after = 0
    while True:
        with store.reading() as tx:
            try:
                _, labels = held_members(store.within(tx), batch_id, after=after, limit=_AT_ONCE)
            except HoldChanged:
                return
            found = _concerned(tx, labels)
        yield from found
        if len(found) < _AT_ONCE:
            return
        after = found[-1].id


def _with_what_follows(tx: Transaction, batches: Sequence[BatchRow]) -> list[HeldBatch]:
    ids = [batch.id for batch in batches]
    active = active_counts(tx, ids)
    following: dict[int, PhaseRow] = {}
    for phase in sorted(phases_of_batches(tx, ids), key=lambda phase: phase.order):
        if phase.status is PhaseStatus.PENDING:
            following.setdefault(phase.batch_id, phase)
    return [HeldBatch(batch, active.get(batch.id, 0), following.get(batch.id)) for batch in batches]


def _concerned(tx: Transaction, labels: Sequence[MemberLabel]) -> list[ConcernedMember]:
    ids = [label.id for label in labels]
    states, phases = states_of_members(tx, ids), last_completed_phases(tx, ids)
    return [ConcernedMember(label.id, label.member_key, states[label.id], phases.get(label.id)) for label in labels]


def _removal_steps(runbook: RunbookRow) -> list[str]:
    try:
        return [step.name for step in parse_runbook(runbook.yaml_content).on_member_removed]
    except InvalidRunbook:
        # A document that today's rules refuse does not run.
        return []
