"""A Service Bus namespace on this machine, for the unmodified SDK."""

from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from matoolkit.bus import topology
from matoolkit.clock import Clock, SystemClock
from tests.servers.servicebus.broker import Broker, Queue, SubscriptionSettings, TopicSettings
from tests.servers.servicebus.faults import Faults
from tests.servers.servicebus.front import Front
from tests.servers.servicebus.messages import Stored
from tests.servers.servicebus.reactor import Reactor

T = TypeVar("T")


class ServiceBus:
    """`with ServiceBus() as server: server.connection_string`.

    Locks, schedules, lives and duplicates follow the clock that it is given. The broker belongs to the reactor's
    thread; everybody else asks it through `call`.
    """

    def __init__(self, port: int = 0, clock: Clock | None = None) -> None:
        self._reactor = Reactor(port)
        self._begin(clock)

    @property
    def port(self) -> int:
        return self._reactor.port

    @property
    def connection_string(self) -> str:
        return (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName=RootManageSharedAccessKey;"
            "SharedAccessKey=not-a-secret;UseDevelopmentEmulator=true;"
        )

    def reset(self, clock: Clock | None = None) -> None:
        """Begin anew, perhaps on another clock: no entity, no message, no connection, no fault."""
        self.cut()
        self.call(lambda: self._begin(clock))

    def empty(self) -> None:
        """Forget all messages and faults. Entities stay, and so do connections: it takes long to open one."""

        def empty() -> None:
            self.faults.__init__()  # type: ignore[misc]
            for topic in self.broker.topics.values():
                topic.empty()

        self.call(empty)

    def _begin(self, clock: Clock | None) -> None:
        self.broker = Broker(clock or SystemClock())
        self.faults = Faults()
        self._front = Front(self.broker, self.faults)
        self._reactor.handlers[:] = [self._front]

    def lay_out(self, *workers: str) -> None:
        """Create the topics of the toolkit, the orchestrator's subscriptions and those of some workers."""
        settings = TopicSettings(topology.TIME_TO_LIVE, topology.DUPLICATE_WINDOW)
        for topic in (topology.ORCHESTRATOR_EVENTS, topology.WORKER_JOBS, topology.WORKER_RESULTS):
            self.create_topic(topic, settings)
        for subscription in (topology.EVENTS_OF_ORCHESTRATOR, topology.RESULTS_OF_ORCHESTRATOR):
            self.subscribe(subscription.topic, subscription.name)
        for worker in workers:
            jobs = topology.jobs_of_worker(worker)
            self.subscribe(jobs.topic, jobs.name, f"{topology.WORKER_ID} = '{worker}'")

    def create_topic(self, name: str, settings: TopicSettings | None = None) -> None:
        self.call(lambda: self.broker.create_topic(name, settings))

    def subscribe(self, topic: str, name: str, sql: str = "1=1", settings: SubscriptionSettings | None = None) -> None:
        """Create a subscription with one rule."""
        wanted = settings or SubscriptionSettings(topology.LOCK_DURATION, dead_letters_expired=True)
        self.call(lambda: self.broker.create_subscription(topic, name, wanted, {"$Default": sql}))

    def messages(self, topic: str, subscription: str, *, dead: bool = False) -> list[Stored]:
        """What a subscription holds, locked and deferred messages too, or its dead letters; oldest first."""

        def look() -> list[Stored]:
            self.broker.tick()
            return self._queue(topic, subscription, dead=dead).everything()

        return self.call(look)

    def locked(self, topic: str, subscription: str) -> int:
        """How many messages of a subscription are in somebody's hands."""

        def look() -> int:
            self.broker.tick()
            return len(self._queue(topic, subscription).locks)

        return self.call(look)

    def cut(self) -> None:
        """Close all connections."""
        self.call(self._front.cut)

    def call(self, ask: Callable[[], T]) -> T:
        """Run something on the reactor's thread and return what it returns."""
        return self._reactor.call(ask)

    def _queue(self, topic: str, subscription: str, *, dead: bool = False) -> Queue:
        found = self.broker.queue(f"{topic}/Subscriptions/{subscription}" + ("/$DeadLetterQueue" if dead else ""))
        assert found is not None, f"there is no subscription {subscription} of {topic}"
        return found

    def __enter__(self) -> Self:
        self._reactor.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._reactor.stop()
