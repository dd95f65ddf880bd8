"""Every case of membership: what the source says, and what follows. docs/explanation/membership.md explains each."""

from dataclasses import dataclass
from datetime import timedelta

from matoolkit.domain.holds import HoldKind
from matoolkit.runbook.values import Allowance
from tests.domain.snapshots import (
    JUST_NOW,
    LONG_PAST,
    NEVER,
    NOW,
    PAST,
    SOON,
    T1,
    T2,
    T3,
    T4,
    Batch,
    Given,
    Held,
)

TEN = "a b c d e f g h i j"
LATE = Held(kind=HoldKind.LATE)
AGAIN = Held(gone="ann", kind=HoldKind.REPEAT)


@dataclass(frozen=True)
class Case:
    name: str
    given: Given
    happens: frozenset[str]


def case(name: str, given: Given, *happens: str) -> Case:
    return Case(name, given, frozenset(happens))


def of(*batches: Batch, source: dict[object, str] | None = None, **more: object) -> Given:
    return Given(source or {}, batches, **more)  # type: ignore[arg-type]


JOINING = (
    case("new batch", of(source={T1: "ann bob"}), "ann joins a new batch at T1", "bob joins a new batch at T1"),
    case("added", of(Batch(1, T1, "ann"), source={T1: "ann bob"}), "bob joins 1"),
    case("added at most a tick after T", of(Batch(1, JUST_NOW, "ann"), source={JUST_NOW: "ann bob"}), "bob joins 1"),
    case("nothing has changed", of(Batch(1, T1, "ann"), source={T1: "ann"})),
    case("row set aside, in no batch", of(Batch(1, T1, "ann"), source={T1: "ann"}, set_aside="bob")),
    case("back again", of(Batch(1, T1, "ann bob-"), source={T1: "ann bob"}), "bob returns to 1"),
    case(
        "back again at most a tick after T",
        of(Batch(1, JUST_NOW, "ann bob-"), source={JUST_NOW: "ann bob"}),
        "bob returns to 1",
    ),
    case(
        "failed stays failed",
        of(Batch(1, T1, "ann bob!"), source={T1: "ann bob"}),
        "bob: failed_there",
    ),
    case(
        "failed with a new time",
        of(Batch(1, T1, "ann bob!"), Batch(2, T2, "cid"), source={T1: "ann", T2: "bob cid"}),
        "bob joins 2",
    ),
    case(
        "time whose batch has ended",
        of(source={PAST: "ann"}, ended=(PAST,)),
        "ann: time_has_ended",
        "ignored: 1",
    ),
    case(
        "in a manual batch",
        of(Batch(1, None, "ann bob-"), source={T1: "ann bob"}),
        "ann: in_manual_batch",
        "bob joins a new batch at T1",
    ),
    case(
        "batch reopened by a retry",
        of(Batch(1, PAST, "ann~ bob!", reopened=True), source={PAST: "ann bob cid"}),
        "bob: batch_was_reopened",
        "cid: batch_was_reopened",
    ),
    case("changed data", of(Batch(1, T1, "ann~ bob"), source={T1: "ann bob"}), "ann is refreshed"),
    case(
        "changed data of somebody who failed", of(Batch(1, T1, "ann bob!"), source={T1: "ann bob"}), "bob: failed_there"
    ),
)

