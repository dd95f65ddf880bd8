"""Rule O14: where a failed member takes its work up again."""

import pytest

from matoolkit.domain.retrying import (
    BeginAgain,
    FirstPhase,
    GoOn,
    Past,
    PastPhase,
    PastStep,
    Retried,
    completed_phases,
    way_on,
)
from matoolkit.domain.states import StepStatus

DONE, FAILED, CANCELLED = StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.CANCELLED
NAMES = ("prepare", "cutover", "check")
# Three phases of two versions: 11, 12, 13 and 21, 22, 23. The runbook lists them in another order than they run in.
PHASES = {
    version * 10 + place: PastPhase(version * 10 + place, version, name, 100 - place, 9 - place)
    for version in (1, 2)
    for place, name in enumerate(NAMES, start=1)
}


def steps(**statuses: tuple[StepStatus, ...]) -> list[PastStep]:
    """Make steps of phases, which are named p11 and so on."""
    found: list[PastStep] = []
    for phase, of_phase in statuses.items():
        found += [PastStep(len(found) + number, int(phase[1:]), one) for number, one in enumerate(of_phase, start=1)]
    return found


FAILED_IN_CUTOVER = steps(p11=(DONE,), p12=(DONE, FAILED), p13=(CANCELLED,))


def test_who_failed_under_the_version_goes_on_with_all_that_failed_or_was_cancelled() -> None:
    way = way_on(Past(FAILED_IN_CUTOVER), PHASES, Retried(1, NAMES))
    assert way == GoOn([one for one in FAILED_IN_CUTOVER if one.status is not DONE])


def test_who_failed_under_another_version_begins_with_the_first_phase_it_has_not_completed() -> None:
    assert way_on(Past(FAILED_IN_CUTOVER), PHASES, Retried(2, ("Prepare", "Cutover", "check"))) == BeginAgain(1)
    assert way_on(Past(FAILED_IN_CUTOVER), PHASES, Retried(2, ("before", "prepare"))) == BeginAgain(0)
    assert way_on(Past(FAILED_IN_CUTOVER), PHASES, Retried(2, ("prepare",))) == BeginAgain(1), "nothing is left"


def test_who_was_undone_begins_with_the_first_phase_and_without_outputs() -> None:
    undone = Past(FAILED_IN_CUTOVER, is_undone=True, first=FirstPhase(1, 1))
    for retried in (Retried(1, NAMES), Retried(2, NAMES), Retried(1, NAMES, "check")):
        assert way_on(undone, PHASES, retried) == BeginAgain(0, is_undone=True)


@pytest.mark.parametrize(("begin_with", "place"), [("prepare", 0), ("CUTOVER", 1), ("check", 1)])
def test_a_person_lets_members_begin_earlier_and_never_later(begin_with: str, place: int) -> None:
    for version in (1, 2):
        assert way_on(Past(FAILED_IN_CUTOVER), PHASES, Retried(version, NAMES, begin_with)) == BeginAgain(place)


def test_what_was_left_out_in_this_epoch_was_completed_in_an_earlier_one() -> None:
    past = Past(steps(p22=(FAILED,), p23=(CANCELLED,)), first=FirstPhase(2, 1))
    assert completed_phases(past, PHASES) == {"prepare"}


def test_the_latest_version_that_a_member_met_decides_whether_a_phase_is_completed() -> None:
    superseded = steps(p11=(DONE, CANCELLED), p21=(DONE,), p22=(FAILED,))
    assert completed_phases(Past(superseded), PHASES) == {"prepare"}
    again = steps(p11=(DONE,), p21=(FAILED,))
    assert completed_phases(Past(again), PHASES) == set()


def test_a_first_phase_says_nothing_about_other_versions() -> None:
    first = FirstPhase(2, 1)
    assert first.leaves_out(2, 0)
    assert not first.leaves_out(2, 1)
    assert not first.leaves_out(3, 0)
