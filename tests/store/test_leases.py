from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.errors import LeaseLost
from matoolkit.store import Store
from matoolkit.store.leases import Lease, acquire_lease, confirm_lease, held_leases, release_lease, renew_lease
from tests.databases import Database
from tests.threads import in_threads

pytestmark = pytest.mark.both_executions

MINUTE = timedelta(minutes=1)


def test_t10_one_process_holds_a_lease_at_a_time(store: Store) -> None:
    with store.transaction() as tx:
        first = acquire_lease(tx, "scheduler", "process-1", MINUTE)
    with store.transaction() as tx:
        assert first is not None
        assert acquire_lease(tx, "scheduler", "process-2", MINUTE) is None
        assert acquire_lease(tx, "scheduler", "process-1", MINUTE) is None
        assert held_leases(tx) == [first]


def test_t10_a_lease_says_nothing_about_one_of_another_name(store: Store, clock: VirtualClock) -> None:
    with store.transaction() as tx:
        first = acquire_lease(tx, "ticks", "a", timedelta(minutes=1))
        second = acquire_lease(tx, "repairs", "b", timedelta(minutes=5))
        assert first is not None
        assert second is not None
        assert (first.token, second.token) == (1, 1)
    clock.advance(timedelta(minutes=2))
    with store.transaction() as tx:
        assert renew_lease(tx, second, timedelta(minutes=5)).name == "repairs"
        assert [lease.name for lease in held_leases(tx)] == ["repairs"]
        assert not release_lease(tx, first)
        with pytest.raises(LeaseLost):
            confirm_lease(tx, first)
        again = acquire_lease(tx, "ticks", "c", timedelta(minutes=1))
        assert again is not None
        assert [(lease.name, lease.holder) for lease in held_leases(tx)] == [("repairs", "b"), ("ticks", "c")]
    clock.advance(timedelta(minutes=10))
    with store.transaction() as tx:
        acquire_lease(tx, "ticks", "d", timedelta(minutes=1))
        assert [(lease.name, lease.holder) for lease in held_leases(tx)] == [("ticks", "d")]


def test_t10_an_expired_lease_changes_hands_and_its_old_holder_is_fenced_off(store: Store, clock: VirtualClock) -> None:
    with store.transaction() as tx:
        old = acquire_lease(tx, "scheduler", "process-1", MINUTE)
    assert old is not None
    clock.advance(MINUTE)
    with pytest.raises(LeaseLost), store.transaction() as tx:
        confirm_lease(tx, old)
    with store.transaction() as tx:
        new = acquire_lease(tx, "scheduler", "process-2", MINUTE)
        assert new is not None
        assert new.token > old.token
        confirm_lease(tx, new)
    for attempt in (confirm_lease, partial(renew_lease, length=MINUTE)):
        with pytest.raises(LeaseLost, match="process-1 no longer holds"), store.transaction() as tx:
            attempt(tx, old)
    with store.transaction() as tx:
        assert not release_lease(tx, old)
        confirm_lease(tx, new)


def test_t10_a_renewed_lease_lasts_from_then_on(store: Store, clock: VirtualClock) -> None:
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", MINUTE)
    assert lease is not None
    for _ in range(3):
        clock.advance(timedelta(seconds=59))
        with store.transaction() as tx:
            lease = renew_lease(tx, lease, MINUTE)
            assert lease.expires_at == clock.now() + MINUTE


def test_t10_a_released_lease_is_free_at_once(store: Store) -> None:
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", MINUTE)
        assert lease is not None
        assert release_lease(tx, lease)
        assert acquire_lease(tx, "scheduler", "process-2", MINUTE) is not None


def test_t10_the_databases_clock_decides_not_that_of_a_process(database: Database, clock: VirtualClock) -> None:
    fast = VirtualClock(clock.now())
    on_database_time, other = database.open(), database.open()
    with on_database_time.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", timedelta(hours=1))
        assert lease is not None
    fast.advance(timedelta(days=365))
    with other.transaction() as tx:
        assert acquire_lease(tx, "scheduler", "process-2", timedelta(hours=1)) is None
        confirm_lease(tx, lease)
        assert lease.expires_at - tx.time() <= timedelta(hours=1)


def test_t10_a_lease_that_was_waited_for_is_as_long_as_any(database: Database) -> None:
    store = database.open()
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", timedelta(seconds=0.2))
    assert lease is not None

    def take() -> None:
        with store.transaction() as tx:
            new = acquire_lease(tx, "scheduler", "process-2", timedelta(seconds=0.5))
            assert new is not None
            assert new.expires_at > tx.time()

    in_threads([partial(_confirm_for, store, lease, 1.2), partial(_after, 0.4, take)])


def test_t10_a_renewal_that_waited_until_the_lease_ran_out_is_refused(database: Database) -> None:
    store = database.open()
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", timedelta(seconds=0.5))
    assert lease is not None

    def renew() -> None:
        with pytest.raises(LeaseLost), store.transaction() as tx:
            renew_lease(tx, lease, timedelta(seconds=0.5))

    in_threads([partial(_confirm_for, store, lease, 1.2), partial(_after, 0.2, renew)])


def test_t10_who_asks_for_a_lease_that_is_held_does_not_wait_for_its_holder(database: Database) -> None:
    store, impatient = database.open(), database.open(patience_seconds=0.05)
    if store.dialect.is_file:
        pytest.skip("a file has one writer at a time, so everybody waits")
    with store.transaction() as tx:
        lease = acquire_lease(tx, "scheduler", "process-1", MINUTE)
    assert lease is not None
    with store.transaction() as tx:
        confirm_lease(tx, lease)
        with impatient.transaction() as other:
            assert acquire_lease(other, "scheduler", "process-2", MINUTE) is None


def _confirm_for(store: Store, lease: Lease, seconds: float) -> None:
    with store.transaction() as tx:
        confirm_lease(tx, lease)
        SystemClock().sleep(seconds)


def _after(seconds: float, act: Callable[[], None]) -> None:
    SystemClock().sleep(seconds)
    act()