PAST_AND_BEFORE = (
    case(
        "added more than a tick after T",
        of(Batch(1, PAST, "ann"), source={PAST: "ann bob"}),
        "bob: start_has_passed",
    ),
    case(
        "added on the day of a date",
        of(Batch(1, PAST, "ann"), source={PAST: "ann bob"}, day_ends={PAST: SOON}),
        "bob joins 1",
    ),
    case(
        "back again more than a tick after T",
        of(Batch(1, PAST, "ann bob-"), source={PAST: "ann bob"}),
        "bob: start_has_passed",
    ),
    case(
        "moved into the past",
        of(Batch(1, PAST, "ann"), Batch(2, T1, "bob cid"), source={PAST: "ann bob", T1: "cid"}),
        "bob: start_has_passed",
    ),
    case(
        "included after T",
        of(Batch(1, PAST, "ann"), source={PAST: "ann bob cid"}, included={"bob": PAST, "cid": T1}),
        "bob joins 1",
        "cid: start_has_passed",
    ),
    case(
        "included after T, from another batch",
        of(
            Batch(1, PAST, "ann"),
            Batch(2, T1, "bob cid"),
            source={PAST: "ann bob", T1: "cid"},
            included={"bob": PAST},
        ),
        "bob joins 1 from 2",
    ),
    case(
        "late joiners are allowed",
        of(Batch(1, PAST, "ann cid-"), source={PAST: "ann bob cid"}, late_joiners=True),
        "bob joins 1",
        "cid returns to 1",
    ),
    case(
        "the same time again, after the batch has moved on",
        of(Batch(1, T2, "ann bob!"), source={T2: "ann", T1: "bob"}, failed={"bob": T1}),
        "bob: taken_before",
    ),
    case(
        "the same time again, for which others are planned",
        of(Batch(1, T2, "ann bob!"), source={T2: "ann", T1: "bob new"}, failed={"bob": T1}),
        "bob: taken_before",
        "new joins a new batch at T1",
    ),
    case(
        "the same time again, included",
        of(Batch(1, T2, "ann bob!"), source={T2: "ann", T1: "bob"}, failed={"bob": T1}, included={"bob": T1}),
        "bob joins a new batch at T1",
    ),
    case(
        "done elsewhere, at a new time that no batch has",
        of(source={T2: "ann new"}, done={"ann": T1}),
        "ann joins a new batch at T2",
        "new joins a new batch at T2",
        "the new batch at T2 is held: repeat",
    ),
    case(
        "failed elsewhere, at a new time that no batch has",
        of(Batch(1, T1, "bob ann!"), source={T1: "bob", T2: "ann"}, failed={"ann": T1}),
        "ann joins a new batch at T2",
        "the new batch at T2 is held: repeat",
    ),
    case(
        "done elsewhere, at the time of another batch",
        of(Batch(2, T2, "cid"), source={T2: "ann cid"}, done={"ann": T1}),
        "ann: done_before",
    ),
    case(
        "done elsewhere, included",
        of(
            Batch(2, T2, "cid"),
            source={T2: "ann cid", T3: "dan"},
            done={"ann": T1, "dan": T1},
            included={"ann": T2, "dan": T3},
        ),
        "ann joins 2",
        "dan joins a new batch at T3",
    ),
)

