"""Links to Service Bus: one sender for each topic, one receiver for each subscription. Lives in the private thread.

A link drops after ten idle minutes, at every failover, and whenever the network does. Then it is thrown away, and the
next use opens another one. Messages that came over the old link are settled by their lock tokens.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from matoolkit.backoff import Backoff
from matoolkit.bus.servicebus.address import Address, Identity
from matoolkit.bus.servicebus.faults import is_lost, is_refusal, leaves_the_link_alone, may_pass_with_a_new_link, told
from matoolkit.bus.servicebus.messages import pieces, without_lock_end
from matoolkit.clock import Clock
from matoolkit.errors import MatoolkitError, MessageRefused
from matoolkit.pauses import Pause
from matoolkit.tokens import first_line

if TYPE_CHECKING:
    from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
    from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender

# The SDK looks at its socket for this long at a time. A pile is settled in about one look, an empty receive takes one.
SOCKET_SECONDS = 0.02
OPEN_SECONDS = 20.0
CLOSE_SECONDS = 2.0
# A settlement or a renewal that is not answered after this long goes over another link.
SETTLE_SECONDS = 10.0
# How long an answer to a receive may be late before the link counts as hung.
_LATE_SECONDS = 5.0
# How long nobody sends after a fault. The longest is far below the claim of the outbox.
_PAUSES = Backoff(first_seconds=0.5, longest_seconds=15)

EndT = TypeVar("EndT", "ServiceBusSender", "ServiceBusReceiver")
ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class Locked:
    """A message that is locked for us, and the receiver over which it came."""

    message: "ServiceBusReceivedMessage"
    receiver: "ServiceBusReceiver"
    link: "ReceivingLink"
    # When its lock ends, or a little earlier: our own clock, which is not the server's.
    ends_at: float = 0.0


class Closable(Protocol):
    """What the SDK wants to have closed."""

    async def close(self) -> None:
        """Close it."""


Settle = Callable[["ServiceBusReceiver", "ServiceBusReceivedMessage"], Awaitable[None]]


async def complete(receiver: "ServiceBusReceiver", message: "ServiceBusReceivedMessage") -> None:
    """Be done with a message."""
    await receiver.complete_message(message)


async def abandon(receiver: "ServiceBusReceiver", message: "ServiceBusReceivedMessage") -> None:
    """Give a message back; it comes again at once, and the delivery counts."""
    await receiver.abandon_message(message)


async def renew(receiver: "ServiceBusReceiver", message: "ServiceBusReceivedMessage") -> None:
    """Keep a message locked for another lock duration."""
    # A copy: the SDK notes on it when the lock ends, and compares that with the clock of this machine.
    await receiver.renew_message_lock(copy(message))


class Connection:
    """How links are opened and closed. Each has a client of its own: after an unknown fault only a new one helps."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._credential: Identity | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def client(self) -> "ServiceBusClient":
        """Return a new client, which has no connection yet; all share the identity and its token."""
        if self._credential is None:
            self._credential = self.address.credential()
        return self.address.client(self._credential)

    def let_go(self, end: "Closable") -> None:
        """Close something beside the work: to close a broken link takes long, and nobody has to wait for it."""
        task = asyncio.ensure_future(_closed(end))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Wait until everything is closed, and forget the identity."""
        if self._credential is not None:
            self.let_go(self._credential)
            self._credential = None
        while self._closing:
            await asyncio.wait(tuple(self._closing))


class Link(ABC, Generic[EndT]):
    """A sender or a receiver that is opened when needed, and again after it broke."""

    def __init__(self, connection: Connection, entity: str) -> None:
        self.entity = entity
        self._connection = connection
        self._end: EndT | None = None
        self._opening = asyncio.Lock()

    def close(self) -> None:
        """Close the link; the next use opens another one."""
        if self._end is not None:
            self._drop(self._end)

    @abstractmethod
    def _make(self, client: "ServiceBusClient") -> EndT:
        """Make a sender or a receiver, which has not connected yet."""

    async def _opened(self) -> EndT:
        async with self._opening:
            if self._end is None:
                end = self._make(self._connection.client())
                try:
                    async with asyncio.timeout(OPEN_SECONDS):
                        await end.__aenter__()
                except BaseException:
                    self._connection.let_go(end)
                    raise
                self._end = end
            return self._end

    def _drop(self, end: EndT) -> None:
        """Let a link go, unless another user of it has already done so."""
        if self._end is end:
            # Only the link: its client has nothing else that is open, and would close it a second time.
            self._connection.let_go(end)
            self._end = None

    async def _try_twice(self, work: Callable[[EndT], Awaitable[ResultT]]) -> ResultT:
        """Do work with the link. A broken link is replaced quietly; if the new one fails too, the error is raised."""
        for is_last in (False, True):
            end: EndT | None = None
            try:
                end = await self._opened()
                return await work(end)
            except Exception as fault:
                self._broken(end, fault)
                # Who does not answer when a link is opened would keep the caller waiting once more.
                hangs = end is None and isinstance(fault, TimeoutError)
                if is_last or hangs or not may_pass_with_a_new_link(fault):
                    raise self._told(fault) from fault
        raise AssertionError  # the second try returned or raised

    def _broken(self, end: EndT | None, fault: BaseException) -> None:
        if end is not None and not leaves_the_link_alone(fault):
            self._drop(end)

    def _told(self, fault: BaseException) -> MatoolkitError:
        return told(fault, self._connection.address, self.entity)


class SendingLink(Link["ServiceBusSender"]):
    """The way to a topic. After a fault nobody sends for a while: a namespace in trouble gets time."""

    def __init__(self, connection: Connection, topic: str, clock: Clock) -> None:
        super().__init__(connection, topic)
        self._sending = asyncio.Lock()
        self._pause = Pause(clock)
        self._failures = 0
        self._fault: MatoolkitError | None = None

    async def send(self, messages: "Sequence[ServiceBusMessage]", timeout: float) -> None:
        """Send messages in their order, in as few pieces as their size allows."""
        async with self._sending:
            if self._fault is not None and self._pause.is_on:
                raise self._fault
            try:
                async with asyncio.timeout(timeout):
                    await self._send(messages, timeout)
            except Exception as fault:
                error = self._told(fault)
                if isinstance(fault, TimeoutError):
                    self.close()
                if error.transient:
                    self._fault = error
                    self._failures += 1
                    self._pause.restart(_PAUSES.longest(self._failures))
                raise error from fault
            self.forgive()

    def forgive(self) -> None:
        """Forget that sending failed."""
        self._failures, self._fault = 0, None

    async def _send(self, messages: "Sequence[ServiceBusMessage]", timeout: float) -> None:
        left = list(messages)

        async def send_left(sender: "ServiceBusSender") -> None:
            async for piece in pieces(sender, tuple(left)):
                try:
                    await sender.send_messages(piece, timeout=timeout)
                except Exception as fault:
                    if not is_refusal(fault):
                        raise
                    why = self._connection.address.concealed(first_line(fault))
                    raise MessageRefused(f"one of {len(piece)} messages for {self.entity}", why) from fault
                del left[: len(piece)]

        await self._try_twice(send_left)

    def _make(self, client: "ServiceBusClient") -> "ServiceBusSender":
        return client.get_topic_sender(self.entity, socket_timeout=SOCKET_SECONDS)


class ReceivingLink(Link["ServiceBusReceiver"]):
    """The way from a subscription, or from its dead letters."""

    def __init__(self, connection: Connection, topic: str, subscription: str, *, is_dead: bool = False) -> None:
        super().__init__(connection, f"{topic}/{subscription}")
        self._topic = topic
        self._subscription = subscription
        self._is_dead = is_dead
        self._receiving = asyncio.Lock()
        self._settling = asyncio.Lock()

    async def open(self) -> None:
        """Open the link, so that an entity that does not exist is found out."""

        async def nothing(_: "ServiceBusReceiver") -> None:
            return

        await self._try_twice(nothing)

    async def receive(self, most: int, seconds: float) -> list[Locked]:
        """Lock messages and return them, waiting so long for the first."""

        async def receive(receiver: "ServiceBusReceiver") -> list[Locked]:
            async with asyncio.timeout(seconds + _LATE_SECONDS):
                messages = await receiver.receive_messages(most, max_wait_time=seconds)
            return [Locked(without_lock_end(message), receiver, self) for message in messages]

        async with self._receiving:
            return await self._try_twice(receive)

    async def settle(self, pile: Sequence[Locked], act: Settle) -> list[Locked]:
        """Settle messages and return those that were still ours.

        All that came over the open link are settled at once: one after the other would be slower by as many round
        trips. The rest follow one by one over the management link, by their lock tokens. The SDK confuses the numbers
        of deliveries if both happen at the same time.
        """
        async with self._settling:
            receiver = self._end
            done, left = await self._settle_at_once(receiver, [one for one in pile if one.receiver is receiver], act)
            left += [one for one in pile if one.receiver is not receiver]
            done += [one for one in left if await self._settled_alone(one, act)]
        return done

    async def renew(self, pile: Sequence[Locked]) -> list[Locked]:
        """Renew the locks of messages, and return those that are still ours."""
        return [one for one in pile if await self._settled_alone(one, renew)]

    async def _settled_alone(self, one: Locked, act: Settle) -> bool:
        return await self._try_twice(lambda receiver: _settled(receiver, one, act))

    async def _settle_at_once(
        self, receiver: "ServiceBusReceiver | None", pile: Sequence[Locked], act: Settle
    ) -> tuple[list[Locked], list[Locked]]:
        """Settle messages of the open link; return which are done, and which another link has to try.

        Over a broken link the SDK would open a connection for each message. So one goes ahead, and shows whether the
        link is well; and if it breaks meanwhile, the first fault stops all others.
        """
        done: list[Locked] = []
        for some in (pile[:1], pile[1:]):
            if not some or receiver is None:
                break
            tasks = [asyncio.ensure_future(_settled(receiver, one, act)) for one in some]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in tasks:
                task.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            done += [one for one, outcome in zip(some, outcomes, strict=True) if outcome is True]
            faults = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
            if faults:
                self._broken(receiver, faults[0])
                if leaves_the_link_alone(faults[0]):
                    # A busy namespace: another try at once would only add to its load.
                    raise self._told(faults[0]) from faults[0]
                lost = [one for one, outcome in zip(some, outcomes, strict=True) if outcome is False]
                return done, [one for one in pile if one not in done and one not in lost]
        return done, []

    def _make(self, client: "ServiceBusClient") -> "ServiceBusReceiver":
        from azure.servicebus import ServiceBusSubQueue

        return client.get_subscription_receiver(
            self._topic,
            self._subscription,
            sub_queue=ServiceBusSubQueue.DEAD_LETTER if self._is_dead else None,
            prefetch_count=0,
            socket_timeout=SOCKET_SECONDS,
        )


async def _settled(receiver: "ServiceBusReceiver", one: Locked, act: Settle) -> bool:
    """Settle a message; tell whether it was still ours."""
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            await act(receiver, one.message)
    except Exception as fault:
        if is_lost(fault):
            return False
        raise
    return True


async def _closed(end: Closable) -> None:
    """Close something that may be broken already."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await end.close()
