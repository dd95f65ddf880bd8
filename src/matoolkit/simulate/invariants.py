"""What must hold after every event, whatever went wrong before it."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import orjson

from matoolkit.domain.states import NOTHING_TO_UNDO, UNFINISHED_BATCHES
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.recording import Entry


class Violation(Exception):
    """Something that must never happen."""


class Watch:
    """Looks at what was committed, one event after the other."""

    def __init__(self, *, is_apart: bool) -> None:
        self._published_by = "outbox" if is_apart else "bus_messages"
        # Every job, and what was true when it was dispatched.
        self.dispatched: dict[str, dict[str, Any]] = {}
        self.published: set[str] = set()
        self._compensated: set[tuple[object, ...]] = set()
        # Which version a batch followed when a member left it.
        self.removals: dict[tuple[int, int], int] = {}
        # Who came back in this event, with what it had in another batch.
        self._back: set[int] = set()

    def see(self, entries: Collection[Entry]) -> None:
        """Look at what one event committed."""
        self._back = {entry.id for entry in entries if _is_return(entry)}
        for entry in entries:
            if entry.new == "dispatched" and entry.what in _DISPATCHES:
                self._see_job(entry)
                _called_as_before(entry)
                _demand(entry, (not entry.about["send_gates"], "though a gate keeps every job"))
                _DISPATCHES[entry.what](entry)
            elif (entry.what, entry.new) in _MOVES:
                _MOVES[entry.what, entry.new](entry)
            elif entry.what == "outputs":
                self._see_outputs(entry)
            elif entry.what == "new_rollback":
                _compensation_begun(entry)
                self._see_compensation(entry)
            elif entry.what == "member" and entry.new == "removed":
                _membership_changed(entry)
                self.removals[entry.id, entry.about["epoch"]] = entry.about["version"]
            elif entry.what == self._published_by and entry.about["topic"] == "worker-jobs":
                self.published.add(entry.new or "")
        if unsent := self.dispatched.keys() - self.published:
            raise Violation(f"dispatched, but no job was published: {sorted(unsent)}")
        if unknown := self.published - self.dispatched.keys():
            raise Violation(f"a job was published, but nothing was dispatched: {sorted(unknown)}")

    def see_taken(self, jobs: Iterable[str]) -> None:
        """Look at the jobs that came to a worker."""
        if unknown := set(jobs) - self.dispatched.keys():
            raise Violation(f"a worker got jobs that nobody dispatched: {sorted(unknown)}")

    def _see_compensation(self, entry: Entry) -> None:
        """Demand that what a member did in an epoch is undone once for each cause."""
        about = entry.about
        step = (about["member"], about["epoch"], about["cause"], about["index"])
        if step in self._compensated:
            raise Violation(f"rollback {entry.id} undoes once more what was undone: {about}")
        self._compensated.add(step)

    def _see_job(self, entry: Entry) -> None:
        job = entry.about["job"]
        if job in self.dispatched:
            raise Violation(f"{job} was dispatched twice")
        self.dispatched[job] = entry.about

    def _see_outputs(self, entry: Entry) -> None:
        """Demand that members get outputs of their own only, and none of an epoch that is over.

        Scripted workers put out the name of their job. A member that comes back brings outputs of another batch.
        """
        before, after, about = orjson.loads(entry.old or "{}"), orjson.loads(entry.new or "{}"), entry.about
        for name, job in after.items():
            if before.get(name) == job or (giver := self.dispatched.get(job)) is None:
                continue
            is_brought = giver["member"] != entry.id or entry.id in self._back
            if giver["key"] != about["key"] or not (is_brought or giver["epoch"] == about["epoch"]):
                raise Violation(f"{entry}: {job} is of {giver['key']} in epoch {giver['epoch']}, not {about}")


def _is_return(entry: Entry) -> bool:
    return (entry.what, entry.old, entry.new) == ("member", "removed", "active")


def _demand(entry: Entry, *conditions: tuple[bool, str]) -> None:
    for holds, wrong in conditions:
        if not holds:
            raise Violation(f"{entry.what} {entry.id} ({entry.about['job']}) was dispatched {wrong}: {entry.about}")


def _called_as_before(entry: Entry) -> None:
    about = entry.about
    is_first = "-attempt-" in about["job"]
    _demand(entry, (is_first or about["params"] == about["old_params"], "again, with other parameters"))


def _step_dispatched(entry: Entry) -> None:
    about = entry.about
    begins = about["index"] == 0 and "-attempt-" in about["job"]
    _demand(
        entry,
        (about["member_status"] == "active", f"though its member is {about['member_status']}"),
        (about["epoch"] == about["member_epoch"], "though its member has started all over"),
        (about["batch_status"] in UNFINISHED_BATCHES, f"though its batch is {about['batch_status']}"),
        (about["phase_status"] == "dispatched", f"though its phase is {about['phase_status']}"),
        (about["before"] == 0, "before the steps that come first have succeeded"),
        (about["earlier"] == 0, "before an earlier phase was done"),
        (not (begins and about["unexpanded"]), "before an earlier phase that is due was begun"),
        (about["undoing"] == 0, "while its member is being compensated"),
        (about["excluded"] == 0, "though a person keeps its member out"),
        (not (begins and about["held"]), "as the first of its phase, though the batch is held"),
        (not (begins and about["start_gates"]), "as the first of its phase, though a gate is shut"),
        (not begins or about["batch_status"] == "active", "as the first of its phase, though init is not done"),
        (_saw_outputs(about), "with parameters that are not what its member has"),
    )


def _saw_outputs(about: dict[str, object]) -> bool:
    if "-attempt-" not in str(about["job"]):
        return True
    params, outputs = orjson.loads(str(about["params"])), orjson.loads(str(about["outputs"]))
    return "Output" not in params or params["Seen"] == outputs.get(params["Output"])


def _init_dispatched(entry: Entry) -> None:
    about = entry.about
    _demand(
        entry,
        (about["batch_status"] == "init_dispatched", f"though its batch is {about['batch_status']}"),
        (not (about["index"] == 0 and "-attempt-" in about["job"] and about["start_gates"]), "though a gate is shut"),
        (about["before"] == 0, "before the steps that come first have succeeded"),
    )


def _rollback_dispatched(entry: Entry) -> None:
    about = entry.about
    _demand(
        entry,
        (about["before"] == 0, "before the steps that come first have ended"),
        (about["others"] == 0, "beside another sequence of its member"),
    )


def _step_cancelled(entry: Entry) -> None:
    about = entry.about
    is_wanted = about["member_status"] == "active" and about["epoch"] == about["member_epoch"]
    if is_wanted and about["phase_status"] not in ("superseded", "cancelled"):
        raise Violation(f"step {entry.id} was cancelled, though its member, phase and batch go on: {about}")


def _rollback_cancelled(entry: Entry) -> None:
    if entry.about["begun"]:
        raise Violation(f"rollback {entry.id} was cancelled, though its sequence has begun: {entry.about}")


def _phase_begun(entry: Entry) -> None:
    about = entry.about
    # An ended phase begins again for a late joiner, or by a person's retry.
    if entry.old == "pending" and (about["held"] or about["start_gates"] or about["batch_status"] != "active"):
        raise Violation(f"phase {entry.id} began in a batch that is not ready for it: {about}")


def _version_changed(entry: Entry) -> None:
    if entry.about["held"]:
        raise Violation(f"phase {entry.id} was superseded, though its batch is held: {entry.about}")


def _membership_changed(entry: Entry) -> None:
    about = entry.about
    # A person's retry changes no membership.
    if about["held"] and about.get("by") in (None, "scheduler") and entry.old != "failed":
        raise Violation(f"{entry}, though batch {about['batch']} is held: {about}")
    if about["excluded"] and entry.new == "active":
        raise Violation(f"{entry}, though a person keeps it out: {about}")


def _phase_ended(entry: Entry) -> None:
    about = entry.about
    if about["open"] or not about["expanded"] or bool(about["through"]) != (entry.new == "completed"):
        raise Violation(f"phase {entry.id} ended as {entry.new}, which it is not: {about}")


def _batch_ended(entry: Entry) -> None:
    about = entry.about
    # An init that failed ends a batch whose phases never began.
    if entry.old == "active" and (about["phases"] or about["waiting"] or about["undoing"]):
        raise Violation(f"batch {entry.id} ended as {entry.new}, and not all in it has: {about}")
    if entry.new == "completed" and not about["active"]:
        raise Violation(f"batch {entry.id} is completed, and nobody came through: {about}")


_MOVES: dict[tuple[str, str | None], Callable[[Entry], None]] = {
    ("step", "cancelled"): _step_cancelled,
    ("rollback", "cancelled"): _rollback_cancelled,
    ("phase", "dispatched"): _phase_begun,
    ("phase", "superseded"): _version_changed,
    ("phase", "completed"): _phase_ended,
    ("phase", "failed"): _phase_ended,
    ("batch", "completed"): _batch_ended,
    ("batch", "failed"): _batch_ended,
    ("member", "active"): _membership_changed,
    ("new_member", "active"): _membership_changed,
}


_LEFT_AS = {"member_removed": "removed", "step_failed": "failed"}


def _compensation_begun(entry: Entry) -> None:
    about = entry.about
    if about["member_status"] != _LEFT_AS[about["cause"]] or about["epoch"] != about["member_epoch"]:
        raise Violation(f"rollback {entry.id} undoes what its member still needs: {about}")


_DISPATCHES = {"step": _step_dispatched, "init": _init_dispatched, "rollback": _rollback_dispatched}


# If a person reopened a batch for others, a member that has finished there may be in another batch.
_HAS_WORK = """
(EXISTS (SELECT 1 FROM step_executions s WHERE s.batch_member_id = m.id
         AND s.status IN ('pending', 'dispatched', 'polling'))
 OR EXISTS (SELECT 1 FROM phase_executions p WHERE p.batch_id = b.id AND p.status = 'pending'))