WAITING = (
    case(
        "first seen after its T",
        of(source={LONG_PAST: "ann bob"}),
        "ann joins a new batch at LONG_PAST",
        "bob joins a new batch at LONG_PAST",
        "the new batch at LONG_PAST is held: late",
    ),
    case(
        "first seen at most a tick after its T",
        of(source={JUST_NOW: "ann"}),
        "ann joins a new batch at JUST_NOW",
    ),
    case(
        "first seen on the day of its date",
        of(source={PAST: "ann"}, day_ends={PAST: SOON}),
        "ann joins a new batch at PAST",
    ),
    case(
        "first seen after the day of its date",
        of(source={PAST: "ann"}, day_ends={PAST: NOW}),
        "ann joins a new batch at PAST",
        "the new batch at PAST is held: late",
    ),
    case(
        "one member re-dated into the past",
        of(Batch(1, T1, "ann bob"), source={T1: "ann", LONG_PAST: "bob"}),
        "bob joins a new batch at LONG_PAST from 1",
        "the new batch at LONG_PAST is held: late",
    ),
    case(
        "late, and nothing has changed",
        of(Batch(1, PAST, "ann", LATE), source={PAST: "ann"}),
        "batch 1 is held: late",
    ),
    case(
        "late, and members come and go",
        of(
            Batch(1, PAST, "ann bob cid gil~ fay-", LATE),
            Batch(2, T1, "dan x"),
            source={PAST: "ann dan new gil fay", T1: "cid x"},
        ),
        "batch 1 is held: late",
        "new joins 1",
        "fay returns to 1",
        "dan joins 1 from 2",
        "bob leaves 1, which has not begun",
        "cid joins 2 from 1",
        "gil is refreshed",
    ),
    case(
        "late, and more leave than the guard allows",
        of(Batch(1, PAST, TEN, LATE), source={PAST: "a"}),
        "batch 1 is held: late",
        *(f"{key} leaves 1, which has not begun" for key in "bcdefghij"),
    ),
    case(
        "late, and its members go where nobody is taken",
        of(Batch(1, PAST, "ann bob", LATE), source={PAST: "ann", T1: "bob"}, ended=(T1,)),
        "batch 1 is held: late",
        "bob: time_has_ended",
        "bob leaves 1 and waits",
        "ignored: 1",
    ),
    case(
        "late, and nobody is left",
        of(Batch(1, PAST, "ann", LATE)),
        "ann leaves 1, which has not begun",
        "batch 1 is cancelled",
    ),
    case(
        "late, and a row is set aside",
        of(Batch(1, PAST, "ann", LATE), set_aside="ann"),
        "batch 1 is held: late",
    ),
    case(
        "late, and in a manual batch",
        of(Batch(1, None, "ann"), Batch(2, PAST, "bob", LATE), source={PAST: "ann bob"}),
        "ann: in_manual_batch",
        "batch 2 is held: late",
    ),
    case(
        "late and approved",
        of(Batch(1, PAST, "ann bob", Held(kind=HoldKind.LATE, approved=True)), source={PAST: "ann"}),
        "bob leaves 1, which has not begun",
        "batch 1 begins",
    ),
    case(
        "late, and the whole batch moved ahead",
        of(Batch(1, PAST, "ann bob", LATE), source={T1: "ann bob"}),
        "batch 1 moves to T1",
        "batch 1 begins",
    ),
    case(
        "late and approved, and the whole batch moved to another time in the past",
        of(Batch(1, PAST, "ann", Held(kind=HoldKind.LATE, approved=True)), source={LONG_PAST: "ann"}),
        "batch 1 moves to LONG_PAST",
        "batch 1 is held: late",
    ),
    case(
        "late, and the whole batch moved to the time of another",
        of(Batch(1, PAST, "ann", LATE), Batch(2, T1, "bob"), source={T1: "ann bob"}),
        "ann joins 2 from 1",
        "batch 1 is cancelled",
    ),
    case(
        "repeat, and nothing has changed",
        of(Batch(1, T1, "ann bob", AGAIN), source={T1: "ann bob"}, done={"ann": PAST}),
        "batch 1 is held: repeat",
    ),
    case(
        "repeat and approved",
        of(
            Batch(1, T1, "ann bob", Held(gone="ann", kind=HoldKind.REPEAT, approved=True)),
            source={T1: "ann bob"},
            done={"ann": PAST},
        ),
        "batch 1 begins",
    ),
    case(
        "repeat and approved, but others would repeat now",
        of(
            Batch(1, T1, "ann bob", Held(gone="ann", kind=HoldKind.REPEAT, approved=True)),
            source={T1: "ann bob cid"},
            done={"ann": PAST, "cid": PAST},
        ),
        "cid joins 1",
        "batch 1 is held: repeat",
    ),
    case(
        "repeat, and the source is corrected",
        of(Batch(1, T1, "ann bob", AGAIN), source={PAST: "ann", T1: "bob"}, done={"ann": PAST}, ended=(PAST,)),
        "ann: time_has_ended",
        "ann leaves 1 and waits",
        "ignored: 1",
        "batch 1 begins",
    ),
    case(
        "repeat, and nobody is left before T",
        of(Batch(1, T1, "ann", AGAIN), source={PAST: "ann"}, done={"ann": PAST}, ended=(PAST,)),
        "ann: time_has_ended",
        "ann leaves 1 and waits",
        "ignored: 1",
    ),
    case(
        "repeat, and back to the time that it had",
        of(Batch(1, T2, "bob ann!"), Batch(3, T3, "ann", AGAIN), source={T2: "bob", T1: "ann"}, failed={"ann": T1}),
        "ann: taken_before",
        "ann leaves 3 and waits",
    ),
    case(
        "repeat and late",
        of(source={PAST: "ann"}, done={"ann": T1}),
        "ann joins a new batch at PAST",
        "the new batch at PAST is held: repeat",
    ),
    case(
        "reschedule into the past",
        of(Batch(1, T1, "ann"), source={PAST: "ann"}),
        "batch 1 is held: reschedule",
    ),
)

