"""Who goes through a door has nothing that keeps it: recomputed from rows and from the runbook (rules C, G9, K and S).

Gates that are stored are looked at by the triggers of all plays. This is about those that follow from what a phase
declares. Nothing here uses the rules that the system goes by.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from matoolkit.clock import Clock
from matoolkit.duration import parse_duration
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.doortriggers import OF_INIT, OVERTAKEN, PILOTS_YET
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry
from matoolkit.simulate.signatures import Signatures
from matoolkit.simulate.wallclocks import is_window_open
from matoolkit.store.dialect.types import stored_text

About = Mapping[str, Any]
_MINUTE = timedelta(minutes=1)
_INIT = f"""
SELECT r.rules, r.publisher, r.version, b.batch_start_time, (SELECT group_concat(id || ':' || epoch) FROM
 (SELECT id, epoch FROM batch_members WHERE batch_id = b.id AND status = 'active' ORDER BY id))
FROM batches b JOIN sim_rules r ON r.place = {OF_INIT} AND r.version =
 (SELECT MAX(runbook_version) FROM init_executions WHERE batch_id = b.id) WHERE b.id = {{batch}}
 AND EXISTS (SELECT 1 FROM init_executions i WHERE i.batch_id = b.id AND i.runbook_version = r.version
             AND i.step_index = 0 AND i.status = 'pending' AND i.retry_after IS NULL)
