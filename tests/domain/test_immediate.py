"""Rule T7 as pure decisions: every case of the table, and where T is."""

from datetime import timedelta

import pytest

from matoolkit.domain.immediate import decide_immediate, start_of_interval
from tests.domain.immediate_cases import IMMEDIATE_CASES, ImmediateCase
from tests.domain.snapshots import NOW, TICK, story


@pytest.mark.parametrize("case", IMMEDIATE_CASES, ids=lambda case: case.name)
def test_t7_what_the_source_says_and_what_was_before_decide(case: ImmediateCase) -> None:
    changes = decide_immediate(case.given.snapshot(), case.before, case.cooldown)
    assert story(changes, case.given) == case.happens


def test_t7_t_is_now_rounded_down_to_the_interval_of_ticks() -> None:
    assert start_of_interval(NOW, TICK) == NOW
    assert start_of_interval(NOW + timedelta(minutes=4, seconds=59), TICK) == NOW
    assert start_of_interval(NOW + TICK, TICK) == NOW + TICK
    seven = timedelta(minutes=7)
    assert start_of_interval(NOW, seven) <= NOW < start_of_interval(NOW, seven) + seven
