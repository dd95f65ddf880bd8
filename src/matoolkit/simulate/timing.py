"""What is due, and when the next thing will be."""

from datetime import UTC, datetime, timedelta

import orjson

from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.duration import parse_duration
from matoolkit.simulate.declared import minutes_after
from matoolkit.simulate.doortriggers import OF_INIT
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.wallclocks import next_opening
from matoolkit.store.dialect.types import stored_text

_WORK = ("step_executions", "init_executions", "rollback_executions")
_QUERIES = (
    "SELECT MIN(due_at) FROM phase_executions WHERE status = 'pending' AND due_at > '{now}'",
    # A batch that waits for a person before it begins ends after T if nobody is in it.
    "SELECT MIN(batch_start_time) FROM batches WHERE status = 'detected' AND batch_start_time > '{now}'",
    "SELECT MIN(shut_until) FROM gates WHERE opened_at IS NULL AND shut_until > '{now}'",
    *(f"SELECT MIN(lost_at) FROM {table} WHERE lost_at > '{{now}}'" for table in _WORK),
    *(f"SELECT MIN(retry_after) FROM {table} WHERE status = 'pending' AND retry_after > '{{now}}'" for table in _WORK),
    *(f"SELECT MIN(poll_due_at) FROM {table} WHERE status = 'polling' AND poll_due_at > '{{now}}'" for table in _WORK),
)
_IDLE, _BEFORE_OPENING = timedelta(minutes=5), timedelta(minutes=15)
# Phases that may wait for something that they declare.
_DECLARED = """
SELECT DISTINCT r.rules, b.batch_start_time, p.pilot_done_at FROM phase_executions p JOIN batches b ON b.id = p.batch_id
JOIN sim_rules r ON r.version = p.runbook_version AND r.place = p.phase_index
WHERE p.status = 'dispatched' OR (p.status = 'pending' AND COALESCE(p.due_at, '') <= '{now}')
"""
# Inits that may wait for sign-offs.
_INITS = """
SELECT DISTINCT r.rules, b.batch_start_time, NULL FROM batches b JOIN init_executions i ON i.batch_id = b.id
AND i.status = 'pending' JOIN sim_rules r ON r.version = i.runbook_version AND r.place = {init}
WHERE b.status = 'init_dispatched'
"""


def next_time(plant: Plant) -> datetime:
    """Return when something will be due that is not yet."""
    now = stored_text(plant.clock.now())
    times = [plant.state.look(query.format(now=now))[0][0] for query in _QUERIES]
    times += plant.messages.look(f"SELECT MIN(visible_at) FROM bus_messages WHERE visible_at > '{now}'")[0]
    ahead = [_instant(found) for found in times if found]
    ahead += _openings(plant)
    return min(ahead, default=plant.clock.now() + _IDLE)


def _openings(plant: Plant) -> list[datetime]:
    """Return when windows open that something may wait for, when sign-offs are taken, and when soaks are over."""
    now, found = plant.clock.now(), list[datetime | None]()
    declared = plant.state.look(_DECLARED.format(now=stored_text(now)))
    for text, start, pilots_done in declared + plant.state.look(_INITS.format(init=OF_INIT)):
        rules = orjson.loads(text)
        if (window := rules.get("window")) is not None:
            opening = next_opening(window, now)
            # People also look before: where an hour comes twice, some would take the first one for it.
            found += [opening, None if opening is None else opening - _BEFORE_OPENING]
        if start is not None and (begins := rules.get("approval", {}).get("from")) is not None:
            found.append(_instant(start) + timedelta(minutes=minutes_after(begins)))
        if pilots_done is not None and (soak := rules.get("rollout", {}).get("soak")) is not None:
            found.append(_instant(pilots_done) + parse_duration(soak))
    return [opening for opening in found if opening is not None and opening > now]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class Due:
    """Which processes have messages: the others need not look."""

    def __init__(self, plant: Plant) -> None:
        now = stored_text(plant.clock.now())
        topics = plant.messages.look(f"SELECT DISTINCT topic FROM bus_messages WHERE visible_at <= '{now}'")
        self._topics = {topic for (topic,) in topics}
        self.events = EVENTS_OF_ORCHESTRATOR.topic in self._topics
        self.results = RESULTS_OF_ORCHESTRATOR.topic in self._topics
        self.jobs = "worker-jobs" in self._topics

    def __bool__(self) -> bool:
        return bool(self._topics)
