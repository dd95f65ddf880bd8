"""Workers that have jobs and say nothing (rule U6).

Nobody writes down when a worker was last heard. It follows from what it did: the last step of it that ended, the last
answer to a step that polls, and its hello. A worker without jobs need not say anything, so nothing is known of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from matoolkit.store import Transaction
from matoolkit.store.pulse import MOST_JOBS, Heard, OldestJobs, last_answers, last_endings, last_hellos, oldest_jobs_out

# By the clock, not by a calendar that runs fast: so long does a worker work. Longer work is for steps that poll.
_SILENT = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SilentWorker:
    """A worker that has had a job for long and said nothing since; there may be more jobs than were counted."""

    worker_id: str
    since: datetime
    jobs: int
    may_be_more: bool


def silent_workers(tx: Transaction, at: datetime) -> list[SilentWorker]:
    """Return the workers, by name, that have had a job for long and have said nothing since."""
    out = oldest_jobs_out(tx)
    longest = at - tx.lasting(_SILENT)
    suspects = [one for one in out if one.oldest_at <= longest]
    if not suspects:
        return []
    heard = _newest(chain(last_endings(tx, [one.worker_id for one in suspects]), last_answers(tx), last_hellos(tx)))
    may_be_more = sum(one.jobs for one in out) >= MOST_JOBS
    found = [SilentWorker(one.worker_id, _since(one, heard), one.jobs, may_be_more) for one in suspects]
    return [worker for worker in found if worker.since <= longest]


def _since(out: OldestJobs, heard: dict[str, datetime]) -> datetime:
    """Say since when a worker is silent: before it had a job, it had nothing to say."""
    return max(out.oldest_at, heard.get(out.worker_id, out.oldest_at))


def _newest(found: Iterable[Heard]) -> dict[str, datetime]:
    newest: dict[str, datetime] = {}
    for one in found:
        if one.at is not None:
            newest[one.worker_id] = max(one.at, newest.get(one.worker_id, one.at))
    return newest