"""
# Of a phase that has begun for all: how many of its pilots are in it, and when the system noted that none is any more.
_PILOTS = f"""
SELECT {PILOTS_YET}, p.pilot_done_at FROM sim_begun JOIN phase_executions p ON p.id = phase WHERE phase = {{phase}}
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A member who could go on with a step, for all that stored gates say, and the phase of this step."""

    member: int
    batch: int
    index: int
    phase: int
    rules: str | None
    dispatched_at: str | None
    woken_at: str | None
    is_pilot: bool | None
    version: int
    start: str | None
    publisher: str | None


class Doors:
    """Looks at all who go through the doors of phases that declare gates."""

    def __init__(self, database: MemoryDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._signatures = Signatures()
        # Who holds a place, by phase: from the first job there until no step is open there.
        self._places: dict[int, set[int]] = {}
        # When phases came with a new version, and when people let batches begin after their T.
        self._created: dict[int, datetime] = {}
        self._released: dict[int, datetime] = {}

    def see(self, entries: Iterable[Entry]) -> None:
        """Look at what one event committed."""
        begun = []
        for entry in entries:
            self._signatures.see(entry, self._clock.now())
            if entry.what == "door":
                self._see_step(entry)
            elif entry.what == "phase_door" and entry.old == "pending":
                _demand(entry, _phase_begins)
                _demand(entry, self._late)
            elif entry.what == "budget_shut":
                _demand_exceeded(entry)
            elif entry.what == "phase" and (entry.old, entry.new) == ("pending", "dispatched"):
                begun.append(str(entry.id))
            elif entry.what == "new_phase" and entry.about["is_anew"]:
                self._created[entry.id] = self._clock.now()
            elif entry.what == "released" and entry.about["kind"] in ("late", "repeat"):
                self._released[entry.id] = self._clock.now()
        if begun and (overtaken := self._database.look(OVERTAKEN.format(ids=", ".join(begun)))):
            raise Violation(f"a phase began while an earlier one waits that was due (rule G9): {overtaken}")

    def will_let_in(self, waiting: Waiting, told: Collection[int]) -> bool:
        """Tell whether something that a phase declares keeps a member, and a person, time or others will let it go on.

        `told` are the members about whom a message is on its way: what it brings may let others in.
        """
        if waiting.rules is None:
            return False
        rules = orjson.loads(waiting.rules)
        return (
            self._window_opens(rules, waiting)
            or self._is_to_be_signed(rules, waiting)
            or self._pilots_go_first(rules, waiting, told)
            or self._is_full(rules, waiting, told)
        )

    def init_waits(self, batch: int, told: Collection[int]) -> bool:
        """Tell whether an init that could begin waits for people; who joins or leaves may void what they said."""
        if self._tells_of_others(batch, told):
            return True
        for rules, publisher, version, start, listed in self._database.look(_INIT.format(batch=batch)):
            return self._signatures.init_waits(
                {
                    "rules": orjson.loads(rules),
                    "publisher": publisher,
                    "version": version,
                    "start": start,
                    "batch": batch,
                    "listed": listed,
                    "at": stored_text(self._clock.now()),
                }
            )
        return False

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

    def _is_to_be_signed(self, rules: About, waiting: Waiting) -> bool:
        """Tell whether a member waits for sign-offs; one who was refused fails instead, and does not wait."""
        if waiting.index > 0 or "approval" not in rules:
            return False
        about = {
            "rules": rules,
            "publisher": waiting.publisher,
            "version": waiting.version,
            "start": waiting.start,
            "batch": waiting.batch,
            "phase": waiting.phase,
            "at": stored_text(self._clock.now()),
        }
        is_covered = self._signatures.is_covered(about, waiting.member)
        return not is_covered and not self._signatures.is_refused(about, waiting.member)

    def _pilots_go_first(self, rules: About, waiting: Waiting, told: Collection[int]) -> bool:
        rollout, here = rules.get("rollout", {}), {"batch": waiting.batch, "phase": waiting.phase}
        if waiting.index > 0 or waiting.is_pilot or not rollout.get("pilot_first"):
            return False
        for yet, done in self._database.look(_PILOTS.format(**here)):
            if yet or self._tells_of_others(waiting.batch, told):
                return True
            if done is None or "soak" not in rollout:
                return False
            over = _instant(done) + parse_duration(rollout["soak"])
            # The sweep wakes them when it is over, once.
            return over > self._clock.now() or waiting.woken_at is None or _instant(waiting.woken_at) < over
        return False

    def _is_full(self, rules: About, waiting: Waiting, told: Collection[int]) -> bool:
        most, here = rules.get("rollout", {}).get("at_once"), self._places.get(waiting.phase, set())
        if most is None or waiting.member in here:
            return False
        return len(here) >= most or self._tells_of_others(waiting.batch, told)

    def _tells_of_others(self, batch: int, told: Collection[int]) -> bool:
        named = ", ".join(map(str, told))
        mine = f"SELECT 1 FROM batch_members WHERE batch_id = {batch} AND id IN ({named})"
        return bool(told) and bool(self._database.look(mine))

    def _see_step(self, entry: Entry) -> None:
        about = entry.about
        places = self._places.setdefault(about["phase"], set())
        if entry.new == "dispatched":
            _demand(entry, _job_leaves)
            if about["index"] == 0 and "-attempt-" in about["job"]:
                _demand(entry, _member_begins)
                _demand(entry, self._unsigned)
            places.add(about["member"])
            most = about["rules"].get("rollout", {}).get("at_once")
            if most is not None and len(places) > most:
                raise Violation(f"{entry}: {sorted(places)} are in a phase that has {most} places (rule C5)")
        if about["open_here"] == 0:
            places.discard(about["member"])

    def _unsigned(self, about: About) -> str | None:
        if "approval" not in about["rules"]:
            return None
        if self._signatures.is_refused(about, about["member"]):
            return "somebody rejected it after it had joined (rule S3)"
        return None if self._signatures.is_covered(about, about["member"]) else "nobody signed for it (rule S3)"

    def _late(self, about: About) -> str | None:
        """Say that a phase begins later than it may (rule K5); manual ones have no calendar."""
        limit, due = about["rules"].get("max_delay"), about["due"]
        if limit is None or due is None or about["manual"] or about["let_in"]:
            return None
        counted = [_instant(due), self._created.get(about["phase"]), self._released.get(about["batch"])]
        last = max(at for at in counted if at is not None) + parse_duration(limit)
        return None if _instant(about["at"]) <= last else f"it is late after {last} (rule K5)"


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
    if not rollout.get("pilot_first") or about["is_pilot"] or not facts["is_for_all"]:
        return None
    if facts["pilots_yet"]:
        return f"{facts['pilots_yet']} pilots have not ended the phase (rule C2)"
    soak, ended = rollout.get("soak"), facts["pilots_ended"]
    if soak and ended and _instant(about["at"]) < _instant(ended) + parse_duration(soak):
        return f"the last pilot ended at {ended}, less than {soak} ago (rule C2)"
    return None


def _budgets(about: About) -> str | None:
    """Say that too many have failed in the phase or an earlier one (rules C2 to C4)."""
    return next((wrong for phase in about["facts"]["budgets"] if (wrong := _exceeded(phase)) is not None), None)


def _exceeded(phase: About) -> str | None:
    rollout, opened_for = phase["rules"]["rollout"], phase["opened_for"]
    limit, where = rollout.get("max_failures"), f"in phase {phase['phase']}"
    allowed = None if limit is None else _share(limit, phase["members"])
    if opened_for is not None:
        allowed = max(opened_for, allowed or 0)
    elif rollout.get("pilot_first"):
        may = 0 if limit is None else _share(limit, phase["pilots"])
        if phase["pilots_failed"] > may:
            return f"{phase['pilots_failed']} pilots failed {where}, and {may} may (rule C2)"
        if phase["pilots"] and not phase["pilots_yet"] and not phase["pilots_through"]:
            return f"no pilot went through {where} (rule C2)"
    if allowed is not None and phase["failed"] > allowed:
        return f"{phase['failed']} failed {where}, and {allowed} may (rule C3)"
    return None


def _demand_exceeded(entry: Entry) -> None:
    """Demand that too many have failed in a phase whose gate is shut, and that it stops what the runbook says."""
    rollout = entry.about["rules"]["rollout"]
    if _exceeded(entry.about) is None or (entry.new == "send") != ("on_exceeded" in rollout):
        raise Violation(f"{entry}, and not too many have failed (rules C3 and C4): {entry.about}")


def _share(limit: int | str, members: int) -> int:
    return limit if isinstance(limit, int) else members * int(limit.rstrip("%")) // 100


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
