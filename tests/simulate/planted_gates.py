"""Bugs about gates, to be planted one at a time: the simulation must find each of them (rules C, G, K and S)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text, update

from matoolkit.admin import gating, signing
from matoolkit.announcing import doors, places
from matoolkit.announcing import gatekeeping as announced_gates
from matoolkit.announcing import signoffs as announced_sign_offs
from matoolkit.domain import cohorts, gates, signoff, windows
from matoolkit.domain import progress as progress_rules
from matoolkit.domain.doors import Door
from matoolkit.domain.signoff import SignOffs
from matoolkit.domain.wallclock import first_reached
from matoolkit.ids import Kind
from matoolkit.orchestrator import agenda as agenda_module
from matoolkit.orchestrator import budgets, consequences, dispatching, progress, standing
from matoolkit.orchestrator import waking as waking_module
from matoolkit.scheduler import due_phases, lateness
from matoolkit.scheduler import windows as scheduler_windows
from matoolkit.store import Transaction
from matoolkit.store.cohorts import allow_failures, note_pilots_done
from matoolkit.store.executions import TABLES
from matoolkit.store.gates import gates_in_force
from matoolkit.store.moves import move_steps
from matoolkit.store.narrow_members import active_members
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.signoffs import signatures_of_batches
from matoolkit.store.waking import members_to_wake

from .planted import Patch, Plant, nothing


def gates_are_read_before_the_lock(patch: Patch) -> None:
    """A pile decides by the gates that the pile before it has read."""
    known: list[list[Any]] = [[]]

    def of_the_pile_before(tx: Transaction, at: Any) -> Any:
        known.append(gates_in_force(tx, at))
        return known.pop(0)

    patch.setattr(agenda_module, "gates_in_force", of_the_pile_before)


def retries_polls_and_compensations_pass_the_send_door(patch: Patch) -> None:
    keeps = dispatching.Departing.keeps

    def not_again(self: Any, state: Any, definition: Any, reason: Any, key: Any) -> bool:
        is_first_of_a_step = reason == "attempt" and self._kind is Kind.STEP
        return is_first_of_a_step and keeps(self, state, definition, reason, key)

    patch.setattr(dispatching.Departing, "keeps", not_again)


def jobs_taken_back_leave_again_under_the_same_attempt(patch: Patch) -> None:
    def again(tx: Transaction, kind: Any, moves: Any, at: Any = None) -> Any:
        made = move_steps(tx, kind, moves, at)
        table = TABLES[kind]
        for move in moves:
            tx.execute(update(table).where(table.c.id == move.id).values(attempt=table.c.attempt - 1))
        return made

    patch.setattr(announced_gates, "move_steps", again)


def jobs_stay_where_workers_find_them(patch: Patch) -> None:
    """A pause shuts the gate, and leaves what has left already."""
    patch.setattr(announced_gates, "take_back", lambda *_: announced_gates.TakenBack())


def compensations_are_not_woken(patch: Patch) -> None:
    """Opening announces phases again, as the end of a hold does, and nobody who is compensated."""

    def only_active(tx: Transaction, batch_id: int, *, after: int, limit: int) -> Any:
        active = {member.id for member in active_members(tx, batch_id)}
        return [number for number in members_to_wake(tx, batch_id, after=after, limit=limit) if number in active]

    patch.setattr(waking_module, "members_to_wake", only_active)


def nothing_is_woken(patch: Patch) -> None:
    """A gate is opened, and nobody is told."""
    patch.setattr(announced_gates, "batches_behind", lambda *_: [])


def late_joiners_pass_the_doors(patch: Patch) -> None:
    """Who catches up begins earlier phases whatever gate is shut."""
    passing: set[int] = set()
    keeps = dispatching.Departing.keeps

    def next_of(situation: Any) -> Any:
        is_late = situation.work.joined_no > 0 and any(step.step_index == 0 for step in situation.steps)
        found = progress_rules.next_of(replace(situation, gates=gates.Gates()) if is_late else situation)
        if is_late and isinstance(found, progress_rules.Do):
            passing.add(found.id)
        return found

    def not_of_joiners(self: Any, state: Any, definition: Any, reason: Any, key: Any) -> bool:
        is_passing = self._kind is Kind.STEP and state.id in passing
        return not is_passing and keeps(self, state, definition, reason, key)

    patch.setattr(progress, "next_of", next_of)
    patch.setattr(dispatching.Departing, "keeps", not_of_joiners)


def a_later_phase_passes_one_that_waits(patch: Patch) -> None:
    """Rule G9: each phase looks at its own gates alone."""

    def kept(in_force: Any, due: Any) -> Any:
        alone = [gates.kept_phases(in_force, [phase]) for phase in due]
        return {number: whys for found in alone for number, whys in found.items()}

    patch.setattr(due_phases, "kept_phases", kept)


def what_stopped_is_left_where_workers_find_it(patch: Patch) -> None:
    """A freeze begins, and what had left before stays where it is."""
    patch.setattr(announced_gates, "_taken_back", lambda *_: announced_gates.TakenBack())


def sign_offs_outlive_a_reschedule(patch: Patch) -> None:
    _void(patch, lambda asked, one: replace(one, batch_start_time=asked.start))


def sign_offs_outlive_a_version(patch: Patch) -> None:
    """They are found by the name of their phase, whatever version it is of."""
    stored = signatures_of_batches

    def of_any_version(tx: Transaction, batch_ids: Any) -> Any:
        named: dict[tuple[int, str], set[int]] = {}
        for phase in phases_of_batches(tx, batch_ids):
            named.setdefault((phase.batch_id, phase.phase_name), set()).add(phase.id)
        given = stored(tx, batch_ids)
        others = [
            replace(one, phase_execution_id=other, used_at=None)
            for one in given
            for same in named.values()
            if one.phase_execution_id in same
            for other in same - {one.phase_execution_id}
        ]
        return [*given, *others]

    patch.setattr(announced_sign_offs, "signatures_of_batches", of_any_version)
    _void(patch, lambda asked, one: replace(one, runbook_version=asked.version))


def sign_offs_do_not_grow_old(patch: Patch) -> None:
    _void(patch, lambda asked, one: replace(one, signed_at=asked.at))


def _void(patch: Patch, as_if: Any) -> None:
    voided = SignOffs.voided
    patch.setattr(SignOffs, "voided", lambda asked, one: voided(asked, as_if(asked, one)))


def sign_offs_cover_who_joins_later(patch: Patch) -> None:
    patch.setattr(signoff, "lets_in", lambda *_: None)


def a_sign_off_of_an_old_list_is_taken(patch: Patch) -> None:
    patch.setattr(signing, "is_same", lambda *_: True)
    patch.setattr(signing, "refuse_twice", nothing)


def rejections_do_not_matter(patch: Patch) -> None:
    patch.setattr(SignOffs, "rejection", None)


def publishers_sign_what_they_may_not(patch: Patch) -> None:
    patch.setattr(signing, "refuse_signer", nothing)


def one_sign_off_is_enough(patch: Patch) -> None:
    covered_by = signoff.covered_by
    patch.setattr(signoff, "covered_by", lambda given, _: covered_by(given, 1))


def sign_offs_are_taken_after_their_time(patch: Patch) -> None:
    patch.setattr(SignOffs, "is_over", False)


def pilots_do_not_go_first(patch: Patch) -> None:
    patch.setattr(gates, "_DERIVED", tuple(one for one in gates._DERIVED if one is not cohorts.pilots_first))  # noqa: SLF001


_FIRST_PILOT = """
SELECT MIN(ended) FROM (SELECT MAX(s.completed_at) AS ended FROM step_executions s JOIN batch_members m
ON m.id = s.batch_member_id AND m.epoch = s.epoch WHERE s.phase_execution_id = :phase AND m.is_pilot
GROUP BY m.id HAVING COUNT(*) = COUNT(s.completed_at))
"""


def the_soak_is_counted_from_the_first_pilot(patch: Patch) -> None:
    note = note_pilots_done

    def from_the_first(tx: Transaction, phase_ids: Any, at: Any) -> None:
        for number in phase_ids:
            found = tx.values(text(_FIRST_PILOT).bindparams(phase=number))[0] if at is not None else None
            note(tx, [number], at if found is None else datetime.fromisoformat(found).replace(tzinfo=UTC))

    patch.setattr(budgets, "note_pilots_done", from_the_first)


def percentages_are_of_those_who_are_left(patch: Patch) -> None:
    def of_those_left(name: str, rollout: Any, members: int, tally: Any, opened_for: Any = None) -> Any:
        return cohorts.too_many(name, rollout, max(members - tally.failed, 0), tally, opened_for)

    patch.setattr(budgets, "too_many", of_those_left)


def budgets_are_read_when_all_have_gone_on(patch: Patch) -> None:
    patch.setattr(consequences, "watch_budgets", nothing)
    patch.setattr(budgets, "_shut_exceeded", nothing)


def a_budget_that_is_opened_allows_what_was_asked_for_in_all(patch: Patch) -> None:
    """Rule C4: so many more than have failed, not so many."""

    def allow(tx: Transaction, gate: Any, more: int) -> None:
        allow_failures(tx, gate.id, more)

    patch.setattr(gating, "_allow", allow)


def budgets_that_stop_do_not(patch: Patch) -> None:
    shut = budgets._shut  # noqa: SLF001
    patch.setattr(budgets, "_shut", lambda agenda, phase, _, reason: shut(agenda, phase, Door.START, reason))


def places_are_not_counted(patch: Patch) -> None:
    patch.setattr(gates, "_DERIVED", tuple(one for one in gates._DERIVED if one is not cohorts.so_many_at_once))  # noqa: SLF001


def a_retry_needs_no_place(patch: Patch) -> None:
    has_place = places.Holders.has_place
    patch.setattr(places.Holders, "has_place", lambda self, step: step.step_index > 0 or has_place(self, step))


def nobody_is_woken_when_a_window_opens(patch: Patch) -> None:
    patch.setattr(scheduler_windows, "_wake", nothing)


def an_hour_that_comes_twice_opens_a_window_the_first_time(patch: Patch) -> None:
    patch.setattr(windows, "last_reached", first_reached)
    patch.setattr(windows, "opening", windows.opening.__wrapped__)


def windows_that_bind_every_job_bind_who_begins(patch: Patch) -> None:
    hours_of = windows.hours_of

    def only_the_start(*asked: Any) -> Any:
        found = hours_of(*asked)
        return None if found is None else replace(found, binds=windows.Binds.START)

    for module in (doors, scheduler_windows):
        patch.setattr(module, "hours_of", only_the_start)


def phases_begin_however_late(patch: Patch) -> None:
    patch.setattr(lateness, "is_too_late", lambda *_: False)


def polls_run_out_while_gates_keep_them(patch: Patch) -> None:
    """Rule G7."""
    patch.setattr(standing, "time_kept", lambda *_: timedelta())


GATES: tuple[Plant, ...] = (
    gates_are_read_before_the_lock,
    retries_polls_and_compensations_pass_the_send_door,
    jobs_taken_back_leave_again_under_the_same_attempt,
    jobs_stay_where_workers_find_them,
    compensations_are_not_woken,
    nothing_is_woken,
)

# What phases declare, and the people who let them begin.
DECLARED: tuple[Plant, ...] = (
    late_joiners_pass_the_doors,
    a_later_phase_passes_one_that_waits,
    what_stopped_is_left_where_workers_find_it,
    sign_offs_outlive_a_reschedule,
    sign_offs_outlive_a_version,
    sign_offs_do_not_grow_old,
    sign_offs_cover_who_joins_later,
    a_sign_off_of_an_old_list_is_taken,
    rejections_do_not_matter,
    publishers_sign_what_they_may_not,
    one_sign_off_is_enough,
    sign_offs_are_taken_after_their_time,
    pilots_do_not_go_first,
    the_soak_is_counted_from_the_first_pilot,
    percentages_are_of_those_who_are_left,
    budgets_are_read_when_all_have_gone_on,
    a_budget_that_is_opened_allows_what_was_asked_for_in_all,
    budgets_that_stop_do_not,
    places_are_not_counted,
    a_retry_needs_no_place,
    nobody_is_woken_when_a_window_opens,
    an_hour_that_comes_twice_opens_a_window_the_first_time,
    windows_that_bind_every_job_bind_who_begins,
    phases_begin_however_late,
    polls_run_out_while_gates_keep_them,
)
