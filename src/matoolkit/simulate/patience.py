"""Nobody gives a poll up before its time, without the time behind gates, is over (rules O6 and G7)."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import orjson

from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry
from matoolkit.simulate.wallclocks import openings_in
from matoolkit.store.dialect.types import stored_text

_WORK = ("step", "init", "rollback")
_KEY = "(SELECT member_key_fold FROM batch_members WHERE id = w.batch_member_id)"
# When gates kept the jobs of some work, from the rows of the gates alone.
_KEPT = """
SELECT g.shut_from, MIN(COALESCE(g.opened_at, '9'), COALESCE(g.shut_until, '9')) FROM gates g, {table}_executions w
WHERE w.id = {id} AND g.reach = 'send' AND (g.batch_id IS NULL OR g.batch_id = w.batch_id)
AND (g.worker_id IS NULL OR g.worker_id = w.worker_id)
AND (g.runbook_name IS NULL OR g.runbook_name = (SELECT runbook_name FROM batches WHERE id = w.batch_id))
AND (g.member_key_fold IS NULL OR g.member_key_fold = {key}) AND (g.phase_execution_id IS NULL OR {phase})
"""
# A gate of a phase is about that phase and the later ones of its version.
_REACHED = """
EXISTS (SELECT 1 FROM phase_executions of JOIN phase_executions mine ON mine.id = w.phase_execution_id
 WHERE of.id = g.phase_execution_id AND of.batch_id = mine.batch_id AND of.runbook_version = mine.runbook_version
 AND (-of.offset_minutes, of.phase_index) <= (-mine.offset_minutes, mine.phase_index))
"""
_WINDOW = """
SELECT r.rules -> '$.window' FROM step_executions w JOIN phase_executions p ON p.id = w.phase_execution_id
JOIN sim_rules r ON r.version = p.runbook_version AND r.place = p.phase_index
WHERE w.id = {id} AND r.rules ->> '$.window.binds' = 'every_job'
"""


def polls_have_their_time(entries: Iterable[Entry], database: MemoryDatabase) -> None:
    """Demand that work that timed out had its whole time, second by second."""
    for entry in entries:
        if entry.what not in _WORK or entry.new != "poll_timeout" or entry.old == entry.new:
            continue
        began, ended = entry.about["poll_started"], entry.about["ended"]
        key = "''" if entry.what == "init" else _KEY
        phase = _REACHED if entry.what == "step" else "0"
        kept = database.look(_KEPT.format(table=entry.what, id=entry.id, key=key, phase=phase))
        if entry.what == "step":
            kept += _by_window(database, entry.id, began, ended)
        free = _free(began, ended, kept)
        if free < timedelta(seconds=entry.about["poll_timeout"]):
            raise Violation(f"{entry} after {free}, and it may take {entry.about['poll_timeout']} s: {kept}")


def _by_window(database: MemoryDatabase, step: int, began: str, ended: str) -> list[tuple[str, str]]:
    """Return when the window of a step's phase was shut, if it binds every job."""
    shut: list[tuple[str, str]] = []
    since, until = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (began, ended))
    for (window,) in database.look(_WINDOW.format(id=step)):
        for opens, closes in sorted(openings_in(orjson.loads(window), since, until)):
            if since < opens:
                shut.append((stored_text(since), stored_text(opens)))
            since = max(since, closes)
        if since < until:
            shut.append((stored_text(since), stored_text(until)))
    return shut


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