LEAVING = (
    case("removed", of(Batch(1, T1, "ann bob"), source={T1: "ann"}), "bob leaves 1"),
    case("row set aside, in a batch", of(Batch(1, T1, "ann bob~"), source={T1: "ann"}, set_aside="bob")),
    case("gone after T", of(Batch(1, PAST, "ann bob"), source={PAST: "ann"}), "bob left the source"),
    case("gone after T, noted before", of(Batch(1, PAST, "ann bob?"), source={PAST: "ann"})),
    case("in the source again after T", of(Batch(1, PAST, "ann?"), source={PAST: "ann"}), "ann is back in the source"),
    case("clock put back before T", of(Batch(1, T1, "ann bob?"), source={T1: "ann"})),
    case("batch not returned, T passed", of(Batch(1, PAST, "ann bob")), "ann left the source", "bob left the source"),
    case(
        "batch not returned, T at most a tick ahead",
        of(Batch(1, SOON, "ann bob")),
        "ann: left_window",
        "bob: left_window",
    ),
    case(
        "batch not returned, T further ahead",
        of(Batch(1, SOON + timedelta(seconds=1), "ann")),
        "batch 1 is held: called_off",
    ),
    case(
        "batch not returned but for a row set aside",
        of(Batch(1, T1, "ann bob"), set_aside="ann"),
        "bob leaves 1",
    ),
    case(
        "batch not returned after some have moved",
        of(Batch(1, T1, "ann bob"), Batch(2, T2, "cid"), source={T2: "ann cid"}),
        "ann joins 2 from 1",
        "batch 1 is held: called_off",
    ),
    case(
        "everybody replaced",
        of(Batch(1, T1, "ann bob"), source={T1: "cid"}),
        "batch 1 is held: removals",
        "cid: batch_is_held",
    ),
    case(
        "half of a batch replaced",
        of(Batch(1, T1, "ann bob"), source={T1: "ann cid"}),
        "bob leaves 1",
        "cid joins 1",
    ),
)

