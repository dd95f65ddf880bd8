"""Requests and their answers: `$cbs`, where a client shows its token, and an entity's `$management`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import UUID, uuid4

from proton import UNDESCRIBED, Array, Data

from tests.servers.servicebus.broker import Broker, Outcome, Queue, Topic
from tests.servers.servicebus.messages import read

LOCK_LOST = "com.microsoft:message-lock-lost"
NOT_FOUND = "com.microsoft:message-not-found"
ENTITY_NOT_FOUND = "amqp:not-found"
LOST = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue."


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None
    description: str = "OK"
    condition: str | None = None


@dataclass
class Refused(Exception):
    """The operation is answered with an error."""

    reply: Reply


@dataclass
class Management:
    """Operations on entities, each as its request's body says."""

    broker: Broker
    told: Callable[[float], float]  # until when a lock lasts, for a client whose clock is the real one
    _operations: dict[str, Callable[[str, dict[str, Any]], Reply]] = field(init=False)

    def __post_init__(self) -> None:
        self._operations = {
            "com.microsoft:schedule-message": self._schedule,
            "com.microsoft:cancel-scheduled-message": self._cancel,
            "com.microsoft:renew-lock": self._renew,
            "com.microsoft:update-disposition": self._settle,
            "com.microsoft:peek-message": self._peek,
            "com.microsoft:receive-by-sequence-number": self._receive_deferred,
        }

    def answer(self, path: str, operation: str, body: dict[str, Any]) -> Reply:
        """Carry out an operation on the entity at `path`."""
        carry_out = self._operations.get(operation)
        if carry_out is None:
            return Reply(501, description=f"{operation} is not implemented", condition="amqp:not-implemented")
        try:
            return carry_out(path, body)
        except Refused as refused:
            return refused.reply

    def _schedule(self, path: str, body: dict[str, Any]) -> Reply:
        topic = self._topic(path)
        messages = [read(bytes(entry["message"]))[0] for entry in body["messages"]]
        return Reply(body={"sequence-numbers": _longs([topic.accept(message) for message in messages])})

    def _cancel(self, path: str, body: dict[str, Any]) -> Reply:
        topic = self._topic(path)
        numbers = [int(number) for number in _items(body["sequence-numbers"])]
        if not all(number in topic.scheduled for number in numbers):
            _refuse(404, "The scheduled message was not found.", NOT_FOUND)
        for number in numbers:
            del topic.scheduled[number]
        return Reply()

    def _renew(self, path: str, body: dict[str, Any]) -> Reply:
        queue = self._queue(path)
        ends = []
        for token in _items(body["lock-tokens"]):
            until = queue.renew(_uuid(token))
            if until is None:
                _refuse(410, LOST, LOCK_LOST)
            ends.append(int(self.told(until) * 1000))
        return Reply(body={"expirations": Array(UNDESCRIBED, Data.TIMESTAMP, *ends)})

    def _settle(self, path: str, body: dict[str, Any]) -> Reply:
        queue = self._queue(path)
        outcome = Outcome(str(body["disposition-status"]))
        for token in _items(body["lock-tokens"]):
            reason, description = body.get("deadletter-reason"), body.get("deadletter-description")
            if not queue.settle(_uuid(token), outcome, reason, description):
                _refuse(410, LOST, LOCK_LOST)
        return Reply()

    def _peek(self, path: str, body: dict[str, Any]) -> Reply:
        topic = self.broker.topic(path)
        here = [message for _, message in topic.scheduled.values()] if topic else self._queue(path).everything()
        first = int(body["from-sequence-number"])
        found = [message for message in here if message.number >= first][: int(body["message-count"])]
        if not found:
            return Reply(204)
        return Reply(body={"messages": [{"message": message.encoded()} for message in found]})

    def _receive_deferred(self, path: str, body: dict[str, Any]) -> Reply:
        queue = self._queue(path)
        found = []
        for number in _items(body["sequence-numbers"]):
            message = queue.deferred.pop(int(number), None)
            if message is None:
                _refuse(404, f"Failed to lock one or more specified messages: {number}.", NOT_FOUND)
            token = uuid4()
            until = self.told(queue.lock(message, token))
            found.append({"lock-token": token, "message": message.encoded(until)})
        return Reply(body={"messages": found})

    def _topic(self, path: str) -> Topic:
        return self.broker.topic(path) or _missing(path)

    def _queue(self, path: str) -> Queue:
        return self.broker.queue(path) or _missing(path)


def _refuse(status: int, description: str, condition: str) -> NoReturn:
    raise Refused(Reply(status, None, description, condition))


def _missing(path: str) -> NoReturn:
    _refuse(404, f"The messaging entity '{path}' could not be found.", ENTITY_NOT_FOUND)


def _items(values: Any) -> Sequence[Any]:
    return list(values.elements) if isinstance(values, Array) else list(values)


def _uuid(token: Any) -> UUID:
    return token if isinstance(token, UUID) else UUID(bytes=bytes(token))


def _longs(values: Sequence[int]) -> Any:
    return Array(UNDESCRIBED, Data.LONG, *values)
