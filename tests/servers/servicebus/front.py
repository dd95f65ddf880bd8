"""The AMQP side: connections, links, deliveries and their outcomes, by Apache Qpid Proton.

All of it runs on one thread, the reactor's.
"""

import logging
import re
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from proton import Condition, Delivery, Endpoint, Link, Message, Terminus, int32, symbol

from matoolkit.clock import SystemClock
from tests.servers.servicebus.broker import Broker, Outcome, Queue, Topic
from tests.servers.servicebus.faults import Faults
from tests.servers.servicebus.management import ENTITY_NOT_FOUND, LOCK_LOST, LOST, Management, Reply
from tests.servers.servicebus.messages import Stored, read
from tests.servers.servicebus.tokens import LISTEN, SEND, Tokens

LARGEST = 262_144
CREDIT = 1000
MANAGEMENT = "/$management"
BUSY = "com.microsoft:server-busy"
THROTTLED = "The request was terminated because the entity is being throttled."

WRONG = "com.microsoft:argument-error"

_log = logging.getLogger(__name__)
_MOVED = 0.01  # seconds
_EITHER = 0  # proton's state mask for links in any state


class LinkReader:
    """A client's receiving link, as a queue sees it."""

    def __init__(self, link: Any, told: Callable[[float], float]) -> None:
        self._link = link
        self._told = told

    def wants(self) -> bool:
        return bool(self._link.credit > 0)

    def keeps_locks(self) -> bool:
        return bool(self._link.remote_snd_settle_mode != Link.SND_SETTLED)

    def deliver(self, message: Stored, token: UUID, locked_until: float | None) -> None:
        delivery = self._link.delivery(token.bytes_le)
        delivery.token = token if locked_until is not None else None
        self._link.stream(message.encoded(None if locked_until is None else self._told(locked_until)))
        self._link.advance()
        if locked_until is None:
            delivery.settle()

    def served(self) -> None:
        if self._link.drain_mode:
            self._link.drained()


