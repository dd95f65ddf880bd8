"""Who goes through a door has nothing that keeps it: recomputed from rows and from the runbook (rules C, G9 and K).

Gates that are stored are looked at by the triggers of all plays. This is about those that follow from what a phase
declares. Nothing here uses the rules that the system goes by.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from matoolkit.clock import Clock
from matoolkit.duration import parse_duration
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.doortriggers import OVERTAKEN
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry
from matoolkit.simulate.wallclocks import is_window_open

About = Mapping[str, Any]
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A member who could go on with a step, for all that stored gates say, and the phase of this step."""

    member: int | None
    index: int
    phase: int
    rules: str | None
    dispatched_at: str | None
    woken_at: str | None
    is_pilot: bool | None


class Doors:
    """Looks at all who go through the doors of phases that declare gates."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # Who holds a place, by phase: from the first job there until no step is open there.
        self._places: dict[int, set[int]] = {}

    def see(self, entries: Iterable[Entry]) -> None:
        """Look at what one event committed."""
        begun = []
        for entry in entries:
            if entry.what == "door":
                self._see_step(entry)
            elif entry.what == "phase_door":
                _demand(entry, _phase_begins)
            elif entry.what == "phase" and (entry.old, entry.new) == ("pending", "dispatched"):
                begun.append(str(entry.id))
        if begun and (overtaken := self._database.look(OVERTAKEN.format(ids=", ".join(begun)))):
            raise Violation(f"a phase began while an earlier one waits that was due (rule G9): {overtaken}")

    def will_let_in(self, waiting: Waiting) -> bool:
        """Tell whether something that a phase declares keeps a member, and time or others will let it go on."""
        if waiting.rules is None:
            return False
        rules = orjson.loads(waiting.rules)
        return self._window_opens(rules, waiting)

    def _window_opens(self, rules: About, waiting: Waiting) -> bool:
        """Tell whether a window is shut, or was since those in its phase were looked at."""
        window, now = rules.get("window"), self._clock.now()
        if window is None or (waiting.index > 0 and window.get("binds") != "every_job"):
            return False
        looked_at = waiting.woken_at or waiting.dispatched_at
        if looked_at is None:
            return True
        at = _instant(looked_at)
        while at < now:
            if not is_window_open(window, at):
                return True
            at += _MINUTE
        return not is_window_open(window, now)

    def _see_step(self, entry: Entry) -> None:
        about = entry.about
        places = self._places.setdefault(about["phase"], set())
        if entry.new == "dispatched":
            _demand(entry, _job_leaves)
            if about["index"] == 0 and "-attempt-" in about["job"]:
                _demand(entry, _member_begins)
            places.add(about["member"])
            most = about["rules"].get("rollout", {}).get("at_once")
            if most is not None and len(places) > most:
                raise Violation(f"{entry}: {sorted(places)} are in a phase that has {most} places (rule C5)")
        if about["open_here"] == 0:
            places.discard(about["member"])


def _demand(entry: Entry, rule: Callable[[About], str | None]) -> None:
    if (wrong := rule(entry.about)) is not None:
        raise Violation(f"{entry.what} {entry.id} went through a door, though {wrong}: {entry.about}")


def _phase_begins(about: About) -> str | None:
    return _window(about, every_job=False)


def _job_leaves(about: About) -> str | None:
    return _window(about, every_job=True)


def _member_begins(about: About) -> str | None:
    return _window(about, every_job=False) or _pilots(about) or _budgets(about)


def _window(about: About, *, every_job: bool) -> str | None:
    window = about["rules"].get("window")
    if window is None or (every_job and window.get("binds") != "every_job"):
        return None
    return None if is_window_open(window, _instant(about["at"])) else f"its window {window} is shut (rule K2)"


def _pilots(about: About) -> str | None:
    rollout, facts = about["rules"].get("rollout", {}), about["facts"]
    if not rollout.get("pilot_first") or about["is_pilot"]:
        return None
    if facts["pilots_yet"]:
        return f"{facts['pilots_yet']} pilots have not ended the phase (rule C2)"
    soak, ended = rollout.get("soak"), facts["pilots_ended"]
    if soak and ended and _instant(about["at"]) < _instant(ended) + parse_duration(soak):
        return f"the last pilot ended at {ended}, less than {soak} ago (rule C2)"
    return None


def _budgets(about: About) -> str | None:
    for phase in about["facts"]["failed"]:
        allowed = _share(phase["rules"]["rollout"]["max_failures"], phase["members"])
        if phase["failed"] > allowed and not phase["opened"]:
            return f"{phase['failed']} failed in phase {phase['phase']}, and {allowed} may (rule C3)"
    return None


def _share(limit: int | str, members: int) -> int:
    return limit if isinstance(limit, int) else members * int(limit.rstrip("%")) // 100


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
