"""Every case of membership: what the source says, and what follows. docs/explanation/membership.md explains each."""

from dataclasses import dataclass
from datetime import timedelta

from matoolkit.domain.holds import HoldKind
from matoolkit.runbook.values import RemovalLimit
from tests.unit.domain.pictures import NEVER, NOW, PAST, SOON, T1, T2, T3, T4, Batch, Given, Held

TEN = "a b c d e f g h i j"


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
    case("added after T", of(Batch(1, PAST, "ann"), source={PAST: "ann bob"}), "bob joins 1"),
    case("nothing has changed", of(Batch(1, T1, "ann"), source={T1: "ann"})),
    case("row set aside, in no batch", of(Batch(1, T1, "ann"), source={T1: "ann"}, set_aside="bob")),
    case("back again", of(Batch(1, T1, "ann bob-"), source={T1: "ann bob"}), "bob returns to 1"),
    case("back again after T", of(Batch(1, PAST, "ann bob-"), source={PAST: "ann bob"}), "bob returns to 1"),
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
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h i"}, limit=RemovalLimit(percent=10)),
        "j leaves 1",
    ),
    case(
        "guard as a percentage, one more",
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h"}, limit=RemovalLimit(percent=10)),
        "batch 1 is held: removals",
    ),
    case(
        "guard as a count",
        of(Batch(1, T1, TEN), source={T1: "a b c"}, limit=RemovalLimit(count=7)),
        *(f"{key} leaves 1" for key in "defghij"),
    ),
    case(
        "guard of zero",
        of(Batch(1, T1, TEN), source={T1: "a b c d e f g h i"}, limit=RemovalLimit(count=0)),
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
        of(Batch(1, T1, f"{TEN} z<"), source={T1: "a b c d e f g h i"}, limit=RemovalLimit(count=1)),
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

CASES = (*JOINING, *LEAVING, *GUARD, *MOVING, *HOLDS)
