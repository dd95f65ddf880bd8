"""Dead letters of a bus that is not in the state's database, on their way into `dead_letters` (rule M7).

Each letter is kept first and settled then. If the process dies in between, the bus delivers the letter again, and it is
kept once: topic, subscription, message id and time of publication are its key.

A job that no worker takes becomes a dead letter too. Its worker may have got a subscription since: then the job is sent
again, if the state still waits for its result.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Protocol

from matoolkit.bus import topology
from matoolkit.bus.wire import decode
from matoolkit.bus.workers import KnownWorkers
from matoolkit.crashpoints import crash_point
from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import OPEN_STEPS
from matoolkit.errors import BusEntityDisabled, BusEntityMissing, MatoolkitError
from matoolkit.ids import parse_job_id, reissued
from matoolkit.outages import Outage
from matoolkit.ports import Outgoing, Received, Subscription
from matoolkit.records import record
from matoolkit.store import Store
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.narrow_executions import states_of
from matoolkit.store.sql.transaction import Transaction

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

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages at once."""

    def complete_now(self, messages: Sequence[Received]) -> int:
        """Settle at once the messages that are still ours."""

    def probe(self, subscriptions: Sequence[Subscription]) -> list[MatoolkitError | None]:
        """Say what is wrong with each subscription; one that does not exist is a `BusEntityMissing`."""


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
            except Exception as fault:  # noqa: BLE001 - it is told, and the next subscription is not to blame
                trouble.failed(fault)
            else:
                trouble.worked()

    def _drain(self, subscription: Subscription) -> None:
        while letters := self._bus.letters(subscription, _AT_ONCE, dead=True):
            dead = [dead_letter(letter, letter.reason or "Unknown", letter.description) for letter in letters]
            self._keep(letters, dead)

    def _drain_unclaimed(self) -> None:
        """Make dead letters of jobs whose worker has no subscription, and send the others again."""
        while letters := self._bus.letters(topology.UNCLAIMED_JOBS, _AT_ONCE, dead=False):
            jobs = [(letter, _job(letter.received)) for letter in letters]
            reached = self._with_subscription({job.worker_id for _, job in jobs if job is not None})
            self._send_again([(letter, job) for letter, job in jobs if job is not None and job.worker_id in reached])
            unclaimed = [(letter, job) for letter, job in jobs if job is None or job.worker_id not in reached]
            self._keep(letters, [dead_letter(letter, NO_SUBSCRIPTION, _why(job)) for letter, job in unclaimed])

    def _send_again(self, jobs: Sequence[tuple[Letter, WorkerJob]]) -> None:
        """Send the jobs whose results are waited for, once more each.

        A job came before its worker had a subscription, or it is a copy, because the rule takes too much. Nobody can
        tell which, and to do a job twice is allowed. A job that comes back here is a copy.
        """
        with self._store.reading() as tx:
            waited_for = _waited_for(tx, {job.job_id for _, job in jobs})
        again = [
            job
            for letter, job in jobs
            if job.job_id in waited_for and letter.received.message_id != reissued(job.job_id, 1)
        ]
        if len(again) < len(jobs):
            log.warning(
                "%d jobs in %s are copies, or nothing waits for them: run `matoolkit bus create` if this goes on",
                len(jobs) - len(again),
                topology.UNCLAIMED_JOBS.name,
            )
        if again:
            log.warning("%d jobs that no worker had taken are sent again", len(again))
            # The bus would drop a second message with the same id.
            self._bus.send([Outgoing(reissued(job.job_id, 1), job) for job in again])

    def _with_subscription(self, workers: Collection[str]) -> set[str]:
        """Return the workers that have a subscription; a disabled one takes messages, and gives none."""
        asked = sorted(workers)
        faults = self._bus.probe([topology.jobs_of_worker(worker) for worker in asked])
        for fault in faults:
            if fault is not None and not isinstance(fault, BusEntityMissing | BusEntityDisabled):
                raise fault
        return {worker for worker, fault in zip(asked, faults, strict=True) if not isinstance(fault, BusEntityMissing)}

    def _keep(self, letters: Sequence[Letter], kept: Sequence[NewDeadLetter]) -> None:
        keep(self._store, kept)
        self._bus.complete_now([letter.received for letter in letters])


def keep(store: Store, letters: Sequence[NewDeadLetter]) -> None:
    """Keep messages as dead letters, and say so."""
    with store.transaction() as tx:
        keep_dead_letters(tx, letters, tx.time())
    KEPT.reached()
    if letters:
        # An alert in infra/ looks for this line.
        log.warning("%d messages became dead letters", len(letters))


def dead_letter(letter: Letter, reason: str, description: str | None) -> NewDeadLetter:
    """Return a message as it is kept when nobody can handle it."""
    received = letter.received
    return NewDeadLetter(
        received.subscription.topic,
        received.subscription.name,
        _first_id(received)[:_LONGEST_ID],
        received.message_type[:_LONGEST_TYPE],
        received.body,
        letter.properties_json,
        reason,
        description,
        received.delivery_count,
        letter.enqueued_at or _UNKNOWN_TIME,
    )


def _first_id(received: Received) -> str:
    """Return the id of a message; a job that was sent again is kept under its own, by which its work is found."""
    job = _job(received)
    return received.message_id if job is None or received.message_id != reissued(job.job_id, 1) else job.job_id


def _job(received: Received) -> WorkerJob | None:
    """Return the job that a message is, if it is one."""
    try:
        message = decode(received.subscription.topic, received.message_type, received.body)
    except MatoolkitError:
        return None
    return message if isinstance(message, WorkerJob) else None


def _waited_for(tx: Transaction, job_ids: Collection[str]) -> set[str | None]:
    """Return the jobs that the open work of these jobs waits for."""
    refs = [ref for name in job_ids if (ref := parse_job_id(name)) is not None]
    states = [
        state
        for kind in {ref.kind for ref in refs}
        for state in states_of(tx, kind, {ref.execution_id for ref in refs if ref.kind is kind}).values()
    ]
    return {state.job_id for state in states if state.is_in_flight and state.status in OPEN_STEPS}


def _why(job: WorkerJob | None) -> str:
    if job is None:
        return "it is no job for any worker"
    return f"worker {job.worker_id} has no subscription: run `matoolkit bus create --worker {job.worker_id}`"
