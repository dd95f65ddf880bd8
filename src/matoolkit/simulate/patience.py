"""Nobody gives a poll up before its time, without the time behind gates, is over (rules O6 and G7)."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry

_KEY = "(SELECT member_key_fold FROM batch_members WHERE id = w.batch_member_id)"
# When gates kept the jobs of some work, from the rows of the gates alone.
_KEPT = """
SELECT g.shut_from, MIN(COALESCE(g.opened_at, '9'), COALESCE(g.shut_until, '9')) FROM gates g, {table}_executions w
WHERE w.id = {id} AND g.reach = 'send' AND (g.batch_id IS NULL OR g.batch_id = w.batch_id)
AND (g.worker_id IS NULL OR g.worker_id = w.worker_id)
AND (g.runbook_name IS NULL OR g.runbook_name = (SELECT runbook_name FROM batches WHERE id = w.batch_id))
AND (g.member_key_fold IS NULL OR g.member_key_fold = {key})
"""


def polls_have_their_time(entries: Iterable[Entry], database: MemoryDatabase) -> None:
    """Demand that work that timed out had its whole time, second by second."""
    for entry in entries:
        if entry.new != "poll_timeout" or entry.old == entry.new:
            continue
        began, ended = entry.about["poll_started"], entry.about["ended"]
        key = "''" if entry.what == "init" else _KEY
        kept = database.look(_KEPT.format(table=entry.what, id=entry.id, key=key))
        free = _free(began, ended, kept)
        if free < timedelta(seconds=entry.about["poll_timeout"]):
            raise Violation(f"{entry} after {free}, and it may take {entry.about['poll_timeout']} s: {kept}")


def _free(began: str, ended: str, kept: Iterable[tuple[str, str]]) -> timedelta:
    """Return how much of a time lies before, between and after what was kept."""
    free, reached = timedelta(), began
    for start, end in sorted(kept):
        if start > reached:
            free += _between(reached, min(start, ended))
        reached = max(reached, min(end, ended))
    return free + _between(reached, ended)


def _between(start: str, end: str) -> timedelta:
    return max(datetime.fromisoformat(end) - datetime.fromisoformat(start), timedelta())