class Front:
    """Proton calls a method for each event."""

    def __init__(self, broker: Broker, faults: Faults, tokens: Tokens) -> None:
        self.broker = broker
        self.faults = faults
        self.tokens = tokens
        self.connections: set[Any] = set()
        self._real = SystemClock()
        self._management = Management(broker, self._told)
        self._ticked = 0.0

    def tick(self) -> None:
        """Let happen what the clock says, if it has moved."""
        now = self.broker.now()
        if abs(now - self._ticked) >= _MOVED:
            self._ticked = now
            self.broker.tick()

    def _told(self, until: float) -> float:
        """Say when a lock ends in real time: the SDK compares that with the machine's clock before it settles."""
        return until + (self._real.now() - self.broker.clock.now()).total_seconds() - self.faults.behind

    def detach(self, condition: str, description: str, *, orphans: bool = False) -> None:
        """Close all links to entities with an error, or only those whose entity is gone."""
        for connection in list(self.connections):
            for link in _links(connection):
                if _entity(link) is not None and not (orphans and self._stands(link)):
                    self._forget(link)
                    link.condition = Condition(condition, description)
                    link.close()

    def _stands(self, link: Any) -> bool:
        now = self.broker.queue(link.path) if link.is_sender else self.broker.topic(link.path)
        return now is _entity(link)

    # Connections and sessions

    def on_connection_bound(self, event: Any) -> None:
        event.transport.sasl().allowed_mechs("ANONYMOUS MSSBCBS EXTERNAL")

    def on_connection_remote_open(self, event: Any) -> None:
        event.connection.container = "matoolkit-tests"
        event.connection.replies = {}
        event.connection.rights = frozenset()
        self.connections.add(event.connection)
        event.connection.open()

    def on_session_remote_open(self, event: Any) -> None:
        event.session.incoming_capacity = 16 * 2**20
        event.session.open()

    def on_session_remote_close(self, event: Any) -> None:
        event.session.close()

    def on_connection_remote_close(self, event: Any) -> None:
        event.connection.close()

    def on_transport_closed(self, event: Any) -> None:
        connection = event.connection
        if connection is None:
            return
        self.connections.discard(connection)
        for link in _links(connection):
            self._forget(link)

    # Links

    def on_link_remote_open(self, event: Any) -> None:
        link = event.link
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.snd_settle_mode, link.rcv_settle_mode = link.remote_snd_settle_mode, link.remote_rcv_settle_mode
        address = (link.remote_source if link.is_sender else link.remote_target).address
        link.path = re.sub(r"^\w+://[^/]*/", "", address or "").strip("/")
        if link.path.lower() == "$cbs" or link.path.lower().endswith(MANAGEMENT):
            self._open_management(link)
        elif link.is_sender:
            self._open_reader(link)
        else:
            self._open_writer(link)

    def _open_management(self, link: Any) -> None:
        link.open()
        if link.is_sender:
            link.connection.replies[link.path.lower()] = link
        else:
            link.flow(CREDIT)

    def _open_reader(self, link: Any) -> None:
        queue = self.broker.queue(link.path)
        if queue is None or LISTEN not in link.connection.rights:
            self._refuse(link, LISTEN)
            return
        if queue.path == self.faults.disabled:
            self._refuse_for(link, Condition("com.microsoft:entity-disabled", "Receiving from it is disabled."))
            return
        link.open()
        link.queue = queue
        link.reader = LinkReader(link, self._told)
        queue.readers.append(link.reader)
        queue.pump()

    def _open_writer(self, link: Any) -> None:
        topic = self.broker.topic(link.path)
        if topic is None or SEND not in link.connection.rights:
            self._refuse(link, SEND)
            return
        link.topic = topic
        link.max_message_size = LARGEST
        link.open()
        link.flow(CREDIT)

    def _refuse(self, link: Any, claim: str) -> None:
        if claim in link.connection.rights:
            text = f"The messaging entity '{link.path}' could not be found."
            self._refuse_for(link, Condition(ENTITY_NOT_FOUND, text))
        else:
            text = f"Unauthorized access. '{claim}' claim(s) are required to perform this operation."
            self._refuse_for(link, Condition("amqp:unauthorized-access", text))

    def _refuse_for(self, link: Any, condition: Condition) -> None:
        """Answer an attach as AMQP wants it: with no address, and closed at once with the reason."""
        link.source.type = link.target.type = Terminus.UNSPECIFIED
        link.condition = condition
        link.open()
        link.close()

    def _forget(self, link: Any) -> None:
        reader = getattr(link, "reader", None)
        if reader is not None and reader in link.queue.readers:
            link.queue.readers.remove(reader)

    def on_link_remote_close(self, event: Any) -> None:
        self._forget(event.link)
        event.link.close()

    def on_link_remote_detach(self, event: Any) -> None:
        self._forget(event.link)
        event.link.detach()

    def on_link_final(self, event: Any) -> None:
        self._forget(event.link)

    def on_link_flow(self, event: Any) -> None:
        queue: Queue | None = getattr(event.link, "queue", None)
        if queue is not None:
            self.tick()
            queue.pump()

    # Deliveries

    def on_delivery(self, event: Any) -> None:
        delivery, link = event.delivery, event.link
        self.tick()
        if link.is_receiver:
            if delivery.readable and not delivery.partial:
                raw = bytes(link.recv(delivery.pending))
                link.advance()
                if link.credit < CREDIT / 2:
                    link.flow(CREDIT)
                self._received(link, delivery, raw)
        elif delivery.updated and getattr(delivery, "token", None) and not link.state & Endpoint.LOCAL_CLOSED:
            self._settled(link.queue, delivery)

    def _received(self, link: Any, delivery: Any, raw: bytes) -> None:
        topic: Topic | None = getattr(link, "topic", None)
        if topic is None:
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            self._asked(link, raw)
            return
        if self.faults.strike("busy"):
            self._reject(delivery, BUSY, THROTTLED)
            return
        messages = read(raw)
        if any(message.message_id == self.faults.refused_id for message in messages):
            self._reject(delivery, WRONG, "The argument is wrong.")
            return
        for message in messages:
            late = self.faults.late_by if self.faults.strike("late") else 0.0
            topic.accept(message, late, copies=2 if self.faults.strike("doubled") else 1)
        if not self.faults.strike("lost_sends"):
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()

    def _settled(self, queue: Queue, delivery: Any) -> None:
        outcome = _outcome(delivery)
        if outcome is None:
            return
        token, delivery.token = delivery.token, None
        if self.faults.strike("busy"):
            self._reject(delivery, BUSY, THROTTLED)
            return
        condition = delivery.remote.condition if delivery.remote_state == Delivery.REJECTED else None
        info = {str(key): value for key, value in (condition.info or {}).items()} if condition else {}
        kept = queue.settle(token, outcome, info.get("DeadLetterReason"), info.get("DeadLetterErrorDescription"))
        if self.faults.strike("lost_settlements"):
            return
        if not kept and not delivery.settled:
            self._reject(delivery, LOCK_LOST, LOST)
            return
        if not delivery.settled:
            if delivery.remote_state == Delivery.MODIFIED:
                delivery.local.failed, delivery.local.undeliverable = (
                    delivery.remote.failed,
                    delivery.remote.undeliverable,
                )
            delivery.update(delivery.remote_state)
        delivery.settle()

    def _reject(self, delivery: Any, condition: str, description: str) -> None:
        delivery.local.condition = Condition(condition, description, {symbol("tracking-id"): "tests"})
        delivery.update(Delivery.REJECTED)
        delivery.settle()

    # Requests

    def _asked(self, link: Any, raw: bytes) -> None:
        request = Message()
        request.decode(raw)
        answers = link.connection.replies.get(link.path.lower())
        if answers is None:
            return
        if link.path.lower() == "$cbs":
            properties = self._authorised(link.connection, str(request.body))
            body = None
        else:
            is_busy = self.faults.strike("busy")
            reply = Reply(503, None, THROTTLED, BUSY) if is_busy else self._operation(link.path, request)
            properties = {"statusCode": int32(reply.status), "statusDescription": reply.description}
            if reply.condition:
                properties["errorCondition"] = symbol(reply.condition)
            body = reply.body
        answers.send(Message(correlation_id=request.id, properties=properties, body=body)).settle()

    def _authorised(self, connection: Any, token: str) -> dict[str, Any]:
        connection.rights = frozenset() if self.faults.unauthorised else self.tokens.rights(token)
        if not connection.rights:
            refusal = "InvalidSignature: The token has an invalid signature, or has expired."
            return {"status-code": int32(401), "status-description": refusal}
        return {"status-code": int32(202), "status-description": "Accepted"}

    def _operation(self, address: str, request: Any) -> Reply:
        asked = {str(key): value for key, value in (request.properties or {}).items()}
        body = request.body if isinstance(request.body, dict) else {}
        try:
            return self._management.answer(
                address[: -len(MANAGEMENT)],
                str(asked.get("operation")),
                {str(key): value for key, value in body.items()},
            )
        except Exception as error:  # noqa: BLE001 - a request that cannot be read must not end the reactor
            _log.exception("a request could not be answered")
            return Reply(400, None, repr(error), WRONG)


def _links(connection: Any) -> Iterator[Any]:
    link = connection.link_head(_EITHER)
    while link is not None:
        following = link.next(_EITHER)
        yield link
        link = following


def _entity(link: Any) -> Queue | Topic | None:
    """What a link that carries messages is attached to."""
    found: Queue | Topic | None = getattr(link, "queue", None) or getattr(link, "topic", None)
    return found


def _outcome(delivery: Any) -> Outcome | None:
    """Read what the client says of a delivery; None says that it has not decided."""
    match delivery.remote_state:
        case Delivery.ACCEPTED:
            return Outcome.COMPLETED
        case Delivery.REJECTED:
            return Outcome.DEAD_LETTERED
        case Delivery.MODIFIED:
            return Outcome.DEFERRED if delivery.remote.undeliverable else Outcome.ABANDONED
        case Delivery.RELEASED:
            return Outcome.RELEASED
        case _:
            return Outcome.RELEASED if delivery.settled else None
