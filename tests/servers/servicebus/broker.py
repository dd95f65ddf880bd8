"""The model of a namespace: topics, subscriptions and what waits in them. It knows no network."""

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from itertools import count, takewhile
from typing import Protocol
from uuid import UUID, uuid4

from matoolkit.clock import Clock
from tests.servers.servicebus.filters import Properties, compile_filter
from tests.servers.servicebus.messages import State, Stored

EVERYTHING = {"$Default": "1=1"}


class Outcome(StrEnum):
    """What a receiver says about a message, in the words of the management operation."""

    COMPLETED = "completed"
    ABANDONED = "abandoned"
    RELEASED = "released"
    DEFERRED = "defered"
    DEAD_LETTERED = "suspended"


@dataclass(frozen=True)
class TopicSettings:
    """What a person may set on a topic."""

    time_to_live: timedelta | None = None
    duplicate_window: timedelta | None = None
    megabytes: int = 1024
    is_partitioned: bool = False


@dataclass(frozen=True)
class SubscriptionSettings:
    """What a person may set on a subscription."""

    lock_duration: timedelta = timedelta(minutes=1)
    max_deliveries: int = 10
    time_to_live: timedelta | None = None
    dead_letters_expired: bool = False
    dead_letters_bad_filters: bool = True
    needs_session: bool = False


class Reader(Protocol):
    """A link that takes messages from a queue."""

    def wants(self) -> bool:
        """Say whether it has credit for another message."""

    def keeps_locks(self) -> bool:
        """Say whether it settles what it gets; otherwise a delivered message is gone."""

    def deliver(self, message: Stored, token: UUID, locked_until: float | None) -> None:
        """Send it a message."""

    def served(self) -> None:
        """Tell it that there is nothing more for now."""


@dataclass
class Lock:
    message: Stored
    until: float


