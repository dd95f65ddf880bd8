"""Several connections at once, as several processes have them."""

from datetime import timedelta
from functools import partial
from itertools import chain
from threading import Barrier

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves.step import Fail, Succeed
from matoolkit.domain.states import OverdueBehavior
from matoolkit.errors import LeaseLost, RowConflict, StoreBusy
from matoolkit.ids import Kind
from matoolkit.store import Store
from matoolkit.store.batches import lock_batches, move_batches
from matoolkit.store.counts import step_counts
from matoolkit.store.leases import acquire_lease, confirm_lease
from matoolkit.store.members import remove_members
from matoolkit.store.moves import move_steps
from matoolkit.store.outbox import Claim, NewMessage, add_messages, claim_messages, delete_sent
from matoolkit.store.runbooks import NewVersion, publish_version, runbook_versions
from matoolkit.store.steps import cancel_steps_of_batches
from tests.databases import Database
from tests.store.world import World
from tests.threads import in_threads

PROCESSES = 4


@pytest.fixture
def stores(database: Database, clock: VirtualClock) -> list[Store]:
    return [database.open(clock) for _ in range(PROCESSES)]


def test_m3_competing_moves_share_the_rows_without_overlap(world: World, stores: list[Store]) -> None:
    batch = world.batch()
    members = world.members(batch, 400)
    ready = Barrier(PROCESSES)

    def remove(store: Store) -> list[int]:
        ready.wait()
        moved: list[int] = []
        for start in range(0, len(members), 50):
            with store.transaction() as tx:
                lock_batches(tx, [batch.id])
                moved += remove_members(tx, members[start : start + 50], "anna", "test", world.now)
        return moved

    results = in_threads([partial(remove, store) for store in stores])
    assert sorted(chain(*results)) == members


def test_m3_a_result_racing_a_cancel_is_taken_or_cancelled_never_both(world: World, stores: list[Store]) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    steps = world.steps(batch, phase, world.members(batch, 200))
    with stores[0].transaction() as tx:
        world.dispatched(tx, steps)
    ready = Barrier(2)

    def answer() -> list[int]:
        ready.wait()
        moved: list[int] = []
        for step in range(0, 200, 20):
            answers = [Succeed(number, f"step-{number}-attempt-1", "{}") for number in steps[step : step + 20]]
            with stores[0].transaction() as tx:
                lock_batches(tx, [batch.id])
                moved += move_steps(tx, Kind.STEP, answers, world.now)
        return moved

    def cancel() -> list[int]:
        ready.wait()
        with stores[1].transaction() as tx:
            lock_batches(tx, [batch.id])
            return [step.id for step in cancel_steps_of_batches(tx, [batch.id], world.now)]

    answered, cancelled = in_threads([answer, cancel])
    assert sorted(answered + cancelled) == steps


def test_m5_two_results_that_finish_a_phase_at_the_same_moment_end_it_once(world: World, stores: list[Store]) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    steps = world.steps(batch, phase, world.members(batch, 2))
    with stores[0].transaction() as tx:
        world.dispatched(tx, steps)
    ready = Barrier(2)

    def finish(store: Store, step: int) -> list[int]:
        ready.wait()
        with store.transaction() as tx:
            lock_batches(tx, [batch.id])
            failure = Fail(step, f"step-{step}-attempt-1", None, "no")
            assert move_steps(tx, Kind.STEP, [failure], world.now) == [step]
            if [count.count for count in step_counts(tx, [phase.id])] == [2]:
                return move_batches(tx, batch_moves.COMPLETE, [batch.id], world.now)
            return []

    results = in_threads([partial(finish, *pair) for pair in zip(stores[:2], steps, strict=True)])
    assert list(chain(*results)) == [batch.id]


def test_m5_transactions_that_lock_in_any_order_do_not_deadlock(world: World, stores: list[Store]) -> None:
    runbook = world.runbook()
    ids = [world.batch(runbook, start=world.now + timedelta(days=day)).id for day in range(6)]
    ready = Barrier(PROCESSES)

    def lock_many(store: Store, order: list[int]) -> int:
        ready.wait()
        for _ in range(20):
            with store.transaction() as tx:
                assert len(lock_batches(tx, order)) == len(ids)
        return 20

    orders = [ids, ids[::-1], ids[3:] + ids[:3], ids[::2] + ids[1::2]]
    assert in_threads([partial(lock_many, *pair) for pair in zip(stores, orders, strict=True)]) == [20] * 4


