"""Azure Service Bus behind the ports (rule M8). Any thread may call it; all work is done in one private thread.

It shares no transaction with the state. What a handler publishes leaves first, through the outbox, and then messages
are settled: a crash in between repeats a message, which handlers are guarded against, and loses none.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import orjson

from matoolkit import ports
from matoolkit.bus import topology
from matoolkit.bus.boundaries import ANSWERED, RECEIVED, SETTLED
from matoolkit.bus.draining import Letter
from matoolkit.bus.envelope import Envelope, sealed
from matoolkit.bus.servicebus.address import Address
from matoolkit.bus.servicebus.inbox import Inbox
from matoolkit.bus.servicebus.links import Connection, Locked, ReceivingLink, SendingLink, Settle, abandon, complete
from matoolkit.bus.servicebus.messages import (
    body_of,
    enqueued_at,
    properties_of,
    traceparent_of,
    type_of,
    written,
)
from matoolkit.bus.servicebus.reach import Reach
from matoolkit.bus.servicebus.thread import LoopThread
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import BusUnavailable, MatoolkitError
from matoolkit.outages import Outage
from matoolkit.ports import Outgoing, Received, Subscription

# Below the outbox's claim of 60 seconds: no sweep may send what this process is still sending.
SEND_SECONDS = 40.0
# The handler of a message may wait for this, with the rows of its batches locked.
_PROBE_SECONDS = 5.0
# A worker answers while it keeps the locks of other jobs: it must not wait as long as they last.
ANSWER_SECONDS = 15.0
# A process that stops gives messages back for so long; the locks of the others run out.
_STOP_SECONDS = 5.0
# Service Bus keeps so many characters of a reason and of a description.
_LONGEST_REASON = 4096

log = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


class ServiceBus:
    """A bus in a Service Bus namespace; `topic_names` are the names of topics where they differ from ours."""

    def __init__(
        self, address: Address, *, topic_names: Mapping[str, str] | None = None, clock: Clock | None = None
    ) -> None:
        address.check()
        self._clock = clock or SystemClock()
        self._topic_names = dict(topic_names or {})
        self._thread = LoopThread("service-bus")
        self._connection = Connection(address)
        self._senders: dict[str, SendingLink] = {}
        self._inboxes: dict[tuple[str, str, bool], Inbox] = {}
        # What was handed out and is not settled, by identity.
        self._out: dict[int, Locked] = {}
        # What is handled but could not be settled after the commit. It is settled before the next look.
        self._owed: dict[ReceivingLink, list[Locked]] = {}
        self._settling = Outage("settling messages", log)
        self._reach = Reach(self.probe, self._clock)

    def start(self) -> None:
        """Do nothing: links are opened when they are needed."""

    def stop(self) -> None:
        """Give back what is not settled, and close all links; the next call opens them again."""
        if self._thread.runs:
            self._thread.do(self._close())
            self._thread.stop()

    def settles_with(self, tx: ports.Transaction) -> bool:  # noqa: ARG002
        """Say that no transaction of the state can settle messages."""
        return False

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once, with no state of ours."""
        envelopes = sealed(messages)
        if envelopes:
            self._do(self._deliver(envelopes, ANSWER_SECONDS))

    def deliver(self, envelopes: Sequence[Envelope]) -> None:
        """Publish envelopes; those of one topic keep their order."""
        if envelopes:
            self._do(self._deliver(envelopes, SEND_SECONDS))

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        """Lock messages that are due, and return them; an empty list if none are."""
        pile = self._do(self._take(subscription, most))
        RECEIVED.reached()
        return pile

    def letters(self, subscription: Subscription, most: int, *, dead: bool) -> list[Letter]:
        """Lock dead letters of a subscription, or its messages, and return them with what the bus says about them."""
        return [_letter(received) for received in self._do(self._take(subscription, most, is_dead=dead))]

    def probe(self, subscriptions: Sequence[Subscription]) -> list[MatoolkitError | None]:
        """Open links to subscriptions, all at once, and say what is wrong with each; a missing one is missing."""
        return self._do(self._probe_all(subscriptions))

    def unreached(self, worker_ids: Collection[str]) -> Collection[str]:
        """Return the workers that have no subscription; Service Bus would drop their jobs without a word."""
        return self._reach.missing(worker_ids)

    def wait(self, subscription: Subscription, seconds: float) -> None:
        """Wait for a message, but not longer than that; it is kept for the next look."""
        self._do(self._wait(subscription, seconds))

    def complete(self, tx: ports.Transaction, messages: Sequence[Received]) -> None:
        """Settle messages after the commit; call it after all that the transaction publishes."""
        tx.on_commit.append(partial(self._complete_or_owe, tuple(messages)))

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle at once the messages that are still ours, and return how many they were."""
        done = self._settle(messages, complete)
        SETTLED.reached()
        return done

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        """Publish answers, then settle the messages they answer."""
        self.send(answers)
        ANSWERED.reached()
        self.complete_now(messages)

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        """Keep messages locked for another lock duration, and return those that are still ours."""
        if not messages:
            return []
        ours = self._do(self._renewed([message.handle for message in messages]))
        return [message for message in messages if id(message.handle) in ours]

    def abandon(self, messages: Sequence[Received]) -> None:
        """Give messages back, to be delivered again; the delivery counts."""
        self._settle(messages, abandon)

    def dead_letter(self, message: Received, reason: str, description: str) -> None:
        """Put a message aside for a person to look at: into the sub-queue of its subscription."""

        async def bury(receiver: Any, locked: Any) -> None:
            await receiver.dead_letter_message(
                locked, reason=reason[:_LONGEST_REASON], error_description=description[:_LONGEST_REASON]
            )

        self._settle([message], bury)
        SETTLED.reached()

    def sweep(self) -> None:
        """Do nothing: Service Bus itself puts aside what expired or was delivered too often."""

    def _do(self, work: Coroutine[Any, Any, ResultT]) -> ResultT:
        return self._thread.do(work)

    def _settle(self, messages: Sequence[Received], act: Settle) -> int:
        return self._do(self._settled([message.handle for message in messages], act)) if messages else 0

    def _complete_or_owe(self, messages: Sequence[Received]) -> None:
        """Settle what is handled; if the bus is away, remember it, so that it need not be handled again."""
        error = self._do(self._settled_or_owed([message.handle for message in messages]))
        if error is None:
            self._settling.worked()
            SETTLED.reached()
        else:
            self._settling.failed(error)

    async def _deliver(self, envelopes: Sequence[Envelope], seconds: float) -> None:
        by_topic: dict[str, list[Envelope]] = {}
        for envelope in envelopes:
            by_topic.setdefault(self._named(envelope.topic), []).append(envelope)
        ends_at = asyncio.get_running_loop().time() + seconds
        for topic, some in by_topic.items():
            link = self._senders.setdefault(topic, SendingLink(self._connection, topic, self._clock))
            left = max(ends_at - asyncio.get_running_loop().time(), 1.0)
            await link.send([written(envelope) for envelope in some], left)

    async def _take(self, subscription: Subscription, most: int, *, is_dead: bool = False) -> list[Received]:
        inbox = self._inbox(subscription, is_dead=is_dead)
        await self._settle_owed(inbox.link)
        self._forget_lost()
        taken = await inbox.take(most)
        if others := [one for one in taken if _is_for_another(subscription, one)]:
            # Copies: the subscription of the other worker has the job itself.
            log.warning("%s also takes jobs of others: run `matoolkit bus check`", subscription.name)
            await self._settled(others, complete)
            taken = [one for one in taken if one not in others]
        self._out.update((id(one), one) for one in taken)
        return [_received(subscription, one) for one in taken]

    async def _wait(self, subscription: Subscription, seconds: float) -> None:
        await self._inbox(subscription).wait(seconds)

    async def _probe_all(self, subscriptions: Sequence[Subscription]) -> list[MatoolkitError | None]:
        return list(await asyncio.gather(*map(self._probe, subscriptions)))

    async def _probe(self, subscription: Subscription) -> MatoolkitError | None:
        link = ReceivingLink(self._connection, self._named(subscription.topic), subscription.name)
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await link.open()
        except TimeoutError:
            return BusUnavailable(f"Service Bus does not say in time whether {subscription.name} exists")
        except MatoolkitError as fault:
            return fault
        finally:
            link.close()
        return None

    async def _settled_or_owed(self, pile: Sequence[Locked]) -> MatoolkitError | None:
        failed: MatoolkitError | None = None
        for link, some in _by_link(pile).items():
            try:
                await self._settled(some, complete)
            except MatoolkitError as error:
                self._owed.setdefault(link, []).extend(some)
                failed = error
        return failed

    async def _settle_owed(self, link: ReceivingLink) -> None:
        """Settle what is owed over a link; a message whose lock is over comes again anyway."""
        now = self._clock.monotonic()
        owed = [one for one in self._owed.pop(link, ()) if one.ends_at > now]
        if owed and (error := await self._settled_or_owed(owed)):
            raise error

    def _forget_lost(self) -> None:
        """Forget messages whose locks are over: nobody can settle them any more."""
        now = self._clock.monotonic()
        for key in [key for key, one in self._out.items() if one.ends_at <= now]:
            del self._out[key]

    async def _settled(self, pile: Sequence[Locked], act: Settle) -> int:
        done = 0
        for link, some in _by_link(pile).items():
            done += len(await link.settle(some, act))
            for one in some:
                self._out.pop(id(one), None)
        return done

    async def _renewed(self, pile: Sequence[Locked]) -> set[int]:
        ours: set[int] = set()
        ends_at = self._clock.monotonic() + topology.LOCK_DURATION.total_seconds()
        for link, some in _by_link(pile).items():
            for one in await link.renew(some):
                one.ends_at = ends_at
                ours.add(id(one))
        for one in pile:
            if id(one) not in ours:
                self._out.pop(id(one), None)
        return ours

    async def _give_back(self) -> None:
        """Settle what is owed, and abandon everything else that this process has."""
        owed = [one for some in self._owed.values() for one in some]
        kept = [one for inbox in self._inboxes.values() for one in inbox.emptied()]
        unsettled = [one for one in (*kept, *self._out.values()) if one not in owed]
        self._owed.clear()
        self._out.clear()
        # All links at once: one that is broken keeps no other waiting.
        acts = [link.settle(some, complete) for link, some in _by_link(owed).items()]
        acts += [link.settle(some, abandon) for link, some in _by_link(unsettled).items()]
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                done = await asyncio.gather(*acts, return_exceptions=True)
                if not any(isinstance(one, BaseException) for one in done):
                    return
        log.warning("messages could not all be given back; their locks run out")

    async def _close(self) -> None:
        await self._give_back()
        for sender in self._senders.values():
            sender.close()
        for inbox in self._inboxes.values():
            inbox.link.close()
        self._senders.clear()
        self._inboxes.clear()
        await self._connection.close()

    def _inbox(self, subscription: Subscription, *, is_dead: bool = False) -> Inbox:
        topic, name = self._named(subscription.topic), subscription.name
        key = topic, name, is_dead
        if key not in self._inboxes:
            self._inboxes[key] = Inbox(ReceivingLink(self._connection, topic, name, is_dead=is_dead), self._clock)
        return self._inboxes[key]

    def _named(self, topic: str) -> str:
        return self._topic_names.get(topic, topic)


def _by_link(pile: Iterable[Locked]) -> dict[ReceivingLink, list[Locked]]:
    by_link: dict[ReceivingLink, list[Locked]] = {}
    for one in pile:
        by_link.setdefault(one.link, []).append(one)
    return by_link


def _received(subscription: Subscription, one: Locked) -> Received:
    message = one.message
    return Received(
        subscription,
        str(message.lock_token),
        one,
        str(message.message_id),
        type_of(message),
        body_of(message),
        # The SDK counts what came before this delivery.
        (message.delivery_count or 0) + 1,
        traceparent_of(message),
    )


def _letter(received: Received) -> Letter:
    message = received.handle.message
    ours = {name: value for name, value in properties_of(message).items() if not name.startswith("DeadLetter")}
    return Letter(
        received,
        orjson.dumps(ours).decode(),
        enqueued_at(message),
        message.dead_letter_reason,
        message.dead_letter_error_description,
    )


def _is_for_another(subscription: Subscription, one: Locked) -> bool:
    """Tell whether a message has come to the wrong subscription: its rules take more than they must."""
    wanted, found = subscription.filter_value, properties_of(one.message).get(subscription.filter_property or "")
    return wanted is not None and found is not None and found.casefold() != wanted.casefold()
