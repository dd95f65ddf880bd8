"""Counts are stored as they change, and are what counting would find."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Barrier

import pytest
from sqlalchemy import text

from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves.step import Fail, PollLater, RetryLater, StepMove, Succeed
from matoolkit.domain.states import MOVED, OPEN_STEPS, MemberStatus, StepStatus
from matoolkit.errors import StoreBusy, StoreError
from matoolkit.ids import Kind
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, lock_batches
from matoolkit.store.counting import changes_of, count_again, differing_counts
from matoolkit.store.counts import member_counts, step_counts, step_counts_by_place
from matoolkit.store.enrolments import members_page
from matoolkit.store.executions import NewExecution, rollbacks_by_id, steps_by_id
from matoolkit.store.members import (
    MemberAt,
    Refresh,
    Restart,
    Return,
    fail_members,
    members_by_id,
    note_caught_up,
    note_seen_off,
    reactivate_members,
    refresh_members,
    remove_members,
    restart_members,
    return_members,
)
from matoolkit.store.memberstates import states_of_members
from matoolkit.store.moves import cancel, move_steps, reopen, repeat
from matoolkit.store.phases import PhaseRow, move_phases
from matoolkit.store.statecounts import state_counts
from matoolkit.store.steps import (
    PhasePlace,
    cancel_steps_of_members,
    cancel_steps_of_older_epochs,
    cancel_steps_of_phases,
    insert_phase_steps,
)
from matoolkit.store.undoing import UndoneMember, undo_members
from tests.databases import Database
from tests.store.world import World
from tests.threads import in_threads

PLACES = 2


class Play:
    """A batch in which anything may be tried; what the guards refuse must not be counted."""

    def __init__(self, store: Store, world: World, seed: int) -> None:
        self.store, self.world, self.chance = store, world, random.Random(seed)
        self.batch = world.batch()
        self.phases = [world.phase(self.batch, index) for index in range(2)]
        self.members = [*world.members(self.batch, 6), *world.members(self.batch, 2, waiting=True, prefix="late")]
        self.undos: list[int] = []

    def some(self, numbers: list[int]) -> list[int]:
        return self.chance.sample(numbers, self.chance.randint(1, len(numbers))) if numbers else []

    def act(self, tx: Transaction) -> None:
        kinds = (self._expand, self._jobs, self._jobs, self._jobs, self._step_changes, self._members, self._undo)
        self.chance.choice(kinds)(tx)

    def _expand(self, tx: Transaction) -> None:
        phase = self.chance.choice(self.phases)
        work = [NewExecution(step_name=f"s{n}", step_index=n, worker_id="w", timeout_sec=60) for n in range(PLACES)]
        insert_phase_steps(tx, PhasePlace(phase.id, 1, 0), work, self.some(self.members), self.world.now)
        move_phases(tx, phase_moves.DISPATCH, [phase.id], self.world.now)

    def _steps(self, tx: Transaction) -> list[int]:
        return sorted(tx.values(text("SELECT id FROM step_executions")))

    def _jobs(self, tx: Transaction) -> None:
        kind, ids = Kind.STEP, self._steps(tx)
        if self.undos and self.chance.random() < 0.3:
            kind, ids = Kind.ROLLBACK, self.undos
        chosen = self.some(ids)
        rows = (rollbacks_by_id if kind is Kind.ROLLBACK else steps_by_id)(tx, chosen)
        now = self.world.now
        moves: list[StepMove] = []
        for row in rows:
            job, attempt = row.job_id or "none", row.attempt + self.chance.choice((1, 1, 1, 2))
            answers: list[StepMove] = [
                *[self.world.job(row.id, attempt)] * 2,
                Succeed(row.id, job, "{}"),
                PollLater(row.id, job, "{}", now),
                RetryLater(row.id, job, "Busy", "later", now, 1),
                Fail(row.id, job, "Odd", "no"),
            ]
            moves.append(self.chance.choice(answers))
        move_steps(tx, kind, moves, now)

    def _step_changes(self, tx: Transaction) -> None:
        now, ids = self.world.now, self.some(self._steps(tx))
        changes: list[Callable[[], object]] = [
            partial(cancel, tx, Kind.STEP, ids, now),
            partial(reopen, tx, Kind.STEP, ids),
            partial(repeat, tx, Kind.STEP, ids),
            partial(cancel_steps_of_members, tx, self.some(self.members), now),
            partial(cancel_steps_of_older_epochs, tx, self.some(self.members), now),
            partial(cancel_steps_of_phases, tx, [self.chance.choice(self.phases).id], now),
        ]
        self.chance.choice(changes)()

    def _members(self, tx: Transaction) -> None:
        now, ids = self.world.now, self.some(self.members)
        present = [MemberAt(member.id, member.epoch) for member in members_by_id(tx, ids)]
        undone = [UndoneMember(one.id, one.epoch, 1, "anna", "wrong list") for one in present]
        changes: list[Callable[[], object]] = [
            partial(remove_members, tx, ids, "anna", self.chance.choice(("gone", MOVED)), now),
            partial(return_members, tx, [Return(one, "{}", "h") for one in ids], now),
            partial(return_members, tx, [Return(one, "{}", "h") for one in ids], now, undone=True),
            partial(fail_members, tx, present, now),
            partial(reactivate_members, tx, ids),
            partial(restart_members, tx, [Restart(one) for one in ids], now, forget_outputs=True),
            partial(note_caught_up, tx, present, now),
            partial(note_seen_off, tx, present, now),
            partial(undo_members, tx, undone, now),
        ]
        self.chance.choice(changes)()

    def _undo(self, tx: Transaction) -> None:
        member = self.chance.choice([*self.members, None])
        self.undos.append(self.world.rollback(tx, self.batch, member, f"undo-{len(self.undos)}"))
        if self.chance.random() < 0.5:
            cancel(tx, Kind.ROLLBACK, self.some(self.undos), self.world.now)


def counted_states(tx: Transaction, batch: BatchRow) -> dict[object, int]:
    return {one.state: one.count for one in state_counts(tx, member_counts(tx, [batch.id]))}


@pytest.mark.parametrize("seed", range(6))
def test_u1_whatever_happens_what_is_stored_is_what_counting_finds(store: Store, world: World, seed: int) -> None:
    play = Play(store, world, seed)
    seen = 0
    for _ in range(60):
        undos = list(play.undos)
        try:
            with store.transaction() as tx:
                play.act(tx)
                play.act(tx)
                if play.chance.random() < 0.2:
                    raise ZeroDivisionError  # whatever was moved was not
        except ZeroDivisionError:
            play.undos = undos
        with store.reading() as tx:
            assert differing_counts(tx, [play.batch.id]) == []
            (changes,) = changes_of(tx, [play.batch.id]).values()
        assert changes >= seen
        seen = changes


def test_u1_steps_are_counted_by_phase_place_and_status(store: Store, world: World) -> None:
    batch = world.batch()
    first, second = world.phase(batch, 0), world.phase(batch, 1)
    members = world.members(batch, 3)
    steps = world.steps(batch, first, members, per_member=2)
    world.steps(batch, second, members[:1])
    with store.transaction() as tx:
        world.dispatched(tx, steps[:3:2])
        # Counted in the transaction too, before it commits.
        assert _by_place(tx, first) == {(0, "pending"): 1, (0, "dispatched"): 2, (1, "pending"): 3}
    with store.reading() as tx:
        assert _by_place(tx, first) == {(0, "pending"): 1, (0, "dispatched"): 2, (1, "pending"): 3}
        assert [(one.status, one.count) for one in step_counts(tx, [first.id])] == [
            (StepStatus.PENDING, 4),
            (StepStatus.DISPATCHED, 2),
        ]
        assert _by_place(tx, second) == {(0, "pending"): 1}


def _by_place(tx: Transaction, phase: PhaseRow) -> dict[tuple[int, str], int]:
    return {(one.step_index, str(one.status)): one.count for one in step_counts_by_place(tx, [phase.id])}


def test_a_part_that_is_undone_is_not_counted_and_what_was_before_it_is(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 3)
    steps = world.steps(batch, phase, members)
    with store.transaction() as tx:
        world.dispatched(tx, steps[:1])
        with pytest.raises(ZeroDivisionError), tx.part():
            world.dispatched(tx, steps[1:])
            # Who counts writes what was noted, also what was noted before the part.
            assert _by_place(tx, phase) == {(0, "dispatched"): 3}
            raise ZeroDivisionError
        with tx.part():
            fail_members(tx, [MemberAt(members[2], 1)], world.now)
    with store.reading() as tx:
        assert _by_place(tx, phase) == {(0, "pending"): 2, (0, "dispatched"): 1}
        assert {one.status: one.count for one in member_counts(tx, [batch.id])} == {"active": 2, "failed": 1}
        assert differing_counts(tx, [batch.id]) == []


def test_u1_members_at_work_in_overlapping_phases_are_counted_once(store: Store, world: World) -> None:
    batch = world.batch()
    phases = [world.phase(batch, index) for index in range(2)]
    members = world.members(batch, 5)
    for phase in phases:
        world.steps(batch, phase, members[: 4 - phase.phase_index], per_member=2)
    leaver, comer = members[0], members[1]
    with store.transaction() as tx:
        move_phases(tx, phase_moves.DISPATCH, [phase.id for phase in phases], world.now)
        move_phases(tx, phase_moves.EXPAND, [phase.id for phase in phases], world.now)
        remove_members(tx, [leaver], "anna", "gone", world.now)
        fail_members(tx, [MemberAt(comer, 1)], world.now)
        restart_members(tx, [Restart(comer)], world.now, forget_outputs=False)
    with store.reading() as tx:
        assert counted_states(tx, batch) == Counter(states_of_members(tx, members).values())
        assert len(members_page(tx, batch.id)) == 5


def test_every_change_of_a_batch_raises_its_number_and_no_other(store: Store, world: World) -> None:
    batch = world.batch()
    other = world.another(batch)
    phase, members = world.phase(batch), world.members(batch, 2)
    (step, _) = world.steps(batch, phase, members)

    def numbers() -> tuple[int, int]:
        with store.reading() as tx:
            found = changes_of(tx, [batch.id, other.id])
        return found[batch.id], found[other.id]

    changes: list[Callable[[Transaction], object]] = [
        lambda tx: world.dispatched(tx, [step]),
        lambda tx: move_phases(tx, phase_moves.DISPATCH, [phase.id], world.now),
        lambda tx: refresh_members(tx, [Refresh(members[0], '{"n": 2}', "h")]),
        lambda tx: world.rollback(tx, batch, None, "undo-init"),
    ]
    before = numbers()
    for change in changes:
        with store.transaction() as tx:
            change(tx)
        assert numbers() == (before[0] + 1, before[1])
        before = numbers()
    with store.transaction() as tx:
        assert world.dispatched(tx, [step]) == []  # a guard refused it
    assert numbers() == before


def test_rows_that_were_edited_are_found_and_counted_again(store: Store, world: World) -> None:
    batch = world.batch()
    phase, members = world.phase(batch), world.members(batch, 3)
    world.steps(batch, phase, members)
    with store.transaction() as tx:
        tx.execute(text("UPDATE step_executions SET status = 'succeeded'"))
        tx.execute(text(f"UPDATE batch_members SET status = 'failed' WHERE id = {members[0]}"))
        assert differing_counts(tx, [batch.id]) == [
            f"member {members[0]}: 1, not 9",
            f"steps of phase {phase.id}, 0, pending: -3",
            f"steps of phase {phase.id}, 0, succeeded: +3",
        ]
        count_again(tx, [batch.id])
        assert differing_counts(tx, [batch.id]) == []
        assert _by_place(tx, phase) == {(0, "succeeded"): 3}
        assert [(one.status, one.count) for one in member_counts(tx, [batch.id])] == [
            (MemberStatus.ACTIVE, 2),
            (MemberStatus.FAILED, 1),
        ]


@pytest.mark.on("postgresql", "mssql")
def test_m5_moves_at_the_same_moment_are_all_counted(world: World, database: Database) -> None:
    """Also those that begin to count something at the same time, and those that lock no batch."""
    batch = world.batch()
    phase = world.phase(batch)
    steps = world.steps(batch, phase, world.members(batch, 40))
    stores, ready = [database.open(clock=world.clock) for _ in range(4)], Barrier(4)

    def dispatch(store: Store, mine: list[int], locked: bool) -> int:
        ready.wait()
        for step in mine:
            while not (moved := try_once(store, step, locked)):
                pass  # without the lock two may wait for each other, and one is told to try again
            assert moved == [step]
        return len(mine)

    def try_once(store: Store, step: int, locked: bool) -> list[int]:
        with suppress(StoreBusy), store.transaction() as tx:
            if locked:
                lock_batches(tx, [batch.id])
            return world.dispatched(tx, [step])
        return []

    parts = [partial(dispatch, store, steps[n::4], n % 2 == 0) for n, store in enumerate(stores)]
    assert in_threads(parts) == [10] * 4
    with world.store.reading() as tx:
        assert differing_counts(tx, [batch.id]) == []
        assert _by_place(tx, phase) == {(0, "dispatched"): 40}


def test_a_transaction_that_cannot_count_does_nothing(store: Store, world: World) -> None:
    batch = world.batch()
    (step,) = world.steps(batch, world.phase(batch), world.members(batch, 1))
    with store.transaction() as tx:
        tx.execute(text("DROP TABLE step_counts"))
    with pytest.raises(StoreError), store.transaction() as tx:
        assert world.dispatched(tx, [step]) == [step]
    with store.reading() as tx:
        assert steps_by_id(tx, [step])[0].status in OPEN_STEPS - {StepStatus.DISPATCHED}
