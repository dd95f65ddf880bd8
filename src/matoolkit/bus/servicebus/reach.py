"""Which workers have a subscription: asked before the first job to each, and remembered for a while."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from matoolkit.bus.topology import jobs_of_worker
from matoolkit.clock import Clock
from matoolkit.errors import BusEntityDisabled, BusEntityMissing, MatoolkitError
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
    """Knows who can be reached. `probe` returns what is wrong with each subscription, or nothing."""

    def __init__(self, probe: Callable[[Sequence[Subscription]], list[MatoolkitError | None]], clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._known: dict[str, _Answer] = {}

    def missing(self, worker_ids: Collection[str]) -> set[str]:
        """Return the workers without a subscription; if the bus does not say, their jobs may wait in the outbox."""
        now = self._clock.now()
        unknown = sorted(one for one in worker_ids if one not in self._known or now >= self._known[one].until)
        if unknown:
            # All at once: the batches of these jobs are locked meanwhile.
            faults = self._probe([jobs_of_worker(one) for one in unknown])
            self._known |= {one: _answer(one, fault, now) for one, fault in zip(unknown, faults, strict=True)}
        return {one for one in worker_ids if not self._known[one].has_subscription}


def _answer(worker_id: str, fault: MatoolkitError | None, now: datetime) -> _Answer:
    if fault is None or isinstance(fault, BusEntityDisabled):
        return _Answer(has_subscription=True, until=now + _YES_LASTS)
    if isinstance(fault, BusEntityMissing):
        log.error("no job can be sent to worker %s: %s", worker_id, fault)
        return _Answer(has_subscription=False, until=now + _NO_LASTS)
    log.info("whether worker %s has a subscription is not known: %s", worker_id, fault)
    return _Answer(has_subscription=True, until=now + _NO_LASTS)
