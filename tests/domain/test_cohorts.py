"""Rules C1 to C4, as far as they are decisions: who goes first, and when too many have failed."""

from typing import Any

import pytest

from matoolkit.domain.cohorts import Tally, is_yes, number_of_pilots, pilots_by_column, too_many
from matoolkit.runbook.model import Pilot, Rollout


@pytest.mark.parametrize("value", [True, 1, 1.0, "1", "true", "TRUE", "yes", " Yes ", "y", "Y"])
def test_c1_these_values_say_yes(value: Any) -> None:
    assert is_yes(value)


@pytest.mark.parametrize(
    "value", [None, False, 0, 2, "", "0", "no", "false", "x", "pilot", "yes, please", ["true"], {}]
)
def test_c1_anything_else_says_no(value: Any) -> None:
    assert not is_yes(value)


def test_c1_a_column_is_found_whatever_its_case_and_a_row_without_it_says_no() -> None:
    rows: list[tuple[int, dict[str, Any]]] = [
        (1, {"ispilot": "yes"}),
        (2, {"IsPilot": "no"}),
        (3, {}),
        (4, {"ISPILOT": 1}),
    ]
    assert pilots_by_column("IsPilot", rows) == [1, 4]


@pytest.mark.parametrize(
    ("pilot", "members", "expected"),
    [
        (Pilot(count=20), 1000, 20),
        (Pilot(count=20), 7, 7),
        (Pilot(percent=5), 100, 5),
        (Pilot(percent=5), 101, 6),
        (Pilot(percent=5), 3, 1),
        (Pilot(percent=1), 10_000, 100),
        (Pilot(percent=100), 3, 3),
        (Pilot(percent=5), 0, 0),
    ],
)
def test_c1_percent_are_rounded_up_and_one_goes_first_at_least(pilot: Pilot, members: int, expected: int) -> None:
    assert number_of_pilots(pilot, members) == expected


COUNT, PERCENT = 3, "3%"


def rollout(**keys: Any) -> Rollout:
    return Rollout.model_validate({key: value for key, value in keys.items() if value is not None})


@pytest.mark.parametrize(
    ("limit", "members", "failed", "is_shut"),
    [
        (COUNT, 100, 3, False),
        (COUNT, 100, 4, True),
        (PERCENT, 1000, 30, False),
        (PERCENT, 1000, 31, True),
        (PERCENT, 20, 0, False),
        (PERCENT, 20, 1, True),
        (0, 20, 1, True),
    ],
)
def test_c4_a_budget_is_exceeded_when_more_have_failed_than_may(
    limit: int | str, members: int, failed: int, is_shut: bool
) -> None:
    assert (too_many("move", rollout(max_failures=limit), members, Tally(failed)) is not None) == is_shut


def test_c4_what_a_person_allowed_counts_if_it_is_more_than_the_runbook_does() -> None:
    limited = rollout(max_failures=COUNT)
    assert too_many("move", limited, 100, Tally(5), opened_for=5) is None
    assert too_many("move", limited, 100, Tally(6), opened_for=5) == "6 members have failed in phase 'move', and 5 may"
    assert too_many("move", limited, 100, Tally(3), opened_for=1) is None


@pytest.mark.parametrize(
    ("limit", "tally", "expected"),
    [
        (None, Tally(pilots=20), None),
        (None, Tally(1, 20, 1), "1 of 20 pilots has failed in phase 'move', and none may"),
        (COUNT, Tally(3, 20, 3), None),
        (COUNT, Tally(3, 20, 4), "4 of 20 pilots have failed in phase 'move', and 3 may"),
        ("10%", Tally(2, 20, 2), None),
        ("10%", Tally(3, 20, 3), "3 of 20 pilots have failed in phase 'move', and 2 may"),
        (None, Tally(pilots=2, pilots_through=1, pilots_over=True), None),
        (None, Tally(pilots=2, pilots_through=0, pilots_over=False), None),
        (None, Tally(pilots=2, pilots_through=0, pilots_over=True), "no pilot of 2 went through phase 'move'"),
        (None, Tally(pilots=0, pilots_over=True), None),
    ],
)
def test_c2_pilots_that_fail_or_of_whom_none_went_through_shut_the_budget(
    limit: int | str | None, tally: Tally, expected: str | None
) -> None:
    assert too_many("move", rollout(pilot_first=True, max_failures=limit), 1000, tally) == expected


def test_c2_what_became_of_pilots_is_decided_once_a_person_has_opened_the_budget() -> None:
    first, tally = rollout(pilot_first=True), Tally(1, 2, 2, 0, pilots_over=True)
    assert too_many("move", first, 1000, tally, opened_for=1) is None
    assert too_many("move", first, 1000, Tally(2, 2, 2, 0, pilots_over=True), opened_for=1) is not None


def test_c3_without_a_budget_nothing_is_too_many() -> None:
    assert too_many("move", rollout(at_once=5), 10, Tally(10)) is None
