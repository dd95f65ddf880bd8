"""The Service Bus of the tests, seen through the real SDK."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiver, ServiceBusSubQueue
from azure.servicebus.aio import ServiceBusClient as AsyncClient
from azure.servicebus.exceptions import MessageLockLostError, MessageNotFoundError, MessagingEntityNotFoundError

from matoolkit.clock import VirtualClock
from tests.servers.servicebus.filters import BadFilter, compile_filter

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

EVENTS = ("orchestrator-events", "orchestrator")
JOBS = ("worker-jobs", "worker-w1")


@pytest.fixture
def server(service_bus: "ServiceBus", clock: VirtualClock) -> "ServiceBus":
    service_bus.reset(clock)
    service_bus.lay_out("w1", "w2")
    return service_bus


@pytest.fixture
def client(server: "ServiceBus") -> Iterator[ServiceBusClient]:
    with ServiceBusClient.from_connection_string(server.connection_string, retry_total=1) as client:
        yield client


def message(body: str, message_id: str | None = None, worker: str = "w1", **more: Any) -> ServiceBusMessage:
    return ServiceBusMessage(body, message_id=message_id, application_properties={"WorkerId": worker}, **more)


def send(client: ServiceBusClient, topic: str, *messages: ServiceBusMessage) -> None:
    with client.get_topic_sender(topic) as sender:
        sender.send_messages(list(messages))


def bodies(found: Any) -> list[str]:
    return [str(one) for one in found]


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


def test_each_subscription_takes_what_its_filter_wants(client: ServiceBusClient, server: "ServiceBus") -> None:
    send(client, "worker-jobs", message("1"), message("2", worker="w2"), message("ž" * 60_000))
    with client.get_subscription_receiver(*JOBS) as receiver:
        found = receiver.receive_messages(5, max_wait_time=5)
        assert bodies(found) == ["1", "ž" * 60_000]
        for one in found:
            receiver.complete_message(one)
    assert server.messages(*JOBS) == []
    assert [one.body for one in server.messages("worker-jobs", "worker-w2")] == [b"2"]


def test_a_message_id_is_taken_once_in_the_window(
    client: ServiceBusClient, server: "ServiceBus", clock: VirtualClock
) -> None:
    send(client, EVENTS[0], message("1", "same"), message("2", "same"))
    clock.advance(timedelta(minutes=9))
    send(client, EVENTS[0], message("3", "same"))
    clock.advance(timedelta(minutes=1))
    send(client, EVENTS[0], message("4", "same"))
    assert [one.body for one in server.messages(*EVENTS)] == [b"1", b"4"]


def test_what_fails_too_often_is_a_dead_letter(client: ServiceBusClient) -> None:
    send(client, EVENTS[0], message("1", "poison"))
    with client.get_subscription_receiver(*EVENTS) as receiver:
        for failures in range(10):
            (found,) = receiver.receive_messages(1, max_wait_time=5)
            assert found.delivery_count == failures
            receiver.abandon_message(found)
    with client.get_subscription_receiver(*EVENTS, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (dead,) = receiver.receive_messages(1, max_wait_time=5)
        assert (dead.message_id, dead.dead_letter_reason) == ("poison", "MaxDeliveryCountExceeded")
        receiver.complete_message(dead)


def test_a_dead_letter_keeps_its_reason_and_its_properties(client: ServiceBusClient, server: "ServiceBus") -> None:
    send(client, "worker-jobs", message("bad"))
    with client.get_subscription_receiver(*JOBS) as receiver:
        (found,) = receiver.receive_messages(1, max_wait_time=5)
        receiver.dead_letter_message(found, reason="Poison", error_description="cannot be read")
    with client.get_subscription_receiver(*JOBS, sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        (dead,) = receiver.receive_messages(1, max_wait_time=5)
        assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("Poison", "cannot be read")
        assert dead.application_properties
        assert dead.application_properties[b"WorkerId"] == b"w1"
        assert str(dead) == "bad"
        assert server.messages(*JOBS) == []


def test_a_lock_that_has_ended_is_lost_and_the_message_comes_again(
    client: ServiceBusClient, clock: VirtualClock
) -> None:
    send(client, EVENTS[0], message("1"))
    with client.get_subscription_receiver(*EVENTS) as receiver:
        (first,) = receiver.receive_messages(1, max_wait_time=5)
        clock.advance(timedelta(seconds=59))
        receiver.renew_message_lock(first)
        clock.advance(timedelta(seconds=59))
        assert receiver.receive_messages(1, max_wait_time=0.05) == []
        clock.advance(timedelta(seconds=1))
        with pytest.raises(MessageLockLostError):
            receiver.complete_message(first)
        with pytest.raises(MessageLockLostError):
            receiver.renew_message_lock(first)
        (again,) = receiver.receive_messages(1, max_wait_time=5)
        assert again.delivery_count == 1
        receiver.complete_message(again)


def test_a_scheduled_message_appears_when_its_time_has_come(
    client: ServiceBusClient, server: "ServiceBus", clock: VirtualClock
) -> None:
    at = clock.now() + timedelta(hours=1)
    with client.get_topic_sender("worker-jobs") as sender:
        kept, cancelled = sender.schedule_messages([message("1"), message("2")], at)
        sender.cancel_scheduled_messages(cancelled)
        with pytest.raises(MessageNotFoundError):
            sender.cancel_scheduled_messages(cancelled)
        sender.send_messages(message("3", scheduled_enqueue_time_utc=at))
    assert kept
    assert server.messages(*JOBS) == []
    clock.advance(timedelta(hours=1))
    assert [one.body for one in server.messages(*JOBS)] == [b"1", b"3"]


def test_a_message_that_lived_too_long_is_a_dead_letter(
    client: ServiceBusClient, server: "ServiceBus", clock: VirtualClock
) -> None:
    send(client, "worker-jobs", message("1", time_to_live=timedelta(hours=1)), message("2"))
    clock.advance(timedelta(hours=2))
    assert [one.body for one in server.messages(*JOBS)] == [b"2"]
    clock.advance(timedelta(days=7))
    assert [one.body for one in server.messages(*JOBS, dead=True)] == [b"1", b"2"]


def test_messages_are_deferred_and_looked_at(client: ServiceBusClient) -> None:
    send(client, "worker-jobs", *(message(str(number)) for number in range(3)))
    with client.get_subscription_receiver(*JOBS) as receiver:
        (first,) = receiver.receive_messages(1, max_wait_time=5)
        receiver.defer_message(first)
        assert bodies(receiver.peek_messages(5, sequence_number=1)) == ["0", "1", "2"]
        assert first.sequence_number is not None
        (deferred,) = receiver.receive_deferred_messages(first.sequence_number)
        receiver.complete_message(deferred)
        with pytest.raises(MessageNotFoundError):
            receiver.receive_deferred_messages(first.sequence_number)
        assert bodies(receiver.peek_messages(5, sequence_number=1)) == ["1", "2"]


@pytest.mark.parametrize(
    "opened",
    [
        lambda client: client.get_topic_sender("nowhere"),
        lambda client: client.get_subscription_receiver("worker-jobs", "worker-nobody"),
    ],
)
def test_an_entity_that_does_not_exist_is_refused(
    client: ServiceBusClient, opened: Callable[[ServiceBusClient], ServiceBusReceiver]
) -> None:
    with pytest.raises(MessagingEntityNotFoundError), opened(client):
        pass


def test_the_asynchronous_client_settles_a_whole_pile_at_once(server: "ServiceBus") -> None:
    async def run() -> None:
        async with (
            AsyncClient.from_connection_string(server.connection_string) as client,
            client.get_topic_sender("worker-jobs") as sender,
            client.get_subscription_receiver(*JOBS, socket_timeout=0.02) as receiver,
        ):
            await sender.send_messages([message(str(number)) for number in range(100)])
            found = await receiver.receive_messages(100, max_wait_time=5)
            while len(found) < 100:
                found += await receiver.receive_messages(100 - len(found), max_wait_time=5)
            await asyncio.gather(*(receiver.complete_message(one) for one in found))
            assert bodies(found) == [str(number) for number in range(100)]

    asyncio.run(asyncio.wait_for(run(), 30))
    assert server.messages(*JOBS) == []
