"""The Service Bus of the tests, seen through the real SDK."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient, ServiceBusReceiver, ServiceBusSender
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusAuthorizationError,
    ServiceBusError,
)

from matoolkit.clock import VirtualClock
from tests.servers.servicebus.filters import BadFilter, compile_filter

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

T = TypeVar("T")

TOPIC, NAME = JOBS = ("worker-jobs", "worker-w1")
OTHER = ("worker-jobs", "worker-w2")


class Links:
    """A client with everything open, for all tests: the SDK takes half a second to open a link, and to close it."""

    client: ServiceBusClient
    sender: ServiceBusSender
    receiver: ServiceBusReceiver
    other: ServiceBusReceiver
    dead: ServiceBusReceiver

    def __init__(self, server: "ServiceBus") -> None:
        self._stack = AsyncExitStack()
        self._loop = asyncio.new_event_loop()
        self.run(self._open(server.connection_string))

    async def _open(self, address: str) -> None:
        self.client = ServiceBusClient.from_connection_string(
            address, retry_total=2, retry_backoff_factor=0.01, socket_timeout=0.02
        )
        self.sender = self.client.get_topic_sender(TOPIC)
        self.receiver = self.client.get_subscription_receiver(*JOBS)
        self.other = self.client.get_subscription_receiver(*OTHER)
        self.dead = self.client.get_subscription_receiver(*JOBS, sub_queue=ServiceBusSubQueue.DEAD_LETTER)
        links = (self.sender, self.receiver, self.other, self.dead)
        await asyncio.gather(*(link.__aenter__() for link in links))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(asyncio.wait_for(work, 30))

    def close(self) -> None:
        links = (self.sender, self.receiver, self.other, self.dead)
        self.run(self._gathered(*(link.close() for link in links)))
        self.run(self.client.close())
        self._loop.close()

    @staticmethod
    async def _gathered(*work: Coroutine[Any, Any, None]) -> None:
        await asyncio.gather(*work)

    def send(self, *messages: ServiceBusMessage) -> None:
        self.run(self.sender.send_messages(list(messages)))

    def receive(self, number: int = 1, receiver: ServiceBusReceiver | None = None) -> list[ServiceBusReceivedMessage]:
        async def all_of_them() -> list[ServiceBusReceivedMessage]:
            found: list[ServiceBusReceivedMessage] = []
            while len(found) < number:
                found += await (receiver or self.receiver).receive_messages(number - len(found), max_wait_time=5)
            return found

        return self.run(all_of_them())

    def complete(self, *messages: ServiceBusReceivedMessage) -> None:
        self.run(self._gathered(*(self.receiver.complete_message(message) for message in messages)))


@pytest.fixture(scope="module")
def opened(service_bus_server: "ServiceBus") -> Iterator[Links]:
    service_bus_server.reset()
    service_bus_server.lay_out("w1", "w2")
    links = Links(service_bus_server)
    yield links
    links.close()


@pytest.fixture
def server(service_bus_server: "ServiceBus", opened: Links, clock: VirtualClock) -> "ServiceBus":
    service_bus_server.empty(clock)
    return service_bus_server


@pytest.fixture
def links(opened: Links, server: "ServiceBus") -> Links:
    return opened


def message(body: str, message_id: str | None = None, worker: str = "w1", **more: Any) -> ServiceBusMessage:
    return ServiceBusMessage(body, message_id=message_id, application_properties={"WorkerId": worker}, **more)


def bodies(server: "ServiceBus", place: tuple[str, str] = JOBS, *, dead: bool = False) -> list[str]:
    return [one.body.decode() for one in server.messages(*place, dead=dead)]


def test_a_filter_knows_what_is_neither_true_nor_false() -> None:
    wants = compile_filter("WorkerId = 'x' AND (Prio > 3 OR Kind IN ('a', 'it''s')) AND Note IS NULL")
    assert wants({"workerid": "x", "prio": 5})
    assert wants({"workerid": "x", "kind": "it's"})
    assert not wants({"workerid": "X", "prio": 5})
    assert not wants({"prio": 5})
    assert not wants({"workerid": "x", "prio": 5, "note": ""})
    assert compile_filter("user.WorkerId NOT IN ('a', 'b') OR NOT EXISTS(WorkerId)")({})
    assert not compile_filter("WorkerId NOT IN ('a', 'b')")({})
    assert compile_filter("NOT ([A] LIKE 'ab%')")({"a": "xab"})


@pytest.mark.parametrize("sql", ["WorkerId =", "= 1", "a = 1 b", "a IN (", "a NOT = 1", "sys.To = 'x'", "a ~ 1"])
def test_a_filter_that_cannot_be_read_is_refused(sql: str) -> None:
    with pytest.raises(BadFilter):
        compile_filter(sql)


def test_each_subscription_takes_what_its_filter_wants(links: Links, server: "ServiceBus") -> None:
    links.send(message("1"), message("2", worker="w2"), message("ž" * 60_000), message("3", worker="w3"))
    assert [str(one) for one in links.receive(2)] == ["1", "ž" * 60_000]
    assert [str(one) for one in links.receive(1, links.other)] == ["2"]


def test_a_pile_is_settled_at_once(links: Links, server: "ServiceBus") -> None:
    links.send(*(message(str(number)) for number in range(100)))
    found = links.receive(100)
    assert [str(one) for one in found] == [str(number) for number in range(100)]
    assert server.locked(*JOBS) == 100
    links.complete(*found)
    assert server.messages(*JOBS) == []


def test_a_message_id_is_taken_once_in_the_window(links: Links, server: "ServiceBus", clock: VirtualClock) -> None:
    links.send(message("1", "same"), message("2", "same"))
    clock.advance(timedelta(minutes=9))
    links.send(message("3", "same"))
    clock.advance(timedelta(minutes=1))
    links.send(message("4", "same"))
    assert bodies(server) == ["1", "4"]


def test_what_fails_too_often_is_a_dead_letter(links: Links) -> None:
    links.send(message("1", "poison"))
    for failures in range(10):
        (found,) = links.receive()
        assert found.delivery_count == failures
        links.run(links.receiver.abandon_message(found))
    (dead,) = links.receive(1, links.dead)
    assert (dead.message_id, dead.dead_letter_reason) == ("poison", "MaxDeliveryCountExceeded")


def test_a_dead_letter_keeps_its_reason_and_its_properties(links: Links, server: "ServiceBus") -> None:
    links.send(message("bad"))
    (found,) = links.receive()
    links.run(links.receiver.dead_letter_message(found, reason="Poison", error_description="cannot be read"))
    (dead,) = links.receive(1, links.dead)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Poison", "cannot be read")
    assert dead.application_properties
    assert dead.application_properties[b"WorkerId"] == b"w1"
    assert str(dead) == "bad"
    links.run(links.dead.complete_message(dead))
    assert bodies(server) == bodies(server, dead=True) == []


def test_a_lock_that_has_ended_is_lost_and_the_message_comes_again(links: Links, clock: VirtualClock) -> None:
    links.send(message("1"))
    (first,) = links.receive()
    clock.advance(timedelta(seconds=59))
    links.run(links.receiver.renew_message_lock(first))
    clock.advance(timedelta(seconds=59))
    assert links.run(links.receiver.receive_messages(1, max_wait_time=0.05)) == []
    clock.advance(timedelta(seconds=1))
    with pytest.raises(MessageLockLostError):
        links.complete(first)
    (again,) = links.receive()
    assert again.delivery_count == 1
    clock.advance(timedelta(seconds=60))
    with pytest.raises(MessageLockLostError):
        links.run(links.receiver.renew_message_lock(again))


def test_a_scheduled_message_appears_when_its_time_has_come(
    links: Links, server: "ServiceBus", clock: VirtualClock
) -> None:
    at = clock.now() + timedelta(hours=1)
    _, cancelled = links.run(links.sender.schedule_messages([message("1"), message("2")], at))
    links.run(links.sender.cancel_scheduled_messages(cancelled))
    with pytest.raises(MessageNotFoundError):
        links.run(links.sender.cancel_scheduled_messages(cancelled))
    links.send(message("3", scheduled_enqueue_time_utc=at))
    assert bodies(server) == []
    clock.advance(timedelta(hours=1))
    assert bodies(server) == ["1", "3"]


def test_a_message_that_lived_too_long_is_a_dead_letter(
    links: Links, server: "ServiceBus", clock: VirtualClock
) -> None:
    links.send(message("1", time_to_live=timedelta(hours=1)), message("2"))
    clock.advance(timedelta(hours=2))
    assert bodies(server) == ["2"]
    clock.advance(timedelta(days=7))
    assert bodies(server, dead=True) == ["1", "2"]


def test_messages_are_deferred_and_looked_at(links: Links) -> None:
    links.send(*(message(str(number)) for number in range(3)))
    (first,) = links.receive()
    links.run(links.receiver.defer_message(first))
    assert first.sequence_number is not None
    assert [str(one) for one in links.run(links.receiver.peek_messages(5, sequence_number=1))] == ["0", "1", "2"]
    (deferred,) = links.run(links.receiver.receive_deferred_messages(first.sequence_number))
    links.complete(deferred)
    with pytest.raises(MessageNotFoundError):
        links.run(links.receiver.receive_deferred_messages(first.sequence_number))


def test_a_busy_server_is_asked_again(links: Links, server: "ServiceBus") -> None:
    server.faults.busy = 1
    links.send(message("1"))
    (found,) = links.receive()
    server.faults.busy = 9
    with pytest.raises(ServiceBusError):
        links.complete(found)
    server.faults.busy = 0
    assert bodies(server) == ["1"]


def test_messages_come_twice_and_late(links: Links, server: "ServiceBus", clock: VirtualClock) -> None:
    server.faults.late, server.faults.late_by = 1, 30
    links.send(message("1", "a"))
    server.faults.doubled = 1
    links.send(message("2", "b"))
    assert bodies(server) == ["2", "2"]
    clock.advance(timedelta(seconds=30))
    assert bodies(server) == ["2", "2", "1"]


def test_links_and_connections_that_drop_are_opened_again(links: Links, server: "ServiceBus") -> None:
    links.send(message("1"))
    for drop in (server.detach_idle, server.cut):
        (found,) = links.receive()
        drop()
        links.complete(found)  # over the management link, because the lock outlives the link
        links.send(message("next"))
    assert bodies(server) == ["next"]


def test_an_answer_that_is_lost_leaves_what_was_done(links: Links, server: "ServiceBus") -> None:
    links.send(message("1"))
    (found,) = links.receive()
    server.faults.lost_settlements = 1
    with pytest.raises(ServiceBusError):
        links.run(_until_cut(links.receiver.complete_message(found), server))
    assert bodies(server) == []


async def _until_cut(work: Coroutine[Any, Any, None], server: "ServiceBus") -> None:
    waiting = asyncio.ensure_future(work)
    while server.faults.lost_settlements:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(server.cut)
    await waiting


def test_an_entity_that_does_not_exist_is_refused(links: Links) -> None:
    async def both() -> None:
        sender = links.client.get_topic_sender("nowhere")
        receiver = links.client.get_subscription_receiver(TOPIC, "worker-nobody")
        errors = await asyncio.gather(sender.__aenter__(), receiver.__aenter__(), return_exceptions=True)
        assert [type(error) for error in errors] == [MessagingEntityNotFoundError] * 2

    links.run(both())


def test_a_token_that_is_forged_or_allows_too_little_is_refused(links: Links, server: "ServiceBus") -> None:
    forged = server.connection_string.replace("not-a-secret", "guessed")

    async def refusal(address: str) -> type[BaseException]:
        async with ServiceBusClient.from_connection_string(address, retry_total=0) as client:
            with pytest.raises(ServiceBusError) as refused:
                await client.get_topic_sender(TOPIC).__aenter__()
            return refused.type

    assert issubclass(links.run(refusal(forged)), (ServiceBusAuthenticationError, ServiceBusAuthorizationError))
