"""A namespace compared with `bus/topology.py`, and what is missing in it made (rule M8).

Only this needs the right to manage. Nothing that exists is deleted. It is changed only if that is asked for, with one
exception: the rule of the jobs that no worker takes follows from who the workers are.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from matoolkit.bus import topology
from matoolkit.bus.servicebus.address import Address
from matoolkit.bus.servicebus.wanted import SUBSCRIPTION, TOPIC, Wanted, told
from matoolkit.clouds import Cloud
from matoolkit.errors import BusLibraryMissing, BusManagingRefused, BusUnavailable
from matoolkit.ports import Subscription
from matoolkit.records import record
from matoolkit.tokens import LibraryMissing, NoToken, NoTokenNow, first_line, token_of_process

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken
    from azure.servicebus.management import RuleProperties, ServiceBusAdministrationClient

MISSING = "missing"
_CREATE = "matoolkit bus create"
_CHANGE = "matoolkit bus create --change"
_RULE = "matoolkit"

FoundT = TypeVar("FoundT")


@record
class Difference:
    """What a namespace lacks or has otherwise, and the command that changes it."""

    entity: str
    what: str
    wanted: str
    found: str
    command: str


@record
class Made:
    """What was created or changed."""

    entity: str
    what: str


class Administration:
    """Looks at a namespace and creates what is missing in it."""

    def __init__(self, client: "ServiceBusAdministrationClient", address: Address) -> None:
        self._client = client
        self._address = address

    def workers(self) -> set[str]:
        """Return the workers that have a subscription."""
        if self._topic(topology.WORKER_JOBS) is None:
            return set()
        with self._asking():
            names = [found.name for found in self._client.list_subscriptions(topology.WORKER_JOBS)]
        return {worker for name in names if (worker := topology.worker_of(name)) is not None}

    def differences(self, workers: Collection[str]) -> Iterator[Difference]:
        """Say what is not as it must be for these workers, topics first."""
        missing: set[str] = set()
        for topic in topology.TOPICS:
            found = self._topic(topic)
            if found is None:
                missing.add(topic)
                yield Difference(topic, "topic", "there", MISSING, _CREATE)
            else:
                yield from _compared(topic, TOPIC, found, f"delete {topic} when it is empty, then {_CREATE}")
        for subscription in topology.subscriptions(workers):
            entity = _path(subscription)
            found = None if subscription.topic in missing else self._subscription(subscription)
            if found is None:
                yield Difference(entity, "subscription", "there", MISSING, _CREATE)
            else:
                yield from _compared(entity, SUBSCRIPTION, found, f"delete {entity} when it is empty, then {_CREATE}")
                yield from self._rule_difference(subscription, workers)

    def create(self, workers: Collection[str], *, change: bool = False) -> Iterator[Made]:
        """Make what is missing for these workers, and say what was made; with `change` also set right what differs."""
        for topic in topology.TOPICS:
            found = self._topic(topic)
            if found is None:
                with self._asking():
                    self._client.create_topic(topic, **_settings(TOPIC))
                yield Made(topic, "created")
            elif change and (names := _set_right(TOPIC, found)):
                with self._asking():
                    self._client.update_topic(found)
                yield Made(topic, f"changed {names}")
        for subscription in topology.subscriptions(workers):
            yield from self._make(subscription, workers, change=change)

    def _make(self, subscription: Subscription, workers: Collection[str], *, change: bool) -> Iterator[Made]:
        entity, found = _path(subscription), self._subscription(subscription)
        if found is None:
            with self._asking():
                self._client.create_subscription(subscription.topic, subscription.name, **_settings(SUBSCRIPTION))
            yield Made(entity, "created")
        elif change and (names := _set_right(SUBSCRIPTION, found)):
            with self._asking():
                self._client.update_subscription(subscription.topic, found)
            yield Made(entity, f"changed {names}")
        condition = topology.condition_of(subscription, workers)
        may_change = found is None or change or subscription == topology.UNCLAIMED_JOBS
        may_change = may_change and len(condition) <= topology.LONGEST_CONDITION
        if may_change and self._conditions(subscription) != [condition]:
            self._set_rule(subscription, condition)
            if found is not None:
                yield Made(entity, "changed rule")

    def _rule_difference(self, subscription: Subscription, workers: Collection[str]) -> Iterator[Difference]:
        condition, found = topology.condition_of(subscription, workers), self._conditions(subscription)
        if found == [condition]:
            return
        command = _CREATE if subscription == topology.UNCLAIMED_JOBS else _CHANGE
        if len(condition) > topology.LONGEST_CONDITION:
            command = f"none: {len(workers)} workers are more than one rule can name"
        yield Difference(_path(subscription), "rule", condition, " OR ".join(found) or MISSING, command)

    def _conditions(self, subscription: Subscription) -> list[str]:
        return sorted(_condition(rule) for rule in self._rules(subscription))

    def _set_rule(self, subscription: Subscription, condition: str) -> None:
        """Let a subscription take these messages; the right ones are taken before the others are left out."""
        from azure.servicebus.management import SqlRuleFilter

        place = subscription.topic, subscription.name
        rules = {rule.name: rule for rule in self._rules(subscription)}
        with self._asking():
            if (ours := rules.pop(_RULE, None)) is None:
                self._client.create_rule(*place, _RULE, filter=SqlRuleFilter(condition))
            else:
                ours.filter = SqlRuleFilter(condition)
                self._client.update_rule(*place, ours)
            for name in rules:
                self._client.delete_rule(*place, name)

    def _topic(self, name: str) -> Any:
        with self._asking():
            return _or_none(lambda: self._client.get_topic(name))

    def _subscription(self, subscription: Subscription) -> Any:
        with self._asking():
            return _or_none(lambda: self._client.get_subscription(subscription.topic, subscription.name))

    def _rules(self, subscription: Subscription) -> "list[RuleProperties]":
        with self._asking():
            return list(self._client.list_rules(subscription.topic, subscription.name))

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn faults of the SDK into errors of ours; their texts never have the key in them."""
        from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError

        try:
            yield
        except LibraryMissing:
            raise BusLibraryMissing from None
        except NoTokenNow as fault:
            raise BusUnavailable(f"Service Bus {self._address.host} cannot be managed: {fault}") from None
        except NoToken as fault:
            raise BusManagingRefused(self._address.host, str(fault)) from None
        except AzureError as fault:
            why = self._address.concealed(first_line(fault))
            status = fault.status_code if isinstance(fault, HttpResponseError) else None
            if isinstance(fault, ClientAuthenticationError) or status in (401, 403):
                raise BusManagingRefused(self._address.host, why) from None
            raise BusUnavailable(f"Service Bus {self._address.host} cannot be managed: {why}") from None