GUARD = (
    case(
        "as many removals as the guard allows",
        of(Batch(1, T1, TEN), source={T1: "a b c d e"}),
        *(f"{key} leaves 1" for key in "fghij"),
    ),
    case(
        "more removals than the guard allows",
        of(Batch(1, T1, TEN), source={T1: "a b c d"}),
        "batch 1 is held: removals",
    ),
    case(
        "guard of a fifth",
        of(Batch(1, T1, " ".join(f"m{n}" for n in range(30))), source={T1: " ".join(f"m{n}" for n in range(24))}),
        *(f"m{n} leaves 1" for n in range(24, 30)),
    ),
    case(
        "guard of a fifth, one more",
        of(Batch(1, T1, " ".join(f"m{n}" for n in range(30))), source={T1: " ".join(f"m{n}" for n in range(23))}),
        "batch 1 is held: removals",
    ),
    case(
        "guard as a percentage",
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h i"}, limit=Allowance(percent=10)),
        "j leaves 1",
    ),
    case(
        "guard as a percentage, one more",
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h"}, limit=Allowance(percent=10)),
        "batch 1 is held: removals",
    ),
    case(
        "guard as a count",
        of(Batch(1, T1, TEN), source={T1: "a b c"}, limit=Allowance(count=7)),
        *(f"{key} leaves 1" for key in "defghij"),
    ),
    case(
        "guard of zero",
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h i"}, limit=Allowance(count=0)),
        "batch 1 is held: removals",
    ),
    case(
        "more than half are gone",
        of(Batch(1, T1, "a b c d e"), source={T1: "a b"}),
        "batch 1 is held: removals",
    ),
    case(
        "half are gone",
        of(Batch(1, T1, "a b c d"), source={T1: "a b"}),
        "c leaves 1",
        "d leaves 1",
    ),
    case(
        "others left in the last day",
        of(Batch(1, T1, f"{TEN} v< w< x< y< z<"), source={T1: "a b c d e f g h i"}),
        "batch 1 is held: removals",
    ),
    case(
        "others left in the last day, within the guard",
        of(Batch(1, T1, f"{TEN} w< x< y< z<"), source={T1: "a b c d e f g h i"}),
        "j leaves 1",
    ),
    case(
        "others left before the last day",
        of(Batch(1, T1, f"{TEN} v- w- x- y- z-"), source={T1: "a b c d e f g h i"}),
        "j leaves 1",
    ),
    case(
        "others left as a person approved",
        of(Batch(1, T1, f"{TEN} v< w< x< y< z<", approved_at=PAST), source={T1: "a b c d e f g h i"}),
        "j leaves 1",
    ),
    case(
        "others moved away in the last day",
        of(Batch(1, T1, f"{TEN} v> w> x> y> z>"), source={T1: "a b c d e f g h i"}),
        "j leaves 1",
    ),
    case(
        "others left in the last day, guard as a count",
        of(Batch(1, T1, f"{TEN} z<"), source={T1: "a b c d e f g h i"}, limit=Allowance(count=1)),
        "batch 1 is held: removals",
    ),
    case(
        "nobody joins a batch that is just being held",
        of(Batch(1, T1, TEN), source={T1: "a b new"}),
        "batch 1 is held: removals",
        "new: batch_is_held",
    ),
)

