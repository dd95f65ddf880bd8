"""Rules T5 and T6 as pure decisions: every case of the table, and what no single snapshot shows."""

from dataclasses import replace
from datetime import timedelta

import pytest

from matoolkit.domain.changes import Changes
from matoolkit.domain.membership import decide
from tests.domain.cases import CASES, TEN, Case, of
from tests.domain.snapshots import PAST, T1, T2, T3, Batch, Given, Held, story


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_t5_t6_what_the_source_says_decides(case: Case) -> None:
    assert story(decide(case.given.snapshot()), case.given) == case.happens


def test_every_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def only_key(given: Given) -> str:
    (hold,) = decide(given.snapshot()).holds
    return hold.key


def test_t6_a_hold_keeps_its_key_while_nothing_changes() -> None:
    new = of(Batch(1, T1, TEN), source={T1: "a b c"})
    standing = of(Batch(1, T1, TEN, Held(gone="d e f g h i j")), source={T1: "a b c"})
    later = replace(standing, now=T1 + timedelta(days=1))
    assert only_key(new) == only_key(standing) == only_key(later)


@pytest.mark.parametrize("obstacle", ["ended", "failed", "reopened"])
def test_t6_a_hold_keeps_its_key_when_somebody_cannot_move_out_of_the_batch(obstacle: str) -> None:
    others = {
        "ended": (),
        "failed": (Batch(2, T2, "c! x"),),
        "reopened": (Batch(2, T2, "x", reopened=True),),
    }[obstacle]
    ended = (T2,) if obstacle == "ended" else ()
    new = of(Batch(1, T1, TEN), *others, source={T1: "a b", T2: "c x"}, ended=ended)
    held = Batch(1, T1, TEN, Held(gone="d e f g h i j", moving="c"))
    assert only_key(new) == only_key(replace(new, batches=(held, *others)))


def test_t6_whoever_has_moved_is_no_part_of_the_hold() -> None:
    moving = of(Batch(1, T1, TEN), Batch(2, T2, "x"), source={T1: "a b", T2: "c x"})
    moved = of(Batch(1, T1, TEN.replace("c", "c-")), Batch(2, T2, "x c"), source={T1: "a b", T2: "c x"})
    (before,), (after,) = decide(moving.snapshot()).holds, decide(moved.snapshot()).holds
    assert before == after
    assert before.reason == "the source no longer returns 7 of its 9 members"


def test_t6_another_set_is_another_key() -> None:
    keys = {
        only_key(of(Batch(1, T1, TEN), source={T1: "a b c"})),
        only_key(of(Batch(1, T1, TEN), source={T1: "a b"})),
        only_key(of(Batch(1, T1, TEN, Held()), source={T1: "a b", T2: "c"})),
        only_key(of(Batch(1, T1, TEN, Held()), source={T2: TEN})),
        only_key(of(Batch(1, T1, TEN, Held()), source={T3: TEN})),
    }
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (of(Batch(1, T1, "a b")), "the source no longer returns the batch, which has 2 members"),
        (of(Batch(1, T1, TEN), source={T1: "a"}), "the source no longer returns 9 of its 10 members"),
        (
            of(Batch(1, T1, "a b x< y< z<"), source={T1: "a"}),
            "the source no longer returns 1 of its 2 members; 3 left in the last day",
        ),
        (
            of(Batch(1, T1, "a b c", Held()), source={T1: "a", T2: "b"}),
            "the source no longer returns 1 of its 3 members and gives another time to 1",
        ),
        (
            of(Batch(1, T1, "a b c", Held()), source={T1: "a", T2: "b c"}),
            "the source gives another time to 2 of its 3 members",
        ),
        (
            of(Batch(1, T1, "a", cut_over=True), source={T2: "a"}),
            "the source moves everybody to 2026-03-20 12:00 UTC, but a phase at or after T was dispatched already",
        ),
        (
            of(Batch(1, T2, "a", pending=(T1,)), source={PAST: "a"}),
            "the source moves everybody to 2026-03-03 11:00 UTC, but it would make 1 of its pending phases overdue",
        ),
        (
            of(Batch(1, T1, "a"), Batch(2, T2, "b"), source={T2: "a", T1: "b"}),
            (
                "the source moves everybody to 2026-03-20 12:00 UTC, "
                "but the batches 1, 2 would trade their times with one another"
            ),
        ),
        (
            of(Batch(1, T1, "a"), Batch(2, T2, "b", cut_over=True), source={T2: "a", T3: "b"}),
            (
                "the source moves everybody to 2026-03-20 12:00 UTC, "
                "but batch 2 has that time until its own new start is decided"
            ),
        ),
    ],
)
def test_t6_a_hold_says_why_in_words(given: Given, reason: str) -> None:
    by_batch = {hold.batch_id: hold.reason for hold in decide(given.snapshot()).holds}
    assert by_batch[1] == reason


def test_t5_the_same_picture_gives_the_same_changes() -> None:
    for case in CASES:
        first, second = (decide(case.given.snapshot()) for _ in range(2))
        assert _plain(first) == _plain(second)


def _plain(changes: Changes) -> object:
    return replace(changes, remarks=changes.remarks.all())  # type: ignore[arg-type]
