"""What the last hour was like, minute by minute, from what is stored of it.

Only steps of members count. How often services throttled is not stored, so nothing is said of it here.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import chain
from types import MappingProxyType

from matoolkit.domain.states import FAILED_STEPS
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.pulse import (
    Beginning,
    Endings,
    beginnings_since,
    count_jobs_out,
    endings_by_minute,
    last_hellos,
    oldest_jobs_out,
)
from matoolkit.store.runbooks import runbooks_by_id, runbooks_in_use

_MINUTE, _MINUTES = timedelta(minutes=1), 60
# What ended in the latest minutes may be committed yet.
_UNSETTLED = 3


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


@dataclass(slots=True)
class KnownMinutes:
    """Minutes that are over, as they were counted: they do not change, so an hour is counted once, minute by minute."""

    # Both are replaced at once, so that two who count at the same time do not mix what they know.
    _of: tuple[Sequence[str], Mapping[datetime, Sequence[Endings]]] = ((), MappingProxyType({}))

    def counted(self, tx: Transaction, workers: Sequence[str], begins: Sequence[datetime]) -> list[Endings]:
        """Return what ended in minutes; the latest ones are counted every time."""
        known_workers, ended = self._of
        known = ended if known_workers == workers else {}
        settled, latest = begins[:-_UNSETTLED], begins[-_UNSETTLED:]
        missing = [*(begin for begin in settled if begin not in known), *latest]
        found: dict[datetime, list[Endings]] = {begin: [] for begin in missing}
        for one in endings_by_minute(tx, workers, missing):
            found[one.begin].append(one)
        kept = {begin: found.get(begin) or known.get(begin, ()) for begin in settled}
        self._of = (workers, kept)
        return [*chain.from_iterable(kept.values()), *chain.from_iterable(found[begin] for begin in latest)]


def rates_of_last_hour(store: Store, known: KnownMinutes | None = None) -> Rates:
    """Look at the last hour: 60 minutes of the clock; the last one has not ended yet."""
    with store.reading() as tx:
        at = tx.time()
        end = at.replace(second=0, microsecond=0) + _MINUTE
        begins = [end - _MINUTE * number for number in range(_MINUTES, 0, -1)]
        workers = _workers(tx)
        ended = (known or KnownMinutes()).counted(tx, workers, begins)
        steps, failed = Counter[datetime](), Counter[datetime]()
        heard: dict[datetime, set[str]] = defaultdict(set)
        for one in ended:
            steps[one.begin] += one.count
            heard[one.begin].add(one.worker_id)
            if one.status in FAILED_STEPS:
                failed[one.begin] += one.count
        lags = _lags(beginnings_since(tx, begins[0]))
        minutes = [Minute(begin, steps[begin], failed[begin], len(heard[begin]), lags.get(begin)) for begin in begins]
        return Rates(at, minutes, count_jobs_out(tx), len({one.worker_id for one in ended}), len(workers))


def _lags(begun: Sequence[Beginning]) -> dict[datetime, timedelta]:
    """Say for each minute how long the slowest phase waited; a batch that was found late did not wait before."""
    found: dict[datetime, timedelta] = {}
    for one in begun:
        begin = one.dispatched_at.replace(second=0, microsecond=0)
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
