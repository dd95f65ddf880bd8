"""A host of function apps: reads their bindings, and calls them through the converters of Microsoft's library.

It does what the real one does with a pile of messages: all are completed if the call returns, and all are given back if
it raises. What only the real host can show stays unknown: how it scales, when it ends a process, and how it talks to
Python.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, get_type_hints

import azure.functions as func
from azure.functions import meta
from azure.functions.http import HttpRequestConverter, HttpResponseConverter
from azure.functions.servicebus import ServiceBusMessageInConverter
from azure.functions.timer import TimerRequestConverter
from azure.servicebus import ServiceBusClient, ServiceBusReceivedMessage

from matoolkit.bus.servicebus.messages import body_of, enqueued_at, properties_of

EARLY = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Message:
    """A message as the host tells of it."""

    message_id: str
    body: str
    properties: Mapping[str, str] = field(default_factory=dict)
    delivery_count: int = 1
    enqueued_at: datetime = EARLY


class FunctionsHost:
    """The functions of one app, to be called as the host calls them."""

    def __init__(self, app: func.FunctionApp) -> None:
        self._functions = {one.get_function_name() or "": one for one in app.get_functions()}

    @property
    def names(self) -> set[str]:
        return set(self._functions)

    def binding(self, name: str) -> dict[str, Any]:
        """Return the trigger of a function, as the host reads it."""
        described = json.loads(str(self._functions[name]))
        (trigger,) = (one for one in described["bindings"] if one["type"].lower().endswith("trigger"))
        return dict(trigger)

    def timer(self, name: str) -> None:
        """Let the timer of a function ring."""
        datum = meta.Datum(type="json", value='{"IsPastDue": false, "Schedule": {}, "ScheduleStatus": {}}')
        self._call(name, TimerRequestConverter, TimerRequestConverter.decode(datum, trigger_metadata={}))

    def pile(self, name: str, messages: Sequence[Message]) -> None:
        """Hand messages to a function; if it raises, the host would give them all back."""
        bodies = meta.Datum(
            type="collection_string", value=SimpleNamespace(string=[message.body for message in messages])
        )
        properties = [dict(message.properties) for message in messages]
        about = {
            "MessageIdArray": [message.message_id for message in messages],
            "LockTokenArray": [f"lock-{place}" for place, _ in enumerate(messages)],
            "DeliveryCountArray": [message.delivery_count for message in messages],
            "EnqueuedTimeUtcArray": [f"{message.enqueued_at:%Y-%m-%dT%H:%M:%S.%fZ}" for message in messages],
            "ApplicationPropertiesArray": properties,
            "UserPropertiesArray": properties,
        }
        metadata = {key: meta.Datum(type="json", value=json.dumps(values)) for key, values in about.items()}
        pile = ServiceBusMessageInConverter.decode(bodies, trigger_metadata=metadata)
        self._call(name, ServiceBusMessageInConverter, pile)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request to the function `api`, and return status, headers and body of its answer."""
        texts = {name: meta.Datum(type="string", value=value) for name, value in (headers or {}).items()}
        value = {
            "method": meta.Datum(type="string", value=method),
            "url": meta.Datum(type="string", value=f"https://contoso.azurewebsites.net{path}"),
            "headers": texts,
            "query": {},
            "params": {},
            "body": meta.Datum(type="bytes", value=body),
        }
        request = HttpRequestConverter.decode(meta.Datum(type="http", value=value), trigger_metadata={})
        answer = asyncio.run(self._functions["api"].get_user_function()(request, None))
        encoded = HttpResponseConverter.encode(answer, expected_type=func.HttpResponse).value
        found = {name.lower(): datum.value for name, datum in encoded["headers"].items()}
        return int(encoded["status_code"].value), found, encoded["body"].value

    def _call(self, name: str, converter: Any, value: Any) -> None:
        function, argument = self._functions[name].get_user_function(), self.binding(name)["name"]
        assert converter.check_input_type_annotation(get_type_hints(function)[argument])
        function(**{argument: value})


class Listener:
    """Receives from a subscription for one function and settles what it gave it, as the host does for a pile."""

    def __init__(self, host: FunctionsHost, name: str, client: ServiceBusClient, most: int) -> None:
        self._host, self._name, self._most = host, name, most
        found = host.binding(name)
        self._receiver = client.get_subscription_receiver(found["topicName"], found["subscriptionName"])
        self._receiver.__enter__()  # opens the link, for which the short waits below leave no time

    def turn(self) -> int:
        """Receive a pile, hand it over, settle it, and return its size. A crash within the call settles nothing."""
        messages = self._receiver.receive_messages(self._most, max_wait_time=0.05)
        if messages:
            try:
                self._host.pile(self._name, [_told(message) for message in messages])
            except Exception:  # noqa: BLE001 - whatever it is, the host gives the whole pile back
                settle = self._receiver.abandon_message
            else:
                settle = self._receiver.complete_message
            for message in messages:
                settle(message)
        return len(messages)

    def close(self) -> None:
        self._receiver.close()


def _told(message: ServiceBusReceivedMessage) -> Message:
    # The host's SDK counts deliveries from one.
    count = (message.delivery_count or 0) + 1
    return Message(
        str(message.message_id), body_of(message), properties_of(message), count, enqueued_at(message) or EARLY
    )
