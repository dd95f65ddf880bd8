"""Rule M2: ids come from facts and never repeat."""

import itertools

import pytest

from matoolkit import ids
from matoolkit.ids import JobRef, Kind, Reason, job_id, parse_job_id


def test_m2_ids_read_as_the_rule_writes_them() -> None:
    assert ids.job_id(Kind.STEP, 123, Reason.ATTEMPT, 1) == "step-123-attempt-1"
    assert ids.job_id(Kind.INIT, 4, Reason.RETRY, 2) == "init-4-retry-2"
    assert ids.job_id(Kind.ROLLBACK, 5, Reason.POLL, 9) == "rollback-5-poll-9"
    assert ids.result_id("step-123-attempt-1") == "result-step-123-attempt-1"
    assert ids.batch_init_id(42, 3, 1) == "batch-init-42-v3-1"
    assert ids.phase_due_id(108, 1) == "phase-due-108-1"
    assert ids.member_added_id(505, 0) == "member-added-505-0"
    assert ids.member_removed_id(505, 0) == "member-removed-505-0"
    assert ids.poll_check_id(Kind.STEP, 7, 3) == "poll-check-step-7-3"
    assert ids.retry_check_id(Kind.ROLLBACK, 7, 3) == "retry-check-rollback-7-3"
    assert ids.reissued("phase-due-108-1", 2) == "phase-due-108-1-r2"
    assert ids.resent("phase-due-108-1", 1) == "phase-due-108-1-s1"


def test_m2_different_facts_never_share_an_id() -> None:
    facts = list(itertools.product(Kind, (1, 11, 111), Reason, (1, 11, 111)))
    assert len({ids.job_id(*fact) for fact in facts}) == len(facts)


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("reason", list(Reason))
def test_o4_a_job_id_says_whose_it_is(kind: Kind, reason: Reason) -> None:
    assert parse_job_id(job_id(kind, 42, reason, 3)) == JobRef(kind, 42, 3)


@pytest.mark.parametrize(
    "text",
    ["", "step", "step-1", "step-1-attempt-0", "step-0-attempt-1", "Step-1-attempt-1", "step-1-attempt-1 ",
     "step-1-attempt-1-s1", "step--1-attempt-1", "step-\u0661-attempt-1", "step-1-attempt-99999999999999999999"],
)  # fmt: skip
def test_o4_what_is_no_job_id_of_ours_is_told_apart(text: str) -> None:
    assert parse_job_id(text) is None


def test_m4_what_is_left_of_a_message_says_how_far_it_came() -> None:
    first = ids.phase_due_id(7, 1)
    assert ids.cursor_of(first) == 0
    rest = ids.continued(first, 5000)
    assert (rest, ids.cursor_of(rest)) == ("phase-due-7-1-c5000", 5000)
    assert ids.continued(rest, 9000) == "phase-due-7-1-c9000"
    again = ids.resent_again(rest)
    assert (again, ids.cursor_of(again)) == ("phase-due-7-1-c5000-s1", 5000)
    assert ids.continued(again, 9000) == "phase-due-7-1-c9000"
    woken = ids.reissued(first, 2)
    assert (ids.cursor_of(woken), ids.continued(woken, 3)) == (0, "phase-due-7-1-r2-c3")


def test_m2_what_wakes_somebody_never_has_the_id_of_something_else() -> None:
    first = ids.phase_due_id(7, 1)
    made = [first]
    made += [suffix(first, 1) for suffix in (ids.reissued, ids.reissued_after_init, ids.continued, ids.asked_for)]
    made += [ids.resent_again(first), ids.resent_again(ids.resent_again(first))]
    assert made[-2:] == ["phase-due-7-1-s1", "phase-due-7-1-s2"]
    assert len(set(made)) == len(made)


def test_v5_a_request_for_init_knows_which_one_it_is() -> None:
    assert ids.occurrence_of_init(ids.batch_init_id(42, 3, 2)) == 2
    assert ids.occurrence_of_init(ids.resent_again(ids.batch_init_id(42, 3, 12))) == 12
    assert ids.occurrence_of_init("something else") is None
