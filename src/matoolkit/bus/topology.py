"""Topics, subscriptions, filters and limits, stated once for code, tests and infrastructure (rule M8)."""

from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache

from matoolkit.ports import Subscription

ORCHESTRATOR_EVENTS = "orchestrator-events"
WORKER_JOBS = "worker-jobs"
WORKER_RESULTS = "worker-results"

WORKER_ID = "WorkerId"
MESSAGE_TYPE = "MessageType"

# A second message with the same id within this time is dropped. A help, not the guarantee: handlers are guarded.
DUPLICATE_WINDOW = timedelta(minutes=10)
LOCK_DURATION = timedelta(minutes=1)
TIME_TO_LIVE = timedelta(days=7)

EVENTS_OF_ORCHESTRATOR = Subscription(ORCHESTRATOR_EVENTS, "orchestrator")
RESULTS_OF_ORCHESTRATOR = Subscription(WORKER_RESULTS, "orchestrator")


@lru_cache(maxsize=1024)
def jobs_of_worker(worker_id: str) -> Subscription:
    """Return the subscription from which a worker takes its jobs."""
    return Subscription(WORKER_JOBS, f"worker-{worker_id}", WORKER_ID, worker_id)


def subscription_for(topic: str, properties: Mapping[str, str]) -> Subscription:
    """Say which subscription gets a message.

    Each message has exactly one reader. On the SQL bus a job waits for its worker even if that worker has never run; on
    Azure Service Bus the subscription must exist, which is a matter of infrastructure.
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
