"""A Service Bus namespace for the tests of the bus: it is emptied for each test, and its links stay open."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from matoolkit.bus.servicebus import Address, ServiceBus
from matoolkit.bus.servicebus.inbox import Inbox
from matoolkit.bus.topology import UNCLAIMED_JOBS, condition_of, jobs_of_worker
from matoolkit.clock import Clock, SystemClock
from matoolkit.ports import Subscription

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus as Server

WORKERS = ("w", "worker-01", "worker-02", "worker-03")


class BorrowedClock:
    """The clock of the test that runs."""

    def __init__(self) -> None:
        self.lender: Clock = SystemClock()

    def now(self) -> datetime:
        return self.lender.now()

    def monotonic(self) -> float:
        return self.lender.monotonic()

    def sleep(self, seconds: float) -> None:
        self.lender.sleep(seconds)


class Namespace:
    """A server with all entities, and a bus whose links outlive a test: opening one takes longer than most tests."""

    def __init__(self, server: "Server") -> None:
        self.server = server
        self._clock = BorrowedClock()
        server.reset(self._clock)
        server.lay_out(*WORKERS)
        server.subscribe(UNCLAIMED_JOBS.topic, UNCLAIMED_JOBS.name, condition_of(UNCLAIMED_JOBS, WORKERS))
        self.bus = ServiceBus(self.address, clock=self._clock)

    @property
    def address(self) -> Address:
        return Address(connection_string=SecretStr(self.server.connection_string))

    def emptied(self, clock: Clock) -> ServiceBus:
        """Return the bus with no message anywhere, and with another clock."""
        bus = self.bus
        self._clock.lender = clock
        self.server.empty()

        async def forget() -> None:
            # Messages of the last test may still be in the socket, because the link had credit for them.
            await asyncio.gather(*(_forgotten(inbox) for inbox in bus._inboxes.values()))  # noqa: SLF001
            bus._out.clear()  # noqa: SLF001
            bus._owed.clear()  # noqa: SLF001
            for sender in bus._senders.values():  # noqa: SLF001
                sender.forgive()

        bus._do(forget())  # noqa: SLF001
        self.server.empty()
        return bus

    @contextmanager
    def taking_everything(self, subscription: Subscription) -> Iterator[None]:
        """Let a subscription take all messages of its topic for a while."""
        found = self.server.broker.topics[subscription.topic].subscriptions[subscription.name]
        rules = found.rules
        self.server.call(lambda: found.change_rules({"$Default": "1=1"}))
        try:
            yield
        finally:
            self.server.call(lambda: found.change_rules(rules))

    @contextmanager
    def subscribed(self, worker: str) -> Iterator[Subscription]:
        """Give a worker a subscription for a while, and let `unclaimed` leave its jobs alone."""
        mine = jobs_of_worker(worker)
        unclaimed = self.server.broker.topics[UNCLAIMED_JOBS.topic].subscriptions[UNCLAIMED_JOBS.name]
        rules, condition = unclaimed.rules, condition_of(UNCLAIMED_JOBS, (*WORKERS, worker))
        self.server.subscribe(mine.topic, mine.name, condition_of(mine, ()))
        self.server.call(lambda: unclaimed.change_rules({"matoolkit": condition}))
        try:
            yield mine
        finally:
            self.server.call(lambda: unclaimed.change_rules(rules))
            self.server.delete(mine.topic, mine.name)

    @contextmanager
    def another_process(self) -> Iterator[ServiceBus]:
        """Give a bus with links of its own."""
        other = ServiceBus(self.address, clock=self._clock)
        try:
            yield other
        finally:
            other.stop()


async def _forgotten(inbox: Inbox) -> None:
    """Receive what is left, and take back the link's credit: otherwise it locks the next message as it is sent."""
    await inbox.take(250)
    if inbox.link._end is not None:  # noqa: SLF001
        handler: Any = inbox.link._end._handler  # noqa: SLF001
        await handler._link.flow(link_credit=0)  # noqa: SLF001


def bodies(server: "Server", subscription: Subscription, *, dead: bool = False) -> list[str | None]:
    """Return the ids of all messages that a subscription holds."""
    return [one.message_id for one in server.messages(subscription.topic, subscription.name, dead=dead)]
