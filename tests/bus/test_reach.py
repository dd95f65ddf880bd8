"""Rule M8: whether a worker has a subscription is asked before the first job to it, and remembered for a while."""

from datetime import timedelta

from matoolkit.bus.servicebus.reach import Reach
from matoolkit.clock import VirtualClock
from matoolkit.errors import BusEntityMissing, BusUnavailable, MatoolkitError
from matoolkit.ports import Subscription


class Namespace:
    """Notes what is asked, and answers with these faults."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.faults: dict[str, MatoolkitError] = {}

    def probe(self, subscription: Subscription) -> None:
        self.asked.append(subscription.name)
        if subscription.name in self.faults:
            raise self.faults[subscription.name]


def test_m8_a_subscription_that_exists_is_asked_for_once_a_minute(clock: VirtualClock) -> None:
    namespace = Namespace()
    reach = Reach(namespace.probe, clock)
    assert [reach.of("a"), reach.of("a"), reach.of("b")] == [True, True, True]
    assert namespace.asked == ["worker-a", "worker-b"]
    clock.advance(timedelta(minutes=1))
    assert reach.of("a")
    assert namespace.asked == ["worker-a", "worker-b", "worker-a"]


def test_m8_a_missing_subscription_is_asked_for_again_soon(clock: VirtualClock) -> None:
    namespace = Namespace()
    namespace.faults["worker-a"] = BusEntityMissing("worker-jobs/worker-a", "localhost")
    reach = Reach(namespace.probe, clock)
    assert [reach.of("a"), reach.of("a")] == [False, False]
    assert namespace.asked == ["worker-a"]
    namespace.faults.clear()
    clock.advance(timedelta(seconds=30))
    assert reach.of("a")


def test_m8_a_bus_that_is_away_fails_no_step(clock: VirtualClock) -> None:
    namespace = Namespace()
    namespace.faults["worker-a"] = BusUnavailable("it is away")
    reach = Reach(namespace.probe, clock)
    assert reach.of("a")
    clock.advance(timedelta(seconds=30))
    namespace.faults["worker-a"] = BusEntityMissing("worker-jobs/worker-a", "localhost")
    assert not reach.of("a")