"""


def nobody_twice(database: MemoryDatabase) -> None:
    """Demand that nobody is active in two unfinished batches of a runbook."""
    unfinished = ", ".join(f"'{status}'" for status in sorted(UNFINISHED_BATCHES))
    twice = database.look(
        "SELECT m.member_key_fold, COUNT(*) FROM batch_members m JOIN batches b ON b.id = m.batch_id "
        f"WHERE m.status = 'active' AND b.status IN ({unfinished}) AND (b.reopened_at IS NULL OR {_HAS_WORK}) "
        "GROUP BY b.runbook_name, m.member_key_fold HAVING COUNT(*) > 1"
    )
    if twice:
        raise Violation(f"active in two unfinished batches: {twice}")


_OUTPUT = re.compile(r"Out([0-9][a-c])")


def outputs_are_found(database: MemoryDatabase, entries: Iterable[Entry]) -> None:
    """Demand that no step failed because of a missing output that an earlier step of its member and version gave."""
    for entry in entries:
        if entry.what != "step" or entry.about["error"] != "UnresolvedVariable" or entry.new != "failed":
            continue
        for step in _OUTPUT.findall(entry.about["message"]):
            given = database.look(
                "SELECT s.id FROM step_executions s JOIN phase_executions p ON p.id = s.phase_execution_id "
                f"WHERE s.step_name = 'step-{step}' AND s.batch_member_id = {entry.about['member']} "
                f"AND s.epoch = {entry.about['epoch']} AND s.status = 'succeeded' AND s.missing_outputs_json IS NULL "
                "AND p.runbook_version = (SELECT mine.runbook_version FROM phase_executions mine "
                f"WHERE mine.id = {entry.about['phase']})"
            )
            if given:
                raise Violation(f"step {entry.id} failed for an output that step {given[0][0]} gave: {entry.about}")


def cities_read(database: MemoryDatabase) -> dict[str, str]:
    """Return where people are according to the last reading of the source, by key."""
    latest = "SELECT data_table_name FROM runbooks WHERE read_at IS NOT NULL ORDER BY read_at DESC, version DESC"
    tables = database.look(f"{latest} LIMIT 1")
    return {
        key: city for (table,) in tables for key, city in database.look(f"SELECT _member_key_fold, city FROM {table}")
    }


def rows_were_taken(database: MemoryDatabase, batch: int, keys: Iterable[str], *readings: Mapping[str, str]) -> None:
    """Demand that members who were just retried have the row of the last reading, or of one made during the retry."""
    named = ", ".join(f"'{key}'" for key in keys)
    members = f"SELECT member_key_fold, json_extract(data_json, '$.city') FROM batch_members WHERE batch_id = {batch}"
    for key, city in database.look(f"{members} AND member_key IN ({named})"):
        if all(city != reading.get(key) for reading in readings):
            raise Violation(f"{key} was retried in batch {batch} with {city}, and its row says {readings[0].get(key)}")


_OPEN = "('pending', 'dispatched', 'polling')"
_COUNTED = "SELECT phase_execution_id, step_index, status, COUNT(*) FROM step_executions GROUP BY 1, 2, 3"
_STEP_COUNTS = "SELECT phase_execution_id, step_index, status, steps FROM step_counts WHERE steps <> 0"
_MEMBERS = f"""
SELECT m.batch_id, (m.caught_up_at IS NOT NULL) + 2 * (
        EXISTS (SELECT 1 FROM rollback_executions r WHERE r.batch_member_id = m.id AND r.status IN {_OPEN})
        OR m.status = 'removed' AND m.seen_off_at IS NULL AND m.remove_reason NOT IN ({{reasons}})
    ) + 4 * (m.undone_at IS NOT NULL) + 8 * (m.status = 'failed') + 16 * (m.status = 'removed'), COUNT(*)
