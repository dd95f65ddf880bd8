"""Topics, subscriptions, filters and limits, stated once for code, tests and infrastructure (rule M8)."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import lru_cache

from matoolkit.ports import Subscription

ORCHESTRATOR_EVENTS = "orchestrator-events"
WORKER_JOBS = "worker-jobs"
WORKER_RESULTS = "worker-results"
TOPICS = (ORCHESTRATOR_EVENTS, WORKER_JOBS, WORKER_RESULTS)

WORKER_ID = "WorkerId"
MESSAGE_TYPE = "MessageType"

# A second message with the same id within this time is dropped. A help, not the guarantee: handlers are guarded.
DUPLICATE_WINDOW = timedelta(minutes=10)
LOCK_DURATION = timedelta(minutes=1)
TIME_TO_LIVE = timedelta(days=7)
# The smallest size of a topic on Service Bus.
MEGABYTES = 1024
# Service Bus takes no longer condition.
LONGEST_CONDITION = 1024

EVENTS_OF_ORCHESTRATOR = Subscription(ORCHESTRATOR_EVENTS, "orchestrator")
RESULTS_OF_ORCHESTRATOR = Subscription(WORKER_RESULTS, "orchestrator")
# Jobs for workers without a subscription. Service Bus would drop them without a word; the SQL bus needs none.
UNCLAIMED_JOBS = Subscription(WORKER_JOBS, "unclaimed")

_EVERYTHING = "1=1"
_OF_WORKER = "worker-"


@lru_cache(maxsize=1024)
def jobs_of_worker(worker_id: str) -> Subscription:
    """Return the subscription from which a worker takes its jobs."""
    return Subscription(WORKER_JOBS, f"{_OF_WORKER}{worker_id}", WORKER_ID, worker_id)


def worker_of(name: str) -> str | None:
    """Return the worker whose jobs a subscription of that name takes, if it is a worker's."""
    return name.removeprefix(_OF_WORKER) if name.startswith(_OF_WORKER) else None


def subscriptions(workers: Collection[str]) -> list[Subscription]:
    """Return all subscriptions that a namespace with these workers has."""
    of_workers = [jobs_of_worker(worker) for worker in sorted(workers)]
    return [EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR, *of_workers, UNCLAIMED_JOBS]


def condition_of(subscription: Subscription, workers: Collection[str]) -> str:
    """Return the SQL condition of the messages that a subscription takes."""
    if subscription.filter_property is not None:
        return f"{subscription.filter_property} = '{subscription.filter_value}'"
    if subscription == UNCLAIMED_JOBS and workers:
        named = ", ".join(f"'{worker}'" for worker in sorted(workers))
        # A comparison with a missing property is neither true nor false.
        return f"{WORKER_ID} IS NULL OR {WORKER_ID} NOT IN ({named})"
    return _EVERYTHING


def subscription_for(topic: str, properties: Mapping[str, str]) -> Subscription:
    """Say which subscription gets a message.

    Each message has exactly one reader. On the SQL bus a job waits for its worker even if that worker has never run; on
    Azure Service Bus the subscription must exist (`matoolkit bus check`).
    """
    match topic:
        case "orchestrator-events":
            return EVENTS_OF_ORCHESTRATOR
        case "worker-results":
            return RESULTS_OF_ORCHESTRATOR
        case "worker-jobs":
            return jobs_of_worker(properties[WORKER_ID])
        case _:
            raise ValueError(f"there is no topic {topic!r}")
