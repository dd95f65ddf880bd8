"""The simulation finds bugs: each of these is planted alone, and must be found within so many seeds."""

import pytest

from matoolkit.announcing import gatekeeping
from matoolkit.simulate import world
from matoolkit.simulate.many_seeds import play
from matoolkit.simulate.plans import Plan

from . import planted, planted_gates, planted_redelivery

WITHIN = 100

# The first seed that found each when this was written: it is tried first, for speed.
FOUND_BY: dict[planted.Plant, int] = {
    planted.holds_hold_nobody: 9,
    planted.init_does_not_gate_phases: 1,
    planted.a_job_that_is_out_is_not_waited_for: 1,
    planted.phases_are_not_gone_through_in_order: 1,
    planted.messages_leave_before_the_commit: 1,
    planted.messages_leave_after_the_commit: 33,
    planted.expansion_is_not_idempotent: 1,
    planted.only_the_first_slice_is_expanded: 1,
    planted.phases_end_with_open_steps: 1,
    planted.rollback_steps_are_sent_all_at_once: 2,
    planted.cancelling_changes_only_the_status: 2,
    planted.parameters_are_resolved_when_the_phase_is_due: 1,
    planted.who_lacks_a_variable_is_skipped: 3,
    planted.movers_join_while_their_job_runs: 5,
    planted.nobody_asks_for_retries_that_are_due: 1,
    planted.nobody_asks_for_polls_that_are_due: 1,
    planted.lost_jobs_are_not_looked_for: 2,
    planted.failed_members_keep_their_open_steps: 2,
    planted.outputs_are_not_kept: 1,
    planted.members_who_wait_for_init_are_not_woken: 8,
    planted.a_phase_is_due_and_nobody_is_told: 2,
    planted.init_steps_are_sent_all_at_once: 1,
    planted.checks_do_not_look_at_the_member: 53,
    planted.members_are_not_looked_at_before_dispatch: 21,
    planted.messages_are_done_with_before_they_are_handled: 12,
    planted.the_lease_is_not_confirmed: 2,
    planted.results_are_matched_without_their_attempt: 14,
    planted.a_late_removal_is_not_ignored: 8,
    planted.leavers_are_not_waited_for: 2,
    planted.jobs_that_a_worker_has_are_taken_back: 2,
    planted.jobs_that_may_have_been_sent_are_taken_back: 49,
    planted.returners_cut_off_a_compensation_that_has_begun: 38,
    planted.a_retry_runs_the_version_that_failed: 4,
    planted.ignore_skips_what_was_never_done: 3,
    planted.removals_are_counted_one_tick_at_a_time: 41,
    planted.a_retry_keeps_the_row_that_failed: 266,
    planted.nobody_remembers_who_was_taken_before: 1,
    planted.the_source_brings_back_who_was_undone: 159,
    planted.who_is_excluded_joins: 24,
    planted.nothing_is_undone_in_a_cancelled_batch: 39,
    planted.an_undo_takes_the_version_that_the_batch_follows_later: 201,
}


# With the bus apart: handlers that are not safe when a message comes again.
FOUND_APART_BY: dict[planted.Plant, int] = {
    planted_redelivery.answers_count_as_often_as_they_come: 1,
    planted_redelivery.checks_send_as_often_as_they_come: 1,
    planted_redelivery.an_init_is_created_by_every_request: 1,
    planted_redelivery.leavers_are_seen_off_as_often_as_it_is_said: 1,
    planted_redelivery.joiners_are_caught_up_as_often_as_it_is_said: 2,
    planted_redelivery.phases_begin_as_often_as_it_is_said: 2,
    planted_redelivery.old_announcements_replace_newer_ones: 7,
    planted_redelivery.messages_leave_the_outbox_before_they_are_sent: 2,
    planted_redelivery.nobody_sends_what_a_dead_process_left: 1,
    planted.outputs_of_an_earlier_epoch_are_kept: 71,
}


