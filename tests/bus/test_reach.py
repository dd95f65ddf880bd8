"""Rule M8: whether a worker has a subscription is asked before the first job to it, and remembered for a while."""

from collections.abc import Sequence
from datetime import timedelta

from matoolkit.bus.servicebus.reach import Reach
from matoolkit.clock import VirtualClock
from matoolkit.errors import BusEntityDisabled, BusEntityMissing, BusUnavailable, MatoolkitError
from matoolkit.ports import Subscription


class Namespace:
    """Notes what is asked, and answers with these faults."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.faults: dict[str, MatoolkitError] = {}

    def probe(self, subscriptions: Sequence[Subscription]) -> list[MatoolkitError | None]:
        self.asked.append([one.name for one in subscriptions])
        return [self.faults.get(one.name) for one in subscriptions]


def test_m8_subscriptions_are_asked_for_all_at_once_and_then_once_a_minute(clock: VirtualClock) -> None:
    namespace = Namespace()
    reach = Reach(namespace.probe, clock)
    assert reach.missing(["b", "a"]) == reach.missing(["a"]) == set()
    assert namespace.asked == [["worker-a", "worker-b"]]
    assert reach.missing(["a", "c"]) == set()
    assert namespace.asked[1:] == [["worker-c"]]
    clock.advance(timedelta(minutes=1))
    assert reach.missing(["a"]) == set()
    assert namespace.asked[2:] == [["worker-a"]]


def test_m8_a_missing_subscription_is_asked_for_again_soon(clock: VirtualClock) -> None:
    namespace = Namespace()
    namespace.faults["worker-a"] = BusEntityMissing("worker-jobs/worker-a", "localhost")
    reach = Reach(namespace.probe, clock)
    assert reach.missing(["a", "b"]) == reach.missing(["a"]) == {"a"}
    assert len(namespace.asked) == 1
    namespace.faults.clear()
    clock.advance(timedelta(seconds=30))
    assert reach.missing(["a"]) == set()


def test_m8_a_bus_that_is_away_fails_no_step(clock: VirtualClock) -> None:
    namespace = Namespace()
    namespace.faults["worker-a"] = BusUnavailable("it is away")
    reach = Reach(namespace.probe, clock)
    assert reach.missing(["a"]) == set()
    clock.advance(timedelta(seconds=30))
    namespace.faults["worker-a"] = BusEntityMissing("worker-jobs/worker-a", "localhost")
    assert reach.missing(["a"]) == {"a"}


def test_m8_a_disabled_subscription_takes_jobs(clock: VirtualClock) -> None:
    namespace = Namespace()
    namespace.faults["worker-a"] = BusEntityDisabled("worker-jobs/worker-a", "localhost")
    assert Reach(namespace.probe, clock).missing(["a"]) == set()