def test_m1_relays_claim_each_message_once(world: World, stores: list[Store]) -> None:
    messages = [NewMessage("worker-jobs", f"job-{number}", "worker-job", "{}") for number in range(600)]
    with stores[0].transaction() as tx:
        assert len(add_messages(tx, messages, world.now)) == 600
    ready = Barrier(PROCESSES)

    def relay(store: Store, token: str) -> list[str]:
        claim, sent = Claim(token, world.now + timedelta(minutes=1)), list[str]()
        ready.wait()
        while True:
            with store.transaction() as tx:
                claimed = claim_messages(tx, claim, world.now, limit=40)
            if not claimed:
                return sent
            with store.transaction() as tx:
                ids = [message.id for message in claimed]
                assert delete_sent(tx, claim, ids) == ids
            sent += [message.message_id for message in claimed]

    results = in_threads([partial(relay, store, f"relay-{n}") for n, store in enumerate(stores)])
    assert sorted(chain(*results)) == sorted(message.message_id for message in messages)


def test_m3_a_message_written_by_two_processes_waits_once(world: World, stores: list[Store]) -> None:
    ready = Barrier(PROCESSES)

    def write(store: Store) -> int:
        ready.wait()
        with store.transaction() as tx:
            ids = [f"poll-check-step-{number}-1" for number in range(50)]
            checks = [NewMessage("orchestrator-events", one, "poll-check", "{}") for one in ids]
            return len(add_messages(tx, checks, world.now))

    assert sum(in_threads([partial(write, store) for store in stores])) == 50


def test_t10_only_one_of_many_gets_the_lease(stores: list[Store]) -> None:
    ready = Barrier(PROCESSES)

    def take(store: Store, holder: str) -> str | None:
        ready.wait()
        with store.transaction() as tx:
            lease = acquire_lease(tx, "scheduler", holder, timedelta(minutes=1))
            return lease.holder if lease else None

    holders = in_threads([partial(take, store, f"process-{n}") for n, store in enumerate(stores)])
    assert sorted(holder is not None for holder in holders) == [False, False, False, True]


def test_t10_a_lease_cannot_change_hands_inside_a_transaction_that_confirmed_it(
    database: Database, store: Store, clock: VirtualClock
) -> None:
    impatient = database.open(clock, patience_seconds=0.05)
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", timedelta(minutes=1))
    assert lease is not None
    with store.transaction() as tx:
        confirm_lease(tx, lease)
        clock.advance(timedelta(minutes=2))
        with pytest.raises(StoreBusy), impatient.transaction() as other:
            acquire_lease(other, "scheduler", "process-2", timedelta(minutes=1))
    with impatient.transaction() as other:
        assert acquire_lease(other, "scheduler", "process-2", timedelta(minutes=1)) is not None
    with pytest.raises(LeaseLost), store.transaction() as tx:
        confirm_lease(tx, lease)


def test_v1_people_who_publish_at_the_same_moment_get_different_versions(world: World, stores: list[Store]) -> None:
    world.runbook()
    ready = Barrier(PROCESSES)

    def publish(store: Store) -> int | None:
        new = NewVersion("Wave", "name: wave\n", "hash", OverdueBehavior.RERUN, False, "ben")
        ready.wait()
        try:
            with store.transaction() as tx:
                return publish_version(tx, new, world.now).version
        except RowConflict:
            return None

    versions = [version for version in in_threads([partial(publish, store) for store in stores]) if version]
    assert len(versions) == len(set(versions)) >= 1
    with stores[0].reading() as tx:
        stored = runbook_versions(tx, "wave")
    assert [row.version for row in stored] == sorted({1, *versions}, reverse=True)
    assert [row.is_active for row in stored] == [True] + [False] * len(versions)