# In plays in which people pause and resume.
FOUND_BY_PAUSING: dict[planted.Plant, int] = {
    planted_gates.gates_are_read_before_the_lock: 3,
    planted_gates.retries_polls_and_compensations_pass_the_send_door: 7,
    planted_gates.jobs_taken_back_leave_again_under_the_same_attempt: 7,
    planted_gates.jobs_stay_where_workers_find_them: 7,
    planted_gates.compensations_are_not_woken: 19,
    planted_gates.nothing_is_woken: 23,
}


# In plays whose runbooks declare gates: every fifth.
FOUND_BY_DECLARING: dict[planted.Plant, int] = {
    planted_gates.late_joiners_pass_the_doors: 15,
    planted_gates.a_later_phase_passes_one_that_waits: 5,
    planted_gates.what_stopped_is_left_where_workers_find_it: 75,
    planted_gates.sign_offs_outlive_a_reschedule: 350,
    planted_gates.sign_offs_outlive_a_version: 25,
    planted_gates.sign_offs_do_not_grow_old: 165,
    planted_gates.sign_offs_cover_who_joins_later: 75,
    planted_gates.a_sign_off_of_an_old_list_is_taken: 15,
    planted_gates.rejections_do_not_matter: 5,
    planted_gates.publishers_sign_what_they_may_not: 5,
    planted_gates.one_sign_off_is_enough: 25,
    planted_gates.sign_offs_are_taken_after_their_time: 5,
    planted_gates.pilots_do_not_go_first: 5,
    planted_gates.the_soak_is_counted_from_the_first_pilot: 50,
    planted_gates.percentages_are_of_those_who_are_left: 250,
    planted_gates.budgets_are_read_when_all_have_gone_on: 5,
    planted_gates.a_budget_that_is_opened_allows_what_was_asked_for_in_all: 5,
    planted_gates.budgets_that_stop_do_not: 10,
    planted_gates.places_are_not_counted: 5,
    planted_gates.a_retry_needs_no_place: 355,
    planted_gates.nobody_is_woken_when_a_window_opens: 50,
    planted_gates.an_hour_that_comes_twice_opens_a_window_the_first_time: 260,
    planted_gates.windows_that_bind_every_job_bind_who_begins: 260,
    planted_gates.phases_begin_however_late: 70,
    planted_gates.polls_run_out_while_gates_keep_them: 755,
}


def test_every_planted_bug_is_looked_for() -> None:
    assert set(FOUND_BY_DECLARING) == set(planted_gates.DECLARED)
    assert set(FOUND_BY_PAUSING) == set(planted_gates.GATES)
    assert set(FOUND_BY) == set(planted.PLANTED)
    assert set(FOUND_APART_BY) == set(planted_redelivery.REDELIVERY)


@pytest.mark.parametrize("plant", planted.PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: planted.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    seeds = (FOUND_BY[plant], *range(1, WITHIN))
    assert any(play(Plan(seed)).violation for seed in seeds)


@pytest.mark.parametrize("plant", planted_gates.GATES, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_a_gate_is_found(plant: planted.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    seeds = (FOUND_BY_PAUSING[plant], *range(3, 4 * WITHIN, 4))
    assert any(play(Plan(seed)).violation for seed in seeds)


@pytest.mark.parametrize("plant", planted_gates.DECLARED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_what_phases_declare_is_found(plant: planted.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    seeds = (FOUND_BY_DECLARING[plant], *range(5, 4 * WITHIN, 5))
    assert any(play(Plan(seed)).violation for seed in seeds)


def test_x5_a_wake_that_was_lost_is_found_by_what_explains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two oracles of one fact: this is the one of the product itself."""
    monkeypatch.setattr(gatekeeping, "count_wakes", planted.nothing)
    monkeypatch.setattr(world, "nothing_forgotten", planted.nothing)
    found = next(violation for seed in range(15, 100, 4) if (violation := play(Plan(seed)).violation))
    assert "(rule X5)" in found


@pytest.mark.parametrize("plant", planted_redelivery.REDELIVERY, ids=lambda plant: plant.__name__)
def test_a_handler_that_is_not_safe_under_redelivery_is_found(
    plant: planted.Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    seeds = (FOUND_APART_BY[plant], *range(1, WITHIN))
    assert any(play(Plan(seed, is_apart=True)).violation for seed in seeds)
