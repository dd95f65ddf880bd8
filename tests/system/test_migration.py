"""The sample runbook moves people through the simulated tenant, whatever that does meanwhile."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import cycle
from pathlib import Path

import pytest

from matoolkit.bus.sql import SqlBus
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.states import BatchStatus
from matoolkit.simulate.apart import BusApart
from matoolkit.store import Store, schema
from matoolkit.worker.tenant.faults import Fault
from tests.system.migration import Migration, migration, wanted_end_state

PEOPLE = 4
SECRET = "Correct-Horse-Battery-9"


@pytest.fixture
def moving(store: Store, clock: VirtualClock, tmp_path: Path) -> Iterator[Migration]:
    with migration(store, clock, tmp_path, {"MATOOLKIT_SECRET_INITIAL_PASSWORD": SECRET}) as moving:
        moving.add_people(PEOPLE)
        yield moving


def run_to_the_end(moving: Migration, *troubles: Callable[[], Fault]) -> None:
    """Let days pass until the batch has ended; some trouble begins every few hours."""
    for trouble, _ in zip(cycle(troubles or [None]), range(100), strict=False):
        if trouble is not None:
            moving.tenant.faults.add(trouble())
        moving.go_on(hours=6)
        if moving.batch().status in {BatchStatus.COMPLETED, BatchStatus.FAILED}:
            break
    assert moving.batch().status is BatchStatus.COMPLETED


def test_w2_everybody_moves_under_lag_and_throttling(moving: Migration) -> None:
    lags = moving.tenant.directory.lags
    lags.graph, lags.exchange, lags.sync = 10, 20, 3000
    run_to_the_end(
        moving,
        lambda: Fault("throttle", "users", times=4, retry_after=30),
        lambda: Fault("busy", times=3),
        lambda: Fault("lost", times=3),
        lambda: Fault("throttle", times=2, status=503, retry_after=5, retry_after_as_date=True),
        lambda: Fault("reset", times=3),
        lambda: Fault("limit", calls=10, seconds=20, times=None, for_seconds=600),
    )
    assert moving.end_state() == wanted_end_state(*range(PEOPLE))
    assert {user.passwords_set for user in moving.tenant.directory.users.values()} == {0, 1}


@pytest.mark.parametrize(
    ("kind", "point"),
    [(SqlBus, "worker.called"), (SqlBus, "bus.received"), (SqlBus, "bus.settled"), (BusApart, "bus.answered")],
)
def test_w1_a_worker_that_dies_again_and_again_ends_the_same(moving: Migration, kind: type[SqlBus], point: str) -> None:
    moving.restart_worker(kind)
    for hits in (1, 3, 2, 5, 1, 4):
        with crashing(point, on_hit=hits):
            while True:
                try:
                    moving.go_on(hours=6)
                except SimulatedCrash:
                    break
                if moving.batch().status is BatchStatus.COMPLETED:
                    break
        moving.clock.advance(timedelta(minutes=2))
        moving.restart_worker(kind)
    run_to_the_end(moving)
    assert moving.end_state() == wanted_end_state(*range(PEOPLE))


def test_w8_a_secret_is_nowhere_in_the_database(moving: Migration, store: Store) -> None:
    moving.tenant.faults.add(Fault("refuse", "New-MailUser", times=2, status=400, code=f"Bad {SECRET}"))
    run_to_the_end(moving)
    assert moving.end_state() == wanted_end_state(*range(PEOPLE))
    with store.reading() as tx:
        kept = str([tx.rows(lambda *row: row, table.select()) for table in schema.metadata.sorted_tables])
    assert "secret:initial-password" in kept
    assert SECRET not in kept
    assert "simulated-1" not in kept
