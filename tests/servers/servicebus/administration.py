"""The administration of a namespace over HTTP: topics, subscriptions and rules, as the SDK's client asks for them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree.ElementTree import Element

from tests.servers.http import Answer, Request
from tests.servers.servicebus import atom
from tests.servers.servicebus.broker import EVERYTHING, Broker, Subscription, SubscriptionSettings, Topic, TopicSettings
from tests.servers.servicebus.tokens import MANAGE, Tokens

T = TypeVar("T")

LONGEST_LOCK = timedelta(minutes=5)


@dataclass
class Refused(Exception):
    status: int
    detail: str


_UNKNOWN = Refused(400, "SubCode=40000. There is no such kind of entity here.")


@dataclass
class Administration:
    """Answers requests; `call` runs something where the broker lives."""

    broker: Broker
    tokens: Tokens
    call: Callable[[Callable[[], Answer]], Answer]
    removed: Callable[[], None]  # told after something was deleted

    def answer(self, request: Request) -> Answer:
        headers = {name.lower(): value for name, value in request.headers.items()}
        try:
            if MANAGE not in self.tokens.rights(headers.get("authorization", "")):
                _refuse(401, "Manage,EntityRead claims required for this operation.")
            return self.call(lambda: self._carry_out(request, is_update="if-match" in headers))
        except Refused as refused:
            return _answer(atom.error(refused.status, refused.detail), refused.status)
        except ValueError as error:
            return _answer(atom.error(400, f"SubCode=40000. {error}"), 400)

    def _carry_out(self, request: Request, *, is_update: bool) -> Answer:
        address = urlsplit(request.path)
        place = [unquote(part) for part in address.path.strip("/").split("/")]
        match request.method:
            case "GET":
                asked = parse_qs(address.query)
                return self._get(place, int(asked.get("$skip", ["0"])[0]), int(asked.get("$top", ["100"])[0]))
            case "PUT":
                return self._put(place, request.body, is_update=is_update)
            case _:
                return self._delete(place)

    def _get(self, place: Sequence[str], skip: int, top: int) -> Answer:
        match place:
            case ["$namespaceinfo"]:
                about = {"CreatedTime": "2026-01-01T00:00:00Z", "MessagingSKU": "Standard", "Name": "localhost"}
                return _answer(atom.entry("localhost", "NamespaceInfo", {**about, "NamespaceType": "Messaging"}))
            case ["$Resources", kind]:
                topics = self.broker.topics.values() if kind == "topics" else ()
                return _page(kind, [_topic(topic) for topic in topics], skip, top)
            case [topic]:
                found = self.broker.topic(topic)
                # The service answers with an empty list, not with 404.
                return _answer(_topic(found)) if found else _page(topic, [], skip, top)
            case [topic, "subscriptions"]:
                owned = self._topic(topic).subscriptions.values()
                return _page(topic, [_subscription(each) for each in owned], skip, top)
            case [topic, "subscriptions", name]:
                return _answer(_subscription(self._subscription(topic, name)))
            case [topic, "subscriptions", name, "rules"]:
                rules = self._subscription(topic, name).rules
                return _page(name, [_rule(rule, sql) for rule, sql in rules.items()], skip, top)
            case [topic, "subscriptions", name, "rules", rule]:
                return _answer(_rule(rule, self._rules(topic, name, rule)[rule]))
            case _:
                raise _UNKNOWN

    def _put(self, place: Sequence[str], body: bytes, *, is_update: bool) -> Answer:
        status = 200 if is_update else 201
        match place:
            case [topic]:
                settings = _topic_settings(atom.description(body, "TopicDescription"))
                return _answer(_topic(self._put_topic(topic, settings, is_update=is_update)), status)
            case [topic, "subscriptions", name]:
                wanted = _subscription_settings(atom.description(body, "SubscriptionDescription"))
                return _answer(_subscription(self._put_subscription(topic, name, wanted, is_update=is_update)), status)
            case [topic, "subscriptions", name, "rules", rule]:
                owner = self._subscription(topic, name)
                _check(rule, exists=rule in owner.rules, is_update=is_update)
                sql = _sql(atom.description(body, "RuleDescription"))
                owner.change_rules({**owner.rules, rule: sql})
                return _answer(_rule(rule, sql), status)
            case _:
                raise _UNKNOWN

    def _put_topic(self, name: str, settings: TopicSettings, *, is_update: bool) -> Topic:
        found = self.broker.topic(name)
        _check(name, exists=found is not None, is_update=is_update)
        if found is None:
            return self.broker.create_topic(name, settings)
        if (settings.duplicate_window is None) != (found.settings.duplicate_window is None):
            _refuse(400, "SubCode=40000. RequiresDuplicateDetection of an existing topic cannot be changed.")
        if settings.is_partitioned != found.settings.is_partitioned:
            _refuse(400, "SubCode=40000. EnablePartitioning of an existing topic cannot be changed.")
        found.settings = settings
        return found

    def _put_subscription(
        self, topic: str, name: str, settings: SubscriptionSettings, *, is_update: bool
    ) -> Subscription:
        owner = self._topic(topic)
        found = owner.subscriptions.get(name.lower())
        _check(f"{topic}/{name}", exists=found is not None, is_update=is_update)
        if found is None:
            return self.broker.create_subscription(topic, name, settings)
        if settings.needs_session != found.settings.needs_session:
            _refuse(400, "SubCode=40000. RequiresSession of an existing subscription cannot be changed.")
        found.settings = settings
        return found

    def _delete(self, place: Sequence[str]) -> Answer:
        match place:
            case [topic]:
                self._topic(topic)
                del self.broker.topics[topic.lower()]
            case [topic, "subscriptions", name]:
                self._subscription(topic, name)
                del self._topic(topic).subscriptions[name.lower()]
            case [topic, "subscriptions", name, "rules", rule]:
                rules = self._rules(topic, name, rule)
                self._subscription(topic, name).change_rules({key: rules[key] for key in rules if key != rule})
            case _:
                raise _UNKNOWN
        self.removed()
        return Answer(b"")

    def _topic(self, name: str) -> Topic:
        return self.broker.topic(name) or _missing(name)

    def _subscription(self, topic: str, name: str) -> Subscription:
        return self._topic(topic).subscriptions.get(name.lower()) or _missing(f"{topic}/Subscriptions/{name}")

    def _rules(self, topic: str, name: str, rule: str) -> dict[str, str]:
        rules = self._subscription(topic, name).rules
        return rules if rule in rules else _missing(f"{topic}/Subscriptions/{name}/Rules/{rule}")


def _refuse(status: int, detail: str) -> NoReturn:
    raise Refused(status, detail)


def _missing(path: str) -> NoReturn:
    _refuse(404, f"SubCode=40400. The messaging entity '{path}' could not be found.")


def _check(path: str, *, exists: bool, is_update: bool) -> None:
    if is_update and not exists:
        _missing(path)
    if exists and not is_update:
        _refuse(409, f"SubCode=40900. Conflict: the messaging entity '{path}' already exists.")


def _answer(element: Element, status: int = 200) -> Answer:
    return Answer(atom.written(element), status, {"Content-Type": "application/atom+xml;type=entry;charset=utf-8"})


def _page(title: str, entries: Sequence[Element], skip: int, top: int) -> Answer:
    end = skip + top
    following = f"https://localhost/{title}?$skip={end}&$top={top}" if end < len(entries) else None
    return _answer(atom.feed(title, entries[skip:end], following))


def _topic(topic: Topic) -> Element:
    settings = topic.settings
    return atom.entry(
        topic.name,
        "TopicDescription",
        {
            "DefaultMessageTimeToLive": atom.span(settings.time_to_live),
            "MaxSizeInMegabytes": settings.megabytes,
            "RequiresDuplicateDetection": settings.duplicate_window is not None,
            "DuplicateDetectionHistoryTimeWindow": atom.span(settings.duplicate_window or timedelta(minutes=10)),
            "EnableBatchedOperations": True,
            "Status": "Active",
            "SupportOrdering": True,
            "CountDetails": {f"{atom.COUNTS}ScheduledMessageCount": len(topic.scheduled)},
            "SubscriptionCount": len(topic.subscriptions),
            "AutoDeleteOnIdle": atom.FOREVER,
            "EnablePartitioning": settings.is_partitioned,
        },
    )


def _topic_settings(given: Element) -> TopicSettings:
    is_once = atom.text(given, "RequiresDuplicateDetection") == "true"
    window = atom.duration(given, "DuplicateDetectionHistoryTimeWindow") or timedelta(minutes=10)
    return TopicSettings(
        time_to_live=atom.duration(given, "DefaultMessageTimeToLive"),
        duplicate_window=window if is_once else None,
        megabytes=int(atom.text(given, "MaxSizeInMegabytes") or 1024),
        is_partitioned=atom.text(given, "EnablePartitioning") == "true",
    )


def _subscription(found: Subscription) -> Element:
    settings = found.settings
    counts = {"ActiveMessageCount": found.everything(), "DeadLetterMessageCount": found.dead.everything()}
    return atom.entry(
        found.name,
        "SubscriptionDescription",
        {
            "LockDuration": atom.span(settings.lock_duration),
            "RequiresSession": settings.needs_session,
            "DefaultMessageTimeToLive": atom.span(settings.time_to_live),
            "DeadLetteringOnMessageExpiration": settings.dead_letters_expired,
            "DeadLetteringOnFilterEvaluationExceptions": settings.dead_letters_bad_filters,
            "MessageCount": sum(len(messages) for messages in counts.values()),
            "MaxDeliveryCount": settings.max_deliveries,
            "EnableBatchedOperations": True,
            "Status": "Active",
            "CountDetails": {atom.COUNTS + name: len(messages) for name, messages in counts.items()},
            "AutoDeleteOnIdle": atom.FOREVER,
        },
    )


def _subscription_settings(given: Element) -> SubscriptionSettings:
    lock = atom.duration(given, "LockDuration") or timedelta(minutes=1)
    if lock > LONGEST_LOCK:
        raise ValueError("LockDuration must not be longer than 5 minutes.")
    return SubscriptionSettings(
        lock_duration=lock,
        max_deliveries=int(atom.text(given, "MaxDeliveryCount") or 10),
        time_to_live=atom.duration(given, "DefaultMessageTimeToLive"),
        dead_letters_expired=atom.text(given, "DeadLetteringOnMessageExpiration") == "true",
        dead_letters_bad_filters=atom.text(given, "DeadLetteringOnFilterEvaluationExceptions") != "false",
        needs_session=atom.text(given, "RequiresSession") == "true",
    )


def _rule(name: str, sql: str) -> Element:
    kind = "TrueFilter" if sql in EVERYTHING.values() else "SqlFilter"
    rule = {"type": kind, "SqlExpression": sql, "CompatibilityLevel": 20}
    return atom.entry(name, "RuleDescription", {"Filter": rule, "Action": {"type": "EmptyRuleAction"}, "Name": name})


def _sql(given: Element) -> str:
    rule = given.find(f"{atom.BUS}Filter")
    kind = None if rule is None else rule.get(atom.TYPE)
    sql = None if rule is None else atom.text(rule, "SqlExpression")
    if kind not in ("SqlFilter", "TrueFilter", "FalseFilter") or not sql:
        raise ValueError(f"a rule with a {kind} is not known to this server")
    return sql