@contextmanager
def administration(address: Address) -> Iterator[Administration]:
    """Open the administration of a namespace for a while."""
    address.check()
    from azure.servicebus.management import ServiceBusAdministrationClient

    if address.connection_string is not None:
        client = ServiceBusAdministrationClient.from_connection_string(address.connection_string.get_secret_value())
        with client:
            yield Administration(client, address)
        return
    with ServiceBusAdministrationClient(address.namespace or "", _Identity(address.cloud)) as client:
        yield Administration(client, address)


class _Identity:
    """The identity of this process, as the SDK asks for its tokens."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def get_token(self, *scopes: str, **_: Any) -> "AccessToken":
        from azure.core.credentials import AccessToken

        issued = token_of_process(scopes[0], self._cloud)
        return AccessToken(issued.text, int(issued.ends_at))


def _compared(entity: str, wanted: Collection[Wanted], found: Any, recreate: str) -> Iterator[Difference]:
    for one in wanted:
        value = getattr(found, one.attribute)
        if not one.is_met_by(value):
            yield Difference(entity, one.name, one.told, told(value), recreate if one.fixed else _CHANGE)


def _settings(wanted: Collection[Wanted]) -> dict[str, Any]:
    """Return what a new entity is given; the rest is as Service Bus makes it."""
    own = ("status", "auto_delete_on_idle", "forward_to")
    return {one.attribute: one.value for one in wanted if one.attribute not in own}


def _set_right(wanted: Collection[Wanted], found: Any) -> str:
    """Set what differs and may be changed, and return its names."""
    off = [one for one in wanted if not one.fixed and not one.is_met_by(getattr(found, one.attribute))]
    for one in off:
        setattr(found, one.attribute, one.value)
    return ", ".join(one.name for one in off)


def _condition(rule: "RuleProperties") -> str:
    """Return what a rule takes as SQL; a comparison by correlation is the same as one by SQL."""
    from azure.servicebus.management import CorrelationRuleFilter, SqlRuleFilter

    match rule.filter:
        case SqlRuleFilter(sql_expression=str(sql)):
            return sql
        case CorrelationRuleFilter(properties=dict(properties)) if len(properties) == 1:
            ((name, value),) = properties.items()
            return f"{name} = '{value}'"
    return f"{type(rule.filter).__name__} of {rule.name}"


def _path(subscription: Subscription) -> str:
    return f"{subscription.topic}/{subscription.name}"


def _or_none(ask: Any) -> Any:
    from azure.core.exceptions import ResourceNotFoundError

    try:
        return ask()
    except ResourceNotFoundError:
        return None
