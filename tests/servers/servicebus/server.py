"""A Service Bus namespace on this machine, for the unmodified SDK."""

import gc
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from matoolkit.bus import topology
from matoolkit.clock import Clock, SystemClock
from tests.servers.http import Answer, Request, served
from tests.servers.servicebus.administration import Administration
from tests.servers.servicebus.broker import Broker, Queue, SubscriptionSettings, TopicSettings
from tests.servers.servicebus.faults import Faults
from tests.servers.servicebus.front import Front
from tests.servers.servicebus.gate import Gate
from tests.servers.servicebus.messages import Stored
from tests.servers.servicebus.reactor import Reactor
from tests.servers.servicebus.tokens import Tokens

T = TypeVar("T")


class ServiceBus:
    """`with ServiceBus() as server: server.connection_string`.

    Locks, schedules, lives and duplicates follow the clock that it is given. The broker belongs to the reactor's
    thread; everybody else asks it through `call`.
    """

    def __init__(
        self, port: int = 0, clock: Clock | None = None, certificate: Path | None = None, host: str = "127.0.0.1"
    ) -> None:
        self._reactor = Reactor()
        self._gate = Gate(host, port, certificate)
        self._http = ExitStack()
        self._begin(clock)

    @property
    def port(self) -> int:
        return self._gate.port

    @property
    def connection_string(self) -> str:
        """For both clients of the SDK, with all rights."""
        return self.connection_string_of("RootManageSharedAccessKey")

    def connection_string_of(self, key: str) -> str:
        """Return the connection string of one key: `SendAndListen` may not manage."""
        return (
            f"Endpoint=sb://localhost:{self.port};SharedAccessKeyName={key};"
            f"SharedAccessKey={self.tokens.keys[key].secret};UseDevelopmentEmulator=true;"
        )

    @staticmethod
    def forget_broken() -> None:
        """Let go of what the SDK does not close: the sockets of connections that broke, in 7.15.

        Call it when no test follows: between tests, the tests' own filter forgives the SDK.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    def reset(self, clock: Clock | None = None) -> None:
        """Begin anew, perhaps on another clock: no entity, no message, no connection, no fault."""
        self._gate.cut()
        self.call(lambda: self._begin(clock))

    def empty(self, clock: Clock | None = None) -> None:
        """Forget messages and faults, but keep entities and links, which take the SDK half a second each to open."""

        def forget() -> None:
            self.broker.clock = clock or self.broker.clock
            self.faults.__init__()  # type: ignore[misc]
            for topic in self.broker.topics.values():
                topic.empty()

        self._gate.delay = 0.0
        self.call(forget)

    def _begin(self, clock: Clock | None) -> None:
        self._gate.delay = 0.0
        self.broker = Broker(clock or SystemClock())
        self.faults = Faults()
        self.tokens = Tokens()
        self._front = Front(self.broker, self.faults, self.tokens)
        self._reactor.handlers[:] = [self._front]
        self._administration = Administration(self.broker, self.tokens, self.call, self._drop_orphans)

    def answer(self, request: Request) -> Answer:
        """Answer the administration client."""
        return self._administration.answer(request)

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

    def expire(self, topic: str, subscription: str) -> int:
        """Let the locks of a subscription run out, whatever the clock says, and return how many there were."""

        def run_out() -> int:
            queue = self._queue(topic, subscription)
            number = len(queue.locks)
            queue.expire(queue.locks)
            return number

        return self.call(run_out)

    def delay(self, seconds: float) -> None:
        """Let every piece that comes or goes take this long; a round trip takes it twice."""
        self._gate.delay = seconds

    def cut(self) -> None:
        """Break all connections without a word."""
        self._gate.cut()

    def detach(self, reason: str = "The link was detached by the broker.") -> None:
        """Close all links with an error, as the service does during an update."""
        self.call(lambda: self._front.detach("amqp:link:detach-forced", reason))

    def detach_idle(self) -> None:
        """Close all links as the service does after ten minutes without a message."""
        self.detach(
            "The link is force detached. Details: AmqpMessageConsumer.IdleTimerExpired: Idle timeout: 00:10:00."
        )

    def delete(self, topic: str, subscription: str | None = None) -> None:
        """Take an entity away, and close the links to it."""

        def remove() -> None:
            if subscription is None:
                del self.broker.topics[topic.lower()]
            else:
                del self.broker.topics[topic.lower()].subscriptions[subscription.lower()]
            self._drop_orphans()

        self.call(remove)

    def _drop_orphans(self) -> None:
        self._front.detach("amqp:not-found", "The messaging entity could not be found.", orphans=True)

    def call(self, ask: Callable[[], T]) -> T:
        """Run something on the reactor's thread and return what it returns."""
        return self._reactor.call(ask)

    def _queue(self, topic: str, subscription: str, *, dead: bool = False) -> Queue:
        found = self.broker.queue(f"{topic}/Subscriptions/{subscription}" + ("/$DeadLetterQueue" if dead else ""))
        assert found is not None, f"there is no subscription {subscription} of {topic}"
        return found

    def __enter__(self) -> Self:
        self._reactor.start()
        address = self._http.enter_context(served(self))
        self._gate.start(self._reactor.port, int(address.rpartition(":")[2]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate.stop()
        self._http.close()
        self._reactor.stop()
