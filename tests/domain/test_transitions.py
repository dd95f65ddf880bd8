"""Rules V2 to V6: what a new version does to a batch in flight."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.states import ENDED_BATCHES, OPEN_PHASES, BatchStatus, OverdueBehavior, PhaseStatus
from matoolkit.domain.transitions import (
    BatchInFlight,
    InitChange,
    PhaseInFlight,
    Stay,
    TargetVersion,
    Transition,
    taken_up,
    transition,
)
from matoolkit.runbook.parse import parse_runbook
from tests.databases import NOON
from tests.documents import document

WITHOUT_INIT = parse_runbook(document())
WITH_INIT = parse_runbook(document(init=True))
RERUN, IGNORE = OverdueBehavior.RERUN, OverdueBehavior.IGNORE
T_IN_THREE_DAYS = NOON + timedelta(days=3)  # `prepare` at T-5d is past due


def phase(number: int, status: PhaseStatus, name: str = "prepare", version: int = 1) -> PhaseInFlight:
    return PhaseInFlight(number, version, name, 0, 0, status, was_dispatched=status is not PhaseStatus.PENDING)


def batch(*phases: PhaseInFlight, status: BatchStatus = BatchStatus.ACTIVE) -> BatchInFlight:
    return BatchInFlight(7, status, T_IN_THREE_DAYS, phases)


def names(phases: tuple[object, ...]) -> list[str]:
    return [one.name for one in phases]  # type: ignore[attr-defined]


RUNNING = (
    phase(1, PhaseStatus.DISPATCHED),
    phase(2, PhaseStatus.PENDING, "cutover"),
    phase(3, PhaseStatus.PENDING, "verify"),
)


def test_v3_rerun_supersedes_what_is_unfinished_and_runs_everything_also_what_is_past_due() -> None:
    made = transition(batch(*RUNNING), TargetVersion(2, WITHOUT_INIT, RERUN), NOON)
    assert [one.id for one in made.superseded] == [1, 2, 3]
    assert [one.id for one in made.interrupted] == [1]
    assert not made.going_on
    assert [(one.name, one.index, one.status, one.due_at and one.due_at - T_IN_THREE_DAYS) for one in made.created] == [
        ("prepare", 0, PhaseStatus.PENDING, timedelta(days=-5)),
        ("cutover", 1, PhaseStatus.PENDING, timedelta()),
        ("verify", 2, PhaseStatus.PENDING, timedelta(hours=2)),
    ]
    assert names(made.repeated) == ["prepare"]
    assert names(made.first_time) == ["cutover", "verify"]


def test_v4_ignore_lets_running_phases_finish_and_skips_what_is_past_due() -> None:
    made = transition(batch(*RUNNING), TargetVersion(2, WITHOUT_INIT, IGNORE), NOON)
    assert [one.id for one in made.superseded] == [2, 3]
    assert [one.id for one in made.going_on] == [1]
    assert not made.interrupted
    assert names(made.skipped) == ["prepare"]
    assert names(made.first_time) == ["cutover", "verify"]


def test_v4_a_phase_that_is_due_this_very_moment_is_past_due() -> None:
    at_t = transition(batch(), TargetVersion(2, WITHOUT_INIT, IGNORE), T_IN_THREE_DAYS)
    assert names(at_t.skipped) == ["prepare", "cutover"]
    before = transition(batch(), TargetVersion(2, WITHOUT_INIT, IGNORE), T_IN_THREE_DAYS - timedelta(microseconds=1))
    assert names(before.skipped) == ["prepare"]


def test_v4_ignore_does_not_skip_what_no_member_has_begun() -> None:
    waiting = (phase(1, PhaseStatus.PENDING, "PREPARE"), phase(2, PhaseStatus.PENDING, "cutover"))
    made = transition(batch(*waiting, status=BatchStatus.INIT_DISPATCHED), TargetVersion(2, WITHOUT_INIT, IGNORE), NOON)
    assert not made.skipped
    assert names(made.staying_due) == ["prepare"]
    assert names(made.first_time) == ["prepare", "cutover", "verify"]
    assert made.in_words().startswith(
        "run: cutover, verify; run although past due, because they have not begun: prepare; superseded: PREPARE, "
    )


@pytest.mark.parametrize("before", [PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SUPERSEDED])
def test_v4_ignore_skips_a_pending_phase_that_an_older_version_began(before: PhaseStatus) -> None:
    begun, again = phase(1, before, version=1), phase(2, PhaseStatus.PENDING, version=2)
    made = transition(batch(begun, again), TargetVersion(3, WITHOUT_INIT, IGNORE), NOON)
    assert names(made.skipped) == ["prepare"]


@pytest.mark.parametrize("before", [PhaseStatus.SKIPPED, PhaseStatus.SUPERSEDED, PhaseStatus.CANCELLED])
def test_v4_ignore_skips_a_phase_that_is_not_pending_at_the_transition(before: PhaseStatus) -> None:
    passed_by = PhaseInFlight(1, 1, "prepare", 0, 0, before)
    made = transition(batch(passed_by), TargetVersion(2, WITHOUT_INIT, IGNORE), NOON)
    assert names(made.skipped) == ["prepare"]


def test_v3_a_phase_of_a_still_older_version_that_runs_on_is_superseded_too() -> None:
    older = phase(1, PhaseStatus.DISPATCHED, version=1)
    old = phase(2, PhaseStatus.PENDING, "cutover", version=2)
    made = transition(batch(older, old), TargetVersion(3, WITHOUT_INIT, RERUN), NOON)
    assert [one.id for one in made.superseded] == [1, 2]


def test_v2_phases_that_the_batch_already_has_of_the_version_are_left_alone() -> None:
    mine = phase(1, PhaseStatus.DISPATCHED, version=2)
    assert transition(batch(mine), TargetVersion(2, WITHOUT_INIT, RERUN), NOON).superseded == ()


def test_v1_a_phase_runs_again_if_one_of_its_name_has_begun_whatever_became_of_it() -> None:
    interrupted = phase(1, PhaseStatus.SUPERSEDED, "PREPARE")
    never_begun = PhaseInFlight(2, 1, "cutover", 1, 0, PhaseStatus.SUPERSEDED)
    made = transition(batch(interrupted, never_begun), TargetVersion(3, WITHOUT_INIT), NOON)
    assert names(made.repeated) == ["prepare"]


@pytest.mark.parametrize(
    ("facts", "stays"),
    [
        ({"is_manual": True, "is_held": True}, Stay.MANUAL),
        ({"is_reopened": True, "is_held": True}, Stay.REOPENED),
        ({"is_current": True, "is_held": True}, Stay.CURRENT),
        ({"is_held": True}, Stay.HELD),
    ],
)
def test_v2_a_batch_that_stays_says_why(facts: dict[str, Any], stays: Stay) -> None:
    made = transition(replace(batch(*RUNNING), **facts), TargetVersion(2, WITH_INIT, rerun_init=True), NOON)
    assert made.is_waiting == (stays is Stay.HELD)
    assert made.in_words() == str(stays)
    assert made == Transition(7, stays)


@pytest.mark.parametrize("status", sorted(ENDED_BATCHES))
def test_v2_a_batch_that_has_ended_stays_as_it_is(status: BatchStatus) -> None:
    assert transition(batch(status=status), TargetVersion(2, WITHOUT_INIT), NOON).stays is Stay.ENDED


@pytest.mark.parametrize(
    ("status", "rerun_init", "has_init", "change", "activates"),
    [
        (BatchStatus.ACTIVE, False, True, InitChange.KEPT, False),
        (BatchStatus.ACTIVE, True, True, InitChange.REQUESTED, False),
        (BatchStatus.ACTIVE, True, False, InitChange.DROPPED, False),
        (BatchStatus.INIT_DISPATCHED, False, True, InitChange.KEPT, False),
        (BatchStatus.INIT_DISPATCHED, False, False, InitChange.KEPT, False),
        (BatchStatus.INIT_DISPATCHED, True, True, InitChange.REQUESTED, False),
        (BatchStatus.INIT_DISPATCHED, True, False, InitChange.DROPPED, True),
        (BatchStatus.DETECTED, False, True, InitChange.REQUESTED, False),
        (BatchStatus.DETECTED, False, False, InitChange.DROPPED, True),
    ],
)
def test_v5_init_runs_again_only_if_asked_for_and_if_there_is_one(
    status: BatchStatus, rerun_init: bool, has_init: bool, change: InitChange, activates: bool
) -> None:
    target = TargetVersion(2, WITH_INIT if has_init else WITHOUT_INIT, rerun_init=rerun_init)
    made = transition(batch(status=status), target, NOON)
    assert (made.init, made.activates) == (change, activates)


def test_what_happens_is_said_in_words() -> None:
    rerun = transition(batch(*RUNNING), TargetVersion(2, WITH_INIT, RERUN, rerun_init=True), NOON)
    assert rerun.in_words() == (
        "run again: prepare; run: cutover, verify; interrupted: prepare; superseded: cutover, verify; "
        "init runs again, and phases wait for it"
    )
    ignore = transition(batch(*RUNNING), TargetVersion(2, WITHOUT_INIT, IGNORE), NOON)
    assert ignore.in_words() == (
        "run: cutover, verify; skipped as past due: prepare; superseded: cutover, verify; "
        "finish under the version that began them: prepare; "
        "init counts as done, or goes on under the version that began it"
    )


phases = st.builds(
    PhaseInFlight,
    id=st.integers(1, 10**6),
    version=st.integers(1, 3),
    name=st.sampled_from(["prepare", "Cutover", "gone"]),
    index=st.integers(0, 5),
    offset_minutes=st.integers(-5000, 5000),
    status=st.sampled_from(PhaseStatus),
    was_dispatched=st.booleans(),
)
batches = st.builds(
    BatchInFlight,
    id=st.just(1),
    status=st.sampled_from(sorted(set(BatchStatus) - ENDED_BATCHES)),
    start_time=st.timedeltas(timedelta(days=-9), timedelta(days=9)).map(lambda distance: NOON + distance),
    phases=st.lists(phases, max_size=8, unique_by=lambda one: one.id).map(tuple),
)
targets = st.builds(
    TargetVersion,
    number=st.just(4),
    runbook=st.sampled_from([WITH_INIT, WITHOUT_INIT]),
    overdue_behavior=st.sampled_from(OverdueBehavior),
    rerun_init=st.booleans(),
)


@given(batches, targets)
def test_v2_after_a_transition_nothing_of_an_old_version_is_pending_and_nobody_is_in_a_phase_twice(
    old: BatchInFlight, target: TargetVersion
) -> None:
    made = transition(old, target, NOON)
    unfinished = {one.id for one in old.phases if one.status in OPEN_PHASES}
    superseded = {one.id for one in made.superseded}
    going_on = {one.id for one in made.going_on}
    assert superseded | going_on == unfinished
    assert not superseded & going_on
    assert all(one.status is PhaseStatus.DISPATCHED for one in made.going_on)
    assert len(made.created) == len(target.runbook.phases)
    if target.overdue_behavior is RERUN:
        assert not going_on
        assert not made.skipped
    else:
        assert not made.interrupted
        assert all(
            (one.due_at is not None and one.due_at <= NOON) == (one.is_skipped or one.stays_due) for one in made.created
        )
        assert not any(one.stays_due and (one.is_skipped or one.is_repeated) for one in made.created)
    # Whatever waits for init after the transition has an init that runs, or one that still did.
    if old.status is BatchStatus.DETECTED:
        assert made.activates or made.init is InitChange.REQUESTED


def test_o14_what_is_past_is_skipped_when_a_retry_lets_a_batch_take_a_version() -> None:
    over = (phase(1, PhaseStatus.COMPLETED), phase(2, PhaseStatus.COMPLETED, "cutover"))
    made = taken_up(batch(*over, status=BatchStatus.COMPLETED), TargetVersion(2, WITHOUT_INIT), NOON)
    assert names(made.skipped) == ["prepare", "cutover"], "past due, or begun though it is due later now"
    assert names(made.first_time) == ["verify"]


def test_o14_what_has_not_begun_is_still_to_come_for_everybody_when_a_retry_lets_a_batch_take_a_version() -> None:
    waiting = phase(1, PhaseStatus.PENDING)
    made = taken_up(batch(waiting, phase(2, PhaseStatus.DISPATCHED, "cutover")), TargetVersion(2, WITHOUT_INIT), NOON)
    assert (made.superseded, names(made.going_on)) == ((waiting,), ["cutover"])
    assert (names(made.skipped), names(made.first_time)) == (["cutover"], ["prepare", "verify"])


def test_o14_all_that_comes_before_a_phase_that_has_begun_is_past_in_a_manual_batch() -> None:
    manual = BatchInFlight(7, BatchStatus.ACTIVE, None, (phase(1, PhaseStatus.COMPLETED, "cutover"),), is_manual=True)
    made = taken_up(manual, TargetVersion(2, WITHOUT_INIT), NOON)
    assert (names(made.skipped), names(made.first_time)) == (["prepare", "cutover"], ["verify"])
