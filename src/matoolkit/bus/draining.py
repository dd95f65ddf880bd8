"""Dead letters of a bus that is not in the state's database, on their way into `dead_letters` (rule M7).

Each letter is kept first and settled then. If the process dies in between, the bus delivers the letter again, and it is
kept once: topic, subscription, message id and time of publication are its key.
"""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from matoolkit.bus import topology
from matoolkit.bus.wire import decode
from matoolkit.bus.workers import KnownWorkers
from matoolkit.crashpoints import crash_point
from matoolkit.domain.messages import WorkerJob
from matoolkit.errors import BusEntityMissing, MatoolkitError
from matoolkit.outages import Outage
from matoolkit.ports import Received, Subscription
from matoolkit.records import record
from matoolkit.store import Store
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters

KEPT = crash_point("drain.kept")

NO_SUBSCRIPTION = "NoSubscription"
_AT_ONCE = 100
# What the columns of `dead_letters` hold; a message of another program may say anything.
_LONGEST_TYPE, _LONGEST_ID = 50, 200
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)

log = logging.getLogger(__name__)


@record
class Letter:
    """A message with what the bus says about it: when it was published, and why it is a dead letter, if it is one."""

    received: Received
    properties_json: str
    enqueued_at: datetime | None
    reason: str | None = None
    description: str | None = None


class BusWithLetters(Protocol):
    """A bus that keeps dead letters beside each subscription."""

    def letters(self, subscription: Subscription, most: int, *, dead: bool) -> list[Letter]:
        """Lock dead letters of a subscription, or its messages, and return them."""

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle at once the messages that are still ours."""

    def probe(self, subscription: Subscription) -> None:
        """Do nothing if a subscription exists, and raise `BusEntityMissing` if it does not."""


class Drain:
    """Keeps the dead letters of all subscriptions, and the jobs that no worker takes."""

    def __init__(self, store: Store, bus: BusWithLetters) -> None:
        self._store = store
        self._bus = bus
        self._workers = KnownWorkers()
        self._troubles: dict[Subscription, Outage] = {}

    def sweep(self) -> None:
        """Keep what has become a dead letter since; what fails for one subscription does not stop the others."""
        with self._store.reading() as tx:
            workers = self._workers.ids(tx)
        for subscription in topology.subscriptions(workers):
            trouble = self._troubles.setdefault(subscription, Outage(f"draining {subscription.name}", log))
            try:
                self._drain(subscription)
                if subscription == topology.UNCLAIMED_JOBS:
                    self._drain_unclaimed()
            except BusEntityMissing:
                # The dispatch of a job says so, and so does `matoolkit bus check`.
                continue
            except MatoolkitError as fault:
                trouble.failed(fault)
            else:
                trouble.worked()

    def _drain(self, subscription: Subscription) -> None:
        while letters := self._bus.letters(subscription, _AT_ONCE, dead=True):
            self._keep(letters, [_kept(letter, letter.reason or "Unknown", letter.description) for letter in letters])

    def _drain_unclaimed(self) -> None:
        """Make dead letters of jobs whose worker has no subscription."""
        while letters := self._bus.letters(topology.UNCLAIMED_JOBS, _AT_ONCE, dead=False):
            workers = {letter.received.message_id: _worker(letter.received) for letter in letters}
            lost = {worker for worker in set(workers.values()) if not self._has_subscription(worker)}
            unclaimed = [letter for letter in letters if workers[letter.received.message_id] in lost]
            if len(unclaimed) < len(letters):
                log.warning(
                    "the rule of %s takes jobs of workers that have a subscription: run `matoolkit bus create`",
                    topology.UNCLAIMED_JOBS.name,
                )
            self._keep(
                letters,
                [_kept(letter, NO_SUBSCRIPTION, _why(workers[letter.received.message_id])) for letter in unclaimed],
            )

    def _has_subscription(self, worker: str | None) -> bool:
        if worker is None:
            return False
        try:
            self._bus.probe(topology.jobs_of_worker(worker))
        except BusEntityMissing:
            return False
        return True

    def _keep(self, letters: Sequence[Letter], kept: Sequence[NewDeadLetter]) -> None:
        with self._store.transaction() as tx:
            keep_dead_letters(tx, kept, tx.time())
        KEPT.reached()
        if kept:
            # An alert in infra/ looks for this line.
            log.warning("%d messages became dead letters", len(kept))
        self._bus.complete_now([letter.received for letter in letters])


def _kept(letter: Letter, reason: str, description: str | None) -> NewDeadLetter:
    received = letter.received
    return NewDeadLetter(
        received.subscription.topic,
        received.subscription.name,
        received.message_id[:_LONGEST_ID],
        received.message_type[:_LONGEST_TYPE],
        received.body,
        letter.properties_json,
        reason,
        description,
        received.delivery_count,
        letter.enqueued_at or _UNKNOWN_TIME,
    )


def _worker(received: Received) -> str | None:
    """Return the worker that a job is for, if the message is a job."""
    try:
        message = decode(received.subscription.topic, received.message_type, received.body)
    except MatoolkitError:
        return None
    return message.worker_id if isinstance(message, WorkerJob) else None


def _why(worker: str | None) -> str:
    if worker is None:
        return "it is no job for any worker"
    return f"worker {worker} has no subscription: run `matoolkit bus create --worker {worker}`"
