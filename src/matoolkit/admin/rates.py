"""What the last hour was like, minute by minute, from what is stored of it.

Only steps of members count. How often services throttled is not stored, so nothing is said of it here.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from matoolkit.domain.states import FAILED_STEPS
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.pulse import (
    Beginning,
    beginnings_since,
    count_jobs_out,
    endings_by_minute,
    last_hellos,
    oldest_jobs_out,
)
from matoolkit.store.runbooks import runbooks_by_id, runbooks_in_use

_HOUR, _MINUTE = timedelta(hours=1), timedelta(minutes=1)
_MINUTES = 60


@dataclass(frozen=True, slots=True)
class Minute:
    """What ended in one minute, how many workers did it, and how long the slowest phase waited that began in it."""

    begin: datetime
    steps: int
    failed: int
    workers: int
    lag: timedelta | None


@dataclass(frozen=True, slots=True)
class Rates:
    """The last hour, the oldest minute first, and what is out now."""

    at: datetime
    minutes: Sequence[Minute]
    jobs_out: int
    workers_heard: int
    workers: int

    @property
    def steps(self) -> int:
        """How many steps ended in the hour."""
        return sum(one.steps for one in self.minutes)

    @property
    def failed(self) -> int:
        """How many of them failed."""
        return sum(one.failed for one in self.minutes)

    @property
    def busiest(self) -> Minute:
        """The minute in which most steps ended."""
        return max(self.minutes, key=lambda one: one.steps)

    @property
    def longest_lag(self) -> timedelta | None:
        """How long the slowest phase of the hour waited, if one began."""
        return max((one.lag for one in self.minutes if one.lag is not None), default=None)


def rates_of_last_hour(store: Store) -> Rates:
    """Look at the last hour."""
    with store.reading() as tx:
        at = tx.time()
        workers = _workers(tx)
        ended = endings_by_minute(tx, workers, at)
        steps, failed = Counter[datetime](), Counter[datetime]()
        heard: dict[datetime, set[str]] = {}
        for one in ended:
            steps[one.begin] += one.count
            heard.setdefault(one.begin, set()).add(one.worker_id)
            if one.status in FAILED_STEPS:
                failed[one.begin] += one.count
        lags = _lags(beginnings_since(tx, at - _HOUR), at)
        begins = [at - _MINUTE * number for number in range(_MINUTES, 0, -1)]
        minutes = [
            Minute(begin, steps[begin], failed[begin], len(heard.get(begin, ())), lags.get(begin)) for begin in begins
        ]
        return Rates(at, minutes, count_jobs_out(tx), len({one.worker_id for one in ended}), len(workers))


def _lags(begun: Sequence[Beginning], at: datetime) -> dict[datetime, timedelta]:
    """Say for each minute how long the slowest phase waited; a batch that was found late did not wait before."""
    found: dict[datetime, timedelta] = {}
    for one in begun:
        age = at - one.dispatched_at
        begin = at - _MINUTE * (age // _MINUTE + (1 if age % _MINUTE else 0) or 1)
        lag = max(timedelta(), one.dispatched_at - max(one.due_at, one.detected_at))
        found[begin] = max(lag, found.get(begin, lag))
    return found


def _workers(tx: Transaction) -> list[str]:
    """Return the workers that may have done something: those that announced themselves, have jobs, or are named."""
    rows = runbooks_by_id(tx, runbooks_in_use(tx))
    named = {worker for row in rows for worker in _named(row.yaml_content)}
    known = {one.worker_id for one in last_hellos(tx)} | {one.worker_id for one in oldest_jobs_out(tx)}
    return sorted(named | known)


@lru_cache(maxsize=200)
def _named(document: str) -> frozenset[str]:
    """Return the workers that a runbook names; a document that today's rules refuse names none."""
    try:
        return frozenset(step.worker_id for step in parse_runbook(document).every_step())
    except InvalidRunbook:
        return frozenset()
