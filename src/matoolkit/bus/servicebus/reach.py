"""Which workers have a subscription: asked before the first job to each, and remembered for a while."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from matoolkit.bus.topology import jobs_of_worker
from matoolkit.clock import Clock
from matoolkit.errors import BusEntityMissing, MatoolkitError
from matoolkit.ports import Subscription
from matoolkit.records import record

# Jobs for a subscription that is deleted in this time are lost until their time limit.
_YES_LASTS = timedelta(minutes=1)
# A person who has just created a subscription does not wait long.
_NO_LASTS = timedelta(seconds=30)

log = logging.getLogger(__name__)


@record
class _Answer:
    has_subscription: bool
    until: datetime


class Reach:
    """Knows who can be reached. `probe` raises `BusEntityMissing` for a subscription that does not exist."""

    def __init__(self, probe: Callable[[Subscription], None], clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._known: dict[str, _Answer] = {}

    def of(self, worker_id: str) -> bool:
        """Tell whether a worker has a subscription; if the bus does not say, the job may wait in the outbox."""
        known, now = self._known.get(worker_id), self._clock.now()
        if known is None or now >= known.until:
            known = self._known[worker_id] = self._asked(worker_id, now)
        return known.has_subscription

    def _asked(self, worker_id: str, now: datetime) -> _Answer:
        try:
            self._probe(jobs_of_worker(worker_id))
        except BusEntityMissing as missing:
            log.error("no job can be sent to worker %s: %s", worker_id, missing)  # noqa: TRY400
            return _Answer(has_subscription=False, until=now + _NO_LASTS)
        except MatoolkitError as fault:
            log.info("whether worker %s has a subscription is not known: %s", worker_id, fault)
            return _Answer(has_subscription=True, until=now + _NO_LASTS)
        return _Answer(has_subscription=True, until=now + _YES_LASTS)