class Queue:
    """Messages for one kind of reader: those of a subscription, or those that were dead-lettered."""

    def __init__(self, path: str, now: Callable[[], float], settings: SubscriptionSettings) -> None:
        self.path, self.settings = path, settings
        self.locks: dict[UUID, Lock] = {}  # the first to end comes first: all last equally long
        self.deferred: dict[int, Stored] = {}
        self.readers: list[Reader] = []
        self._now = now
        self._ready: list[tuple[int, Stored]] = []
        self._scanned = 0.0

    def empty(self) -> None:
        """Forget all messages. Readers stay."""
        self.locks.clear()
        self.deferred.clear()
        self._ready.clear()
        self._scanned = 0.0

    def put(self, message: Stored) -> None:
        heapq.heappush(self._ready, (message.number, message))

    def waiting(self) -> list[Stored]:
        """Messages that nobody has locked, oldest first."""
        return [message for _, message in sorted(self._ready)]

    def everything(self) -> list[Stored]:
        """All messages that are here, locked and deferred ones too, oldest first."""
        held = [*(lock.message for lock in self.locks.values()), *self.deferred.values()]
        return sorted([*self.waiting(), *held], key=lambda message: message.number)

    def pump(self) -> None:
        """Give what waits to those who want it, in turns."""
        for _ in range(len(self.readers)):
            reader = self.readers.pop(0)
            self.readers.append(reader)
            while self._ready and reader.wants():
                message = heapq.heappop(self._ready)[1]
                if not self._expired(message):
                    token = uuid4()
                    reader.deliver(message, token, self.lock(message, token) if reader.keeps_locks() else None)
            if not self._ready:
                reader.served()

    def lock(self, message: Stored, token: UUID) -> float:
        """Keep a message for one reader and return until when."""
        until = self._now() + self.settings.lock_duration.total_seconds()
        self.locks[token] = Lock(message, until)
        return until

    def renew(self, token: UUID) -> float | None:
        """Begin a lock anew; None says that it was lost."""
        lock = self.locks.pop(token, None)
        return None if lock is None else self.lock(lock.message, token)

    def settle(self, token: UUID, outcome: Outcome, reason: str | None = None, description: str | None = None) -> bool:
        """Do what a receiver says; False says that the lock was lost."""
        lock = self.locks.pop(token, None)
        if lock is None:
            return False
        match outcome:
            case Outcome.ABANDONED:
                self._failed(lock.message)
            case Outcome.RELEASED:
                self.put(lock.message)
            case Outcome.DEAD_LETTERED:
                self.dead_letter(lock.message, reason, description)
            case Outcome.DEFERRED:
                failures = lock.message.failures + 1
                self.deferred[lock.message.number] = replace(lock.message, state=State.DEFERRED, failures=failures)
            case Outcome.COMPLETED:
                pass
        self.pump()
        return True

    def dead_letter(self, message: Stored, _reason: str | None, _description: str | None, /) -> None:
        """Keep it: dead letters have no further place to go."""
        self.put(message)

    def expire(self, tokens: Iterable[UUID]) -> None:
        """Take back what is locked."""
        for token in list(tokens):
            self._failed(self.locks.pop(token).message)
        self.pump()

    def tick(self) -> None:
        """Take back what was locked too long, and drop what lived too long."""
        now = self._now()
        lost = list(takewhile(lambda token: self.locks[token].until <= now, self.locks))
        if now - self._scanned >= 1:
            self._scanned = now
            self._ready = [entry for entry in self._ready if not self._expired(entry[1])]
            heapq.heapify(self._ready)
        if lost:
            self.expire(lost)

    def _failed(self, message: Stored) -> None:
        again = replace(message, failures=message.failures + 1)
        if again.failures < self.settings.max_deliveries:
            self.put(again)
        else:
            tried = f"Message could not be consumed after {again.failures} delivery attempts."
            self.dead_letter(again, "MaxDeliveryCountExceeded", tried)

    def _expired(self, message: Stored) -> bool:
        """Say whether a message is past its life, in which case it is dealt with."""
        if message.time_to_live is None or self._now() < message.enqueued + message.time_to_live:
            return False
        if self.settings.dead_letters_expired:
            self.dead_letter(message, "TTLExpiredException", "The message expired and was dead lettered.")
        return True


class Subscription(Queue):
    """A queue that takes the messages of a topic which one of its rules wants."""

    def __init__(
        self, topic: str, name: str, now: Callable[[], float], settings: SubscriptionSettings, rules: dict[str, str]
    ) -> None:
        super().__init__(f"{topic}/Subscriptions/{name}", now, settings)
        self.name = name
        self.rules = dict(rules)
        self.dead = Queue(f"{self.path}/$DeadLetterQueue", now, replace(settings, max_deliveries=2**31))
        self._numbers = count(1)
        self._wants: list[Callable[[Properties], bool]] = []
        self.change_rules(rules)

    def change_rules(self, rules: dict[str, str]) -> None:
        """Take other messages from now on."""
        self._wants = [compile_filter(sql) for sql in rules.values()]
        self.rules = dict(rules)

    def offer(self, message: Stored) -> None:
        """Take a message if a rule wants it."""
        if any(wants(message.folded) for wants in self._wants):
            limit = self.settings.time_to_live
            self.put(message if limit is None else _shortened(message, limit))

    def empty(self) -> None:
        """Forget all messages, dead letters too."""
        super().empty()
        self.dead.empty()

    def dead_letter(self, message: Stored, reason: str | None, description: str | None, /) -> None:
        """Move a message to the dead letters."""
        notes = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
        dead = message.with_properties({name: value for name, value in notes.items() if value})
        self.dead.put(replace(dead, number=next(self._numbers), state=State.ACTIVE, time_to_live=None))
        self.dead.pump()

    def tick(self) -> None:
        super().tick()
        self.dead.tick()


