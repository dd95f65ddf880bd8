"""Rule T7 as pure decisions."""

from collections.abc import Mapping
from datetime import timedelta

import pytest

from matoolkit.domain.holds import HoldKind
from matoolkit.domain.immediate import LastTime, decide_immediate, start_of_interval
from tests.unit.domain.cases import of
from tests.unit.domain.pictures import NOW, TICK, Batch, Given, Held, story

_EARLIER = NOW - timedelta(hours=1)
_ROW, _OTHER_ROW = b"now".hex(), b"before".hex()
NOBODY: Mapping[str, LastTime] = {}


def told(given: Given, before: Mapping[str, LastTime] = NOBODY, cooldown: timedelta | None = None) -> set[str]:
    return story(decide_immediate(given.picture(), before, cooldown), given)


def someone(*batches: Batch, **more: object) -> Given:
    return of(*batches, source={None: "ann"}, **more)


TAKEN = {"ann joins a new batch at NOW"}
LEFT_OUT: set[str] = set()


def test_t7_whoever_is_new_starts_now() -> None:
    assert told(someone()) == TAKEN


@pytest.mark.parametrize("status", ["ann", "ann!"])
def test_t7_whoever_is_in_a_batch_that_has_not_ended_is_left_out(status: str) -> None:
    assert told(someone(Batch(1, _EARLIER, status))) == LEFT_OUT


def test_t7_absence_is_not_removal() -> None:
    assert told(of(Batch(1, _EARLIER, "ann bob"), Batch(2, NOW, "cid"))) == LEFT_OUT


def test_t7_the_data_of_active_members_is_refreshed() -> None:
    assert told(someone(Batch(1, _EARLIER, "ann~"))) == {"ann is refreshed"}


def test_t7_a_held_batch_is_left_as_it_is() -> None:
    held = Batch(1, NOW, "ann~", Held(kind=HoldKind.INIT))
    assert told(of(held, source={None: "ann bob"})) == {"bob: batch_is_held"}


@pytest.mark.parametrize(
    ("before", "cooldown", "outcome"),
    [
        (LastTime(_ROW, None), None, LEFT_OUT),
        (LastTime(_OTHER_ROW, None), None, TAKEN),
        (LastTime(_ROW, NOW - timedelta(hours=23, minutes=59)), None, LEFT_OUT),
        (LastTime(_ROW, NOW - timedelta(hours=24)), None, TAKEN),
        (LastTime(_OTHER_ROW, NOW), None, TAKEN),
        (LastTime(_ROW, NOW - timedelta(hours=2)), timedelta(hours=2), TAKEN),
        (LastTime(_ROW, NOW - timedelta(hours=2)), timedelta(hours=3), LEFT_OUT),
        (LastTime(_ROW, NOW + timedelta(days=1)), None, LEFT_OUT),
    ],
    ids=[
        "failed or removed, same row",
        "failed or removed, another row",
        "succeeded less than a day ago",
        "succeeded a day ago",
        "succeeded just now, another row",
        "cooldown over",
        "cooldown not over",
        "clock put back",
    ],
)
def test_t7_somebody_is_taken_again_when_the_row_changed_or_the_cooldown_after_success_is_over(
    before: LastTime, cooldown: timedelta | None, outcome: set[str]
) -> None:
    assert told(someone(), {"ann": before}, cooldown) == outcome


def test_t7_whoever_is_taken_in_the_same_interval_joins_its_batch() -> None:
    assert told(of(Batch(1, NOW, "bob"), source={None: "ann bob"})) == {"ann joins 1"}


def test_t7_whoever_was_removed_from_the_batch_of_this_interval_returns_when_its_row_has_changed() -> None:
    given = someone(Batch(1, NOW, "ann- bob"))
    assert told(given, {"ann": LastTime(_OTHER_ROW, None)}) == {"ann returns to 1"}
    assert told(given, {"ann": LastTime(_ROW, None)}) == LEFT_OUT


def test_t7_an_interval_whose_batch_has_ended_takes_nobody() -> None:
    assert told(someone(ended=(NOW,))) == {"ann: interval_has_ended"}


def test_t7_somebody_in_a_manual_batch_is_left_out_and_shown() -> None:
    assert told(someone(Batch(1, None, "ann"))) == {"ann: in_manual_batch"}


def test_t7_a_row_that_is_set_aside_takes_nobody() -> None:
    assert told(of(set_aside="ann")) == LEFT_OUT


def test_t7_t_is_now_rounded_down_to_the_interval_of_ticks() -> None:
    assert start_of_interval(NOW, TICK) == NOW
    assert start_of_interval(NOW + timedelta(minutes=4, seconds=59), TICK) == NOW
    assert start_of_interval(NOW + TICK, TICK) == NOW + TICK
    assert start_of_interval(NOW + timedelta(minutes=20), timedelta(minutes=7)) <= NOW + timedelta(minutes=20)