MOVING = (
    case("whole batch moved", of(Batch(1, T1, "ann bob"), source={T2: "ann bob"}), "batch 1 moves to T2"),
    case(
        "whole batch moved, with newcomers",
        of(Batch(1, T1, "ann~"), source={T2: "ann bob", T1: "cid"}),
        "batch 1 moves to T2",
        "ann is refreshed",
        "bob joins 1",
        "cid joins a new batch at T1",
    ),
    case(
        "calendar slips by a week",
        of(Batch(1, T1, "ann"), Batch(2, T2, "bob"), Batch(3, T3, "cid"), source={T2: "ann", T3: "bob", T4: "cid"}),
        "batch 1 moves to T2",
        "batch 2 moves to T3",
        "batch 3 moves to T4",
    ),
    case(
        "batches trade their times",
        of(Batch(1, T1, "ann"), Batch(2, T2, "bob"), source={T2: "ann", T1: "bob"}),
        "batch 1 is held: reschedule",
        "batch 2 is held: reschedule",
    ),
    case(
        "trade approved for all",
        of(
            Batch(1, T1, "ann", Held(start=T2, approved=True)),
            Batch(2, T2, "bob", Held(start=T1, approved=True)),
            source={T2: "ann", T1: "bob"},
        ),
        "batch 1 moves to T2",
        "batch 2 moves to T1",
        "batch 1 is released",
        "batch 2 is released",
    ),
    case(
        "trade approved for one",
        of(
            Batch(1, T1, "ann", Held(start=T2, approved=True)),
            Batch(2, T2, "bob", Held(start=T1)),
            source={T2: "ann", T1: "bob"},
        ),
        "batch 1 is held: reschedule",
        "batch 2 is held: reschedule",
    ),
    case(
        "two batches with one new time",
        of(Batch(1, T1, "ann"), Batch(2, T2, "bob"), source={T3: "ann bob"}),
        "batch 1 moves to T3",
        "bob joins 1 from 2",
    ),
    case(
        "whole batch moved to the time of another",
        of(Batch(1, T1, "ann bob"), Batch(2, T2, "cid"), source={T2: "ann bob cid"}),
        "ann joins 2 from 1",
        "bob joins 2 from 1",
    ),
    case(
        "whole batch moved to the time of an ended one",
        of(Batch(1, T1, "ann bob"), source={T2: "ann bob"}, ended=(T2,)),
        "ann: time_has_ended",
        "bob: time_has_ended",
        "ignored: 2",
    ),
    case(
        "reschedule that makes a phase overdue",
        of(Batch(1, T2, "ann", pending=(NOW + timedelta(days=3), T2)), source={T1: "ann"}),
        "batch 1 is held: reschedule",
    ),
    case(
        "reschedule with a phase that was overdue before",
        of(Batch(1, T1, "ann", pending=(PAST, T1)), source={T2: "ann"}),
        "batch 1 moves to T2",
    ),
    case(
        "whole batch put off for ever",
        of(Batch(1, T1, "ann", pending=(T1, T1 + timedelta(hours=2))), source={NEVER: "ann"}),
        "batch 1 moves to NEVER",
    ),
    case(
        "reschedule after cutover has begun",
        of(Batch(1, T1, "ann", cut_over=True), source={T2: "ann"}),
        "batch 1 is held: reschedule",
    ),
    case(
        "reschedule approved",
        of(Batch(1, T1, "ann", Held(start=T2, approved=True), cut_over=True), source={T2: "ann"}),
        "batch 1 moves to T2",
        "batch 1 is released",
    ),
    case(
        "reschedule approved, T passed meanwhile",
        of(Batch(1, PAST, "ann", Held(start=T2, approved=True)), source={T2: "ann"}),
        "batch 1 moves to T2",
        "batch 1 is released",
    ),
    case(
        "another start than the approved one",
        of(Batch(1, T1, "ann", Held(start=T2, approved=True), cut_over=True), source={T3: "ann"}),
        "batch 1 is held: reschedule",
    ),
    case(
        "batch ahead in the chain is held",
        of(Batch(1, T1, "ann"), Batch(2, T2, "bob", cut_over=True), source={T2: "ann", T3: "bob"}),
        "batch 1 is held: reschedule",
        "batch 2 is held: reschedule",
    ),
    case(
        "approved behind one that is not",
        of(
            Batch(1, T1, "ann", Held(start=T2, approved=True)),
            Batch(2, T2, "bob", Held(start=T3), cut_over=True),
            source={T2: "ann", T3: "bob"},
        ),
        "batch 1 is held: reschedule",
        "batch 2 is held: reschedule",
    ),
    case(
        "some moved",
        of(Batch(1, T1, "ann bob"), source={T1: "ann", T2: "bob"}),
        "bob joins a new batch at T2 from 1",
    ),
    case(
        "all moved but not to one time",
        of(Batch(1, T1, "ann bob"), source={T3: "ann", T2: "bob"}),
        "ann joins a new batch at T3 from 1",
        "bob joins a new batch at T2 from 1",
    ),
    case(
        "all moved but for a row set aside",
        of(Batch(1, T1, "ann bob"), source={T2: "ann"}, set_aside="bob"),
        "ann joins a new batch at T2 from 1",
    ),
    case(
        "moved back",
        of(Batch(1, T1, "ann bob-"), Batch(2, T2, "bob cid"), source={T1: "ann bob", T2: "cid"}),
        "bob returns to 1 from 2",
    ),
    case(
        "moved to a batch that is held",
        of(
            Batch(1, T1, "ann bob"),
            Batch(2, T2, "cid dan", Held(gone="dan")),
            source={T1: "ann", T2: "bob cid"},
        ),
        "bob leaves 1 and waits",
        "bob: batch_is_held",
        "batch 2 is held: removals",
    ),
    case(
        "moved to a time that a held batch is to have",
        of(Batch(1, T1, "ann", cut_over=True), Batch(2, T2, "bob cid"), source={T2: "cid", T3: "ann bob new"}),
        "batch 1 is held: reschedule",
        "bob leaves 2 and waits",
        "bob: time_is_claimed",
        "new: time_is_claimed",
    ),
    case(
        "moved to a batch that was reopened",
        of(Batch(1, T1, "ann bob"), Batch(2, T2, "cid", reopened=True), source={T1: "ann", T2: "bob"}),
        "bob: batch_was_reopened",
    ),
    case(
        "moved to where it failed",
        of(Batch(1, T1, "ann bob"), Batch(2, T2, "bob! cid"), source={T1: "ann", T2: "bob cid"}),
        "bob: failed_there",
    ),
    case(
        "moved to a time whose batch has ended",
        of(Batch(1, T1, "ann bob"), source={T1: "ann", T2: "bob"}, ended=(T2,)),
        "bob: time_has_ended",
        "ignored: 1",
    ),
    case(
        "moved after T",
        of(Batch(1, PAST, "ann bob~"), source={PAST: "ann", T1: "bob"}),
        "bob: moved_after_start",
    ),
    case(
        "whole batch moved after T",
        of(Batch(1, PAST, "ann"), source={T1: "ann"}),
        "ann: moved_after_start",
    ),
)

