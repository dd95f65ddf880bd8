"""Every case of membership in runbooks whose members start at once; docs/explanation/membership.md explains each."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from matoolkit.domain.holds import HoldKind
from matoolkit.domain.immediate import LastTime
from tests.domain.cases import of
from tests.domain.snapshots import NOW, T1, T2, Batch, Given, Held

_EARLIER = NOW - timedelta(hours=1)
_ROW, _OTHER_ROW = b"now".hex(), b"before".hex()
_TAKEN = frozenset({"ann joins a new batch at NOW"})
_LEFT_OUT: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ImmediateCase:
    name: str
    given: Given
    happens: frozenset[str]
    before: Mapping[str, LastTime] = field(default_factory=dict)
    cooldown: timedelta | None = None


def _ann(*batches: Batch, **more: object) -> Given:
    return of(*batches, source={None: "ann"}, **more)


def _again(name: str, before: LastTime, happens: frozenset[str], cooldown: timedelta | None = None) -> ImmediateCase:
    return ImmediateCase(name, _ann(), happens, {"ann": before}, cooldown)


def _hours(hours: float) -> timedelta:
    return timedelta(hours=hours)


_NOW = (
    ImmediateCase("new", _ann(), _TAKEN),
    ImmediateCase(
        "new in the interval of a batch", of(Batch(1, NOW, "bob"), source={None: "ann bob"}), frozenset({"ann joins 1"})
    ),
    ImmediateCase("in an unfinished batch", _ann(Batch(1, _EARLIER, "ann")), _LEFT_OUT),
    ImmediateCase("failed in an unfinished batch", _ann(Batch(1, _EARLIER, "ann!")), _LEFT_OUT),
    ImmediateCase("gone", of(Batch(1, _EARLIER, "ann bob"), Batch(2, NOW, "cid")), _LEFT_OUT),
    ImmediateCase("changed data, in a batch", _ann(Batch(1, _EARLIER, "ann~")), frozenset({"ann is refreshed"})),
    ImmediateCase("excluded from an immediate runbook", _ann(excluded="ann"), frozenset({"ann: excluded"})),
    ImmediateCase(
        "undone in the interval of its batch",
        _ann(Batch(1, NOW, "ann^")),
        frozenset({"ann: undone_in_interval"}),
        {"ann": LastTime(_OTHER_ROW, None)},
    ),
    ImmediateCase("undone in an immediate runbook", _ann(), _LEFT_OUT, {"ann": LastTime(_ROW, None)}),
    ImmediateCase("row set aside", of(set_aside="ann"), _LEFT_OUT),
    ImmediateCase("in an unfinished manual batch", _ann(Batch(1, None, "ann")), frozenset({"ann: in_manual_batch"})),
    ImmediateCase(
        "batch of the interval is held",
        of(Batch(1, NOW, "ann~", Held(kind=HoldKind.INIT)), source={None: "ann bob"}),
        frozenset({"bob: batch_is_held"}),
    ),
    ImmediateCase(
        "held before members started at once, everybody is there",
        _ann(Batch(1, T1, "ann", Held(start=T2))),
        frozenset({"batch 1 is released"}),
    ),
    ImmediateCase(
        "held before members started at once, and some are gone",
        _ann(Batch(1, T1, "ann bob", Held(gone="bob"))),
        frozenset({"batch 1 is held: removals"}),
    ),
    ImmediateCase(
        "held before members started at once, and approved",
        _ann(Batch(1, T1, "ann bob", Held(gone="bob", approved=True))),
        frozenset({"batch 1 is released", "bob leaves 1, as approved"}),
    ),
    ImmediateCase("batch of the interval has ended", _ann(ended=(NOW,)), frozenset({"ann: interval_has_ended"})),
)

_AGAIN = (
    _again("failed or removed before, same row", LastTime(_ROW, None), _LEFT_OUT),
    _again("failed or removed before, another row", LastTime(_OTHER_ROW, None), _TAKEN),
    _again("succeeded, cooldown not over", LastTime(_ROW, NOW - _hours(23.9)), _LEFT_OUT),
    _again("succeeded, cooldown over", LastTime(_ROW, NOW - _hours(24)), _TAKEN),
    _again("succeeded, another row", LastTime(_OTHER_ROW, NOW), _TAKEN),
    _again("cooldown of the runbook over", LastTime(_ROW, NOW - _hours(2)), _TAKEN, _hours(2)),
    _again("cooldown of the runbook not over", LastTime(_ROW, NOW - _hours(2)), _LEFT_OUT, _hours(3)),
    _again("clock put back", LastTime(_ROW, NOW + _hours(24)), _LEFT_OUT),
    ImmediateCase(
        "removed from the batch of this interval, another row",
        _ann(Batch(1, NOW, "ann- bob")),
        frozenset({"ann returns to 1"}),
        {"ann": LastTime(_OTHER_ROW, None)},
    ),
    ImmediateCase(
        "removed from the batch of this interval, same row",
        _ann(Batch(1, NOW, "ann- bob")),
        _LEFT_OUT,
        {"ann": LastTime(_ROW, None)},
    ),
)

IMMEDIATE_CASES = (*_NOW, *_AGAIN)