FROM batch_members m GROUP BY 1, 2
"""
_MEMBER_COUNTS = "SELECT batch_id, counted_as, members FROM member_counts WHERE members <> 0"
# Who has an open step in a phase has its last step open.
_AT_WORK = f"""
SELECT p.id, COUNT(DISTINCT s.batch_member_id), (
    SELECT SUM(c.steps) FROM step_counts c
    WHERE c.phase_execution_id = p.id AND c.status IN {_OPEN} AND c.step_index = MAX(s.step_index)
) AS counted
FROM phase_executions p JOIN step_executions s ON s.phase_execution_id = p.id AND s.status IN {_OPEN}
WHERE p.status = 'dispatched' GROUP BY p.id HAVING COUNT(DISTINCT s.batch_member_id) <> counted
"""


def counts_agree(database: MemoryDatabase) -> None:
    """Demand that what is counted as it changes is what counting finds."""
    reasons = ", ".join(f"'{reason}'" for reason in sorted(NOTHING_TO_UNDO))
    pairs = {"steps": (_COUNTED, _STEP_COUNTS), "members": (_MEMBERS.format(reasons=reasons), _MEMBER_COUNTS)}
    for what, (there, counted) in pairs.items():
        if (found := sorted(database.look(there))) != (stored := sorted(database.look(counted))):
            raise Violation(f"{what} are counted as {stored}, and are {found}")
    if wrong := database.look(_AT_WORK):
        raise Violation(f"members have open steps in a phase whose last step they have ended: {wrong}")