HOLDS = (
    case(
        "held, and nothing has changed",
        of(Batch(1, T1, "ann~ bob", Held(gone="bob")), source={T1: "ann"}),
        "batch 1 is held: removals",
    ),
    case(
        "held and approved",
        of(Batch(1, T1, "ann bob", Held(gone="bob", approved=True)), source={T1: "ann"}),
        "batch 1 is released",
        "bob leaves 1, as approved",
    ),
    case(
        "held and approved, T passed meanwhile",
        of(Batch(1, PAST, "ann bob", Held(gone="bob", approved=True)), source={PAST: "ann"}),
        "batch 1 is released",
        "bob leaves 1, as approved",
    ),
    case(
        "held and approved, called off",
        of(Batch(1, T1, "ann bob", Held(gone="ann bob", kind=HoldKind.CALLED_OFF, approved=True))),
        "batch 1 is released",
        "ann leaves 1, as approved",
        "bob leaves 1, as approved",
    ),
    case(
        "held and approved, but others are gone now",
        of(Batch(1, T1, "ann bob cid", Held(gone="bob", approved=True)), source={T1: "ann"}),
        "batch 1 is held: removals",
    ),
    case(
        "held, and somebody has moved meanwhile",
        of(Batch(1, T1, "ann bob cid", Held(gone="bob", approved=True)), source={T1: "ann", T2: "cid"}),
        "batch 1 is held: removals",
    ),
    case(
        "held and approved with those who move",
        of(Batch(1, T1, "ann bob cid", Held("bob", "cid", approved=True)), source={T1: "ann", T2: "cid"}),
        "batch 1 is released",
        "bob leaves 1, as approved",
        "cid joins a new batch at T2 from 1",
    ),
    case(
        "held, and everybody is back",
        of(Batch(1, T1, "ann~ bob", Held(gone="bob")), source={T1: "ann bob cid"}),
        "batch 1 is released",
        "ann is refreshed",
        "cid joins 1",
    ),
    case(
        "held, and everybody is back but in a row set aside",
        of(Batch(1, T1, "ann bob", Held(gone="bob")), source={T1: "ann"}, set_aside="bob"),
        "batch 1 is released",
    ),
    case(
        "held, and T has passed",
        of(Batch(1, PAST, "ann bob", Held(gone="bob")), source={PAST: "ann"}),
        "batch 1 is held: removals",
    ),
    case(
        "nobody joins, returns to or moves out of a held batch",
        of(
            Batch(1, T1, "ann bob cid gil-", Held(gone="bob", moving="cid")),
            source={T1: "ann gil new", T2: "cid"},
        ),
        "batch 1 is held: removals",
        "gil: batch_is_held",
        "new: batch_is_held",
    ),
    case(
        "held for removals, and then the whole batch moved",
        of(Batch(1, T1, "ann bob", Held(gone="bob")), source={T2: "ann bob"}),
        "batch 1 is held: reschedule",
    ),
    case(
        "held for a new start, and the old one is back",
        of(Batch(1, T1, "ann bob", Held(start=T2)), source={T1: "ann bob"}),
        "batch 1 is released",
    ),
    case(
        "held for init",
        of(
            Batch(1, T1, "ann~ bob cid", Held(kind=HoldKind.INIT)),
            source={T1: "ann new", T2: "bob"},
        ),
        "new: batch_is_held",
    ),
)

