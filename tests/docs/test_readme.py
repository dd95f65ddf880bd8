"""Every claim of the README has a test that fails when it is no longer true. This table says which.

The claims, one after the other, are the section "What you get", word by word: a claim that is new needs its test here.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CLAIMS: dict[str, tuple[str, ...]] = {
    "A calendar for every wave.": ("system/test_together.py::test_a_wave_goes_from_its_discovery_to_its_end",),
    "People who join late catch up,": (
        "orchestrator/test_members.py::test_o10_a_late_joiner_goes_through_every_phase_that_has_begun_oldest_first",
    ),
    "the work for people who leave is undone,": (
        "system/test_samples.py::test_w9_who_joins_late_catches_up_and_who_leaves_is_undone",
    ),
    "a whole wave can slip a week,": ("scheduler/test_membership.py::test_t5_a_whole_calendar_can_slip_by_a_week",),
    "and nobody is cut over at a time that the source no longer gives them.": (
        (
            "scheduler/test_membership.py::"
            "test_t5_defect_when_a_whole_batch_moves_the_old_wave_does_not_run_beside_the_new_one"
        ),
        "scheduler/test_membership.py::test_t5_whoever_is_gone_before_t_is_removed_with_who_and_why",
    ),
    "Nothing lost, nothing twice.": ("simulate/test_simulation.py::test_seeds_hold",),
    "State and messages are one transaction;": (
        "bus/test_publishing.py::test_m1_a_crash_leaves_both_the_state_and_the_message_or_neither",
    ),
    "processes may be killed at any moment.": (
        "bus/test_bus_under_fire.py::test_m1_processes_killed_at_every_point_of_a_bus_in_the_states_database",
        "system/test_up.py::test_what_is_killed_again_and_again_goes_on_where_it_was",
        "worker/test_killed.py::test_w1_a_worker_killed_in_mid_batch_ends_the_same",
    ),
    "Sceptics read why, and a simulation tries to break it.": (
        "simulate/test_planted_bugs.py::test_a_planted_bug_is_found",
    ),
    "A broken view does not roll people back.": (
        "scheduler/test_holds.py::test_t6_a_broken_view_holds_every_batch_ahead_and_removes_nobody",
    ),
    "A change that is too large is held until a person approves exactly what was shown.": (
        "scheduler/test_holds.py::test_t6_an_approval_counts_for_exactly_what_was_shown",
    ),
    "Stop, wait, approve. One command pauses everything, a wave or a person.": (
        "orchestrator/test_gates.py::test_g4_a_pause_takes_back_what_nobody_has_received_and_a_resume_sends_it",
    ),
    "Quarter end is frozen,": ("orchestrator/test_freezes.py::test_k1_nothing_leaves_from_its_beginning_to_its_end",),
    "two people sign off exactly what begins,": (
        "orchestrator/test_signoffs.py::test_s1_s8_a_phase_begins_when_enough_people_have_signed_off",
        "orchestrator/test_signoffs.py::test_s2_an_approval_of_yesterdays_list_is_refused_with_what_changed",
    ),
    "and a pilot goes first, with a limit of failures.": (
        "orchestrator/test_cohorts.py::test_c2_the_others_begin_when_the_last_pilot_has_ended_the_phase",
        "orchestrator/test_cohorts.py::test_c2_max_failures_says_how_many_of_the_pilots_may_fail",
    ),
    "Whatever waits says why, since when, and which command ends it.": (
        "cli/test_explain.py::test_x3_a_batch_is_explained_in_sentences_with_their_commands",
    ),
    "Failures by error. Three thousand people with one missing licence are one line,": (
        "store/test_executions.py::test_failures_are_grouped_by_error_with_the_largest_group_first",
    ),
    "and one command retries them.": (
        "cli/test_lifecycles.py::test_a3_a_batch_that_fails_is_told_by_the_exit_code_and_retried_by_error",
    ),
    "A way back. A wave can be undone for everybody or for some, after a preview,": (
        "cli/test_undoing.py::test_u2_an_undo_is_shown_asked_for_done_and_waited_for",
        "admin/test_undoing.py::test_u2_only_failed_members_or_those_that_failed_alike",
    ),
    "and one person kept out whatever the source says.": ("cli/test_undoing.py::test_u3_exclude_list_and_include",),
    "A report of who is done, who failed and why: for a terminal, for Excel, and as a page for a manager.": (
        "cli/test_report.py::test_u1_a_report_says_of_each_person_how_far_it_is",
        "cli/test_report.py::test_a_report_as_a_workbook_holds_texts_and_times",
        "cli/test_report.py::test_a_page_for_a_manager_stands_alone_and_executes_nothing",
    ),
    "New versions in flight.": ("system/test_together.py::test_a_new_version_in_the_middle",),
    "Publishing says first what it does to every batch.": (
        "admin/test_publishing.py::test_v1_the_answer_says_what_becomes_of_each_batch_in_flight",
    ),
    "Functions for Entra and Exchange Online that can run twice,": (
        "worker/functions/test_contract.py::test_w2_a_second_run_succeeds_and_changes_nothing",
        "worker/functions/test_contract.py::test_w2_two_at_once_come_to_the_same_end",
    ),
    "and your own in Python or PowerShell.": (
        "worker/test_custom.py::test_w5_a_python_file_brings_its_functions",
        "worker/test_custom.py::test_w5_a_script_is_a_function_with_the_parameters_of_its_help",
    ),
    "Sources: any SQL database, Dataverse, Databricks, a CSV file or an Excel workbook.": (
        "sources/test_sql.py::test_r4_a_result_comes_in_pieces_with_its_columns",
        "sources/test_dataverse.py::test_r4_many_rows_come_in_pieces_of_five_hundred",
        "sources/test_databricks.py::test_r4_a_result_comes_chunk_by_chunk_in_pieces_with_its_columns",
        "scheduler/test_files.py::test_u4_people_join_from_a_workbook_at_its_times",
        "sources/test_every_source.py::test_r4_a_result_comes_in_pieces_and_can_be_had_again",
    ),
    "Pages for a weekend of watching: what needs a person first,": (
        "web/test_now.py::test_u6_the_list_grows_while_the_page_is_open_and_is_reached_by_keyboard",
    ),
    "a matrix of a hundred thousand people and their steps,": (
        "web/test_matrix.py::test_by_keyboard_one_goes_everywhere_and_opens_a_member",
    ),
    "previews before every change.": ("web/test_batch_page.py::test_a_preview_that_is_no_longer_true_is_refused",),
    "A command line, an API and an audit log:": (
        "cli/test_tour.py::test_a1_every_operation_of_the_api_is_reached_by_a_command",
        "admin/test_people.py::test_a5_who_what_before_and_after_are_recorded",
    ),
    "counts first,": (
        (
            "api/test_looking_on.py::"
            "test_what_people_look_at_takes_as_many_statements_for_five_hundred_as_for_ten_each_by_an_index"
        ),
    ),
    "filters on the server,": ("cli/test_manners.py::test_pages_are_followed_and_what_was_left_out_is_said",),
    "exit codes that mean something,": (
        "cli/test_manners.py::test_a_refusal_is_an_exit_code_and_a_sentence_on_standard_error",
    ),
    "dry runs decided by the server.": (
        "api/test_routes.py::test_a_dry_run_says_what_would_happen_to_batches_and_writes_nothing",
    ),
    "One process or many. SQLite to begin with, PostgreSQL for more,": (
        "system/test_up.py::test_what_is_killed_again_and_again_goes_on_where_it_was",
        "system/test_up.py::test_a_wave_on_a_server_is_told_as_it_happens",
        "scheduler/test_process.py::test_t10_another_scheduler_works_when_the_first_was_killed",
    ),
    "and a protocol for parts of your own.": (
        "docs/test_protocol.py::test_the_smallest_worker_works_with_our_orchestrator",
    ),
    "In Azure, templates and workflows bring up function apps, containers, Azure SQL and Service Bus": (
        "infra/test_templates.py::test_m8_the_subscriptions_are_those_of_the_code",
        "system/test_functions.py::test_the_sample_runs_to_its_end_and_calls_that_die_after_a_commit_repeat_nothing",
    ),
    "without a stored key,": ("infra/test_templates.py::test_no_template_takes_or_holds_a_password",),
    "and OpenTelemetry follows a step through all of them.": (
        "system/test_traces.py::test_one_trace_follows_a_step_from_its_tick_to_the_handling_of_its_answer",
    ),
}


def test_the_claims_are_what_the_readme_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.partition("## What you get\n")[2].partition("\n## ")[0]
    words = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", section).replace("**", "")
    said = " ".join(word for word in words.split() if word != "-")
    assert said == " ".join(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_has_its_tests(claim: str) -> None:
    missing = [test for test in CLAIMS[claim] if test.rpartition("::")[2] not in names_in(test.partition("::")[0])]
    assert missing == []


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