@dataclass
class Topic:
    name: str
    now: Callable[[], float]
    settings: TopicSettings
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    scheduled: dict[int, tuple[float, Stored]] = field(default_factory=dict)
    duplicates: int = 0
    _seen: dict[str, float] = field(default_factory=dict)  # oldest first
    _numbers: "count[int]" = field(default_factory=lambda: count(1))

    def accept(self, message: Stored, late: float = 0.0, copies: int = 1) -> int:
        """Take a message from a sender, unless it was here lately, and return its sequence number."""
        now = self.now()
        if self._was_here(message, now):
            self.duplicates += 1
            return 0
        numbered = replace(message, number=next(self._numbers))
        due = max(numbered.scheduled or 0.0, now + late if late else 0.0)
        if due > now:
            self.scheduled[numbered.number] = (due, replace(numbered, state=State.SCHEDULED))
        else:
            self._spread([numbered] + [replace(message, number=next(self._numbers)) for _ in range(1, copies)])
        return numbered.number

    def empty(self) -> None:
        """Forget all messages, also which ones were here."""
        self.scheduled.clear()
        self._seen.clear()
        self.duplicates = 0
        for subscription in self.subscriptions.values():
            subscription.empty()

    def tick(self) -> None:
        now = self.now()
        due = [number for number, (at, _) in self.scheduled.items() if at <= now]
        # A message gets a new sequence number when it appears, as in the service.
        self._spread([replace(self.scheduled.pop(number)[1], number=next(self._numbers)) for number in due])
        for subscription in list(self.subscriptions.values()):
            subscription.tick()

    def _was_here(self, message: Stored, now: float) -> bool:
        window = self.settings.duplicate_window
        if window is None or message.message_id is None:
            return False
        while self._seen and self._seen[oldest := next(iter(self._seen))] <= now - window.total_seconds():
            del self._seen[oldest]
        if message.message_id in self._seen:
            return True
        self._seen[message.message_id] = now
        return False

    def _spread(self, messages: Iterable[Stored]) -> None:
        now = self.now()
        for message in messages:
            appeared = replace(message, enqueued=now, state=State.ACTIVE)
            if self.settings.time_to_live is not None:
                appeared = _shortened(appeared, self.settings.time_to_live)
            for subscription in self.subscriptions.values():
                subscription.offer(appeared)
        for subscription in self.subscriptions.values():
            subscription.pump()


class Broker:
    """All entities of a namespace. Names do not depend on case."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.topics: dict[str, Topic] = {}

    def now(self) -> float:
        return self.clock.now().timestamp()

    def create_topic(self, name: str, settings: TopicSettings | None = None) -> Topic:
        topic = self.topics[name.lower()] = Topic(name, self.now, settings or TopicSettings())
        return topic

    def create_subscription(
        self, topic: str, name: str, settings: SubscriptionSettings | None = None, rules: dict[str, str] | None = None
    ) -> Subscription:
        owner = self.topics[topic.lower()]
        made = Subscription(
            owner.name, name, self.now, settings or SubscriptionSettings(), EVERYTHING if rules is None else rules
        )
        owner.subscriptions[name.lower()] = made
        return made

    def topic(self, path: str) -> Topic | None:
        return self.topics.get(path.lower())

    def queue(self, path: str) -> Queue | None:
        """Find what can be read under a path: `topic/Subscriptions/name`, perhaps with `/$DeadLetterQueue`."""
        match path.lower().split("/"):
            case [topic, "subscriptions", name, *rest] if topic in self.topics:
                found = self.topics[topic].subscriptions.get(name)
                return found.dead if found and rest == ["$deadletterqueue"] else found
            case _:
                return None

    def tick(self) -> None:
        """Let everything happen that the clock says has come."""
        for topic in list(self.topics.values()):
            topic.tick()


def _shortened(message: Stored, limit: timedelta) -> Stored:
    seconds = limit.total_seconds()
    if message.time_to_live is not None and message.time_to_live <= seconds:
        return message
    return replace(message, time_to_live=seconds)