UNDONE = (
    case("undone", of(Batch(1, T1, "ann bob^"), source={T1: "ann bob"}), "bob: undone"),
    case("undone, and gone from the source", of(Batch(1, T1, "ann bob^"), source={T1: "ann"})),
    case(
        "undone, and included again",
        of(Batch(1, T1, "ann bob^"), source={T1: "ann bob"}, included={"bob": T1}),
        "bob returns to 1 afresh",
    ),
    case(
        "undone, with a new time",
        of(Batch(1, T1, "ann bob^"), source={T1: "ann", T2: "bob"}, undone={"bob": T1}),
        "bob joins a new batch at T2",
    ),
    case(
        "undone, with the time of another batch",
        of(Batch(1, T1, "ann bob^"), Batch(2, T2, "cid"), source={T1: "ann", T2: "bob cid"}, undone={"bob": T1}),
        "bob joins 2",
    ),
    case(
        "undone, and its batch has moved on",
        of(Batch(1, T2, "ann bob^"), source={T2: "ann", T1: "bob"}, undone={"bob": T1}),
        "bob: taken_before",
    ),
    case(
        "moved to where it was undone",
        of(Batch(1, T1, "ann bob^"), Batch(2, T2, "bob cid"), source={T1: "ann bob", T2: "cid"}),
        "bob: undone",
    ),
    case(
        "others were undone in the last day",
        of(Batch(1, T1, f"{TEN} v^ w^ x^ y^ z^"), source={T1: "a b c d e f g h i"}),
        "j leaves 1",
    ),
    case(
        "batch not returned but for one who was undone",
        of(Batch(1, T1, "ann bob^"), source={T1: "bob"}),
        "batch 1 is held: called_off",
        "bob: batch_is_held",
    ),
    case("everybody was undone", of(Batch(1, T1, "ann^"), source={T1: "ann"}), "ann: undone"),
)

EXCLUDED = (
    case("excluded", of(Batch(1, T1, "ann"), source={T1: "ann bob"}, excluded="bob"), "bob: excluded"),
    case("excluded, and nobody else has its time", of(source={T1: "ann"}, excluded="ann"), "ann: excluded"),
    case(
        "excluded after it was in a batch",
        of(Batch(1, T1, "ann bob="), source={T1: "ann bob"}, excluded="bob"),
        "bob: excluded",
    ),
    case("included again", of(Batch(1, T1, "ann bob="), source={T1: "ann bob"}), "bob returns to 1"),
    case(
        "excluded, and a person had included it",
        of(Batch(1, PAST, "ann"), source={PAST: "ann bob"}, included={"bob": PAST}, excluded="bob"),
        "bob: excluded",
    ),
    case("excluded and active, gone from the source", of(Batch(1, T1, "ann bob"), source={T1: "ann"}, excluded="bob")),
    case(
        "excluded and active, with another time",
        of(Batch(1, T1, "ann bob"), source={T1: "ann", T2: "bob"}, excluded="bob"),
    ),
    case(
        "others were excluded in the last day",
        of(Batch(1, T1, f"{TEN} v= w= x= y= z="), source={T1: "a b c d e f g h i"}, excluded="v w x y z"),
        "j leaves 1",
    ),
    case(
        "whole batch moved but for one who is excluded",
        of(Batch(1, T1, "ann bob="), source={T2: "ann", T1: "bob"}, excluded="bob"),
        "batch 1 moves to T2",
        "bob: excluded",
    ),
)

CASES = (*JOINING, *PAST_AND_BEFORE, *WAITING, *LEAVING, *GUARD, *MOVING, *HOLDS, *UNDONE, *EXCLUDED)
