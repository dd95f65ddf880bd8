"""Batches in flight take the new version of their runbook, as `domain/transitions.py` decides (rules V2 to V6).

One transaction takes a slice of batches: it locks them, reads them again, decides and writes in bulk. Only batches that
took the version have consequences, so doing it twice changes nothing.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from matoolkit.announcing.following import change_phases
from matoolkit.announcing.inits import cancel_inits, request_inits
from matoolkit.announcing.waking import activate_and_wake
from matoolkit.domain.transitions import InitChange, Stay, TargetVersion, Transition, transition
from matoolkit.ports import Publisher
from matoolkit.runbook.model import Runbook
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import (
    BatchRow,
    follow_version,
    lock_batches,
    unfinished_batches,
)
from matoolkit.store.inflight import batches_in_flight, in_flight, target_of
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.runbooks import RunbookRow, active_runbook, note_transition_done

SLICE = 50

# These reasons stay true tick after tick, so they are logged only at the debug level.
_LASTING = frozenset({Stay.ENDED, Stay.CURRENT, Stay.MANUAL, Stay.REOPENED, Stay.UNBEGUN})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TransitionCounts:
    """What a new version did to the batches of its runbook."""

    batches: int = 0
    batches_waiting: int = 0
    phases_created: int = 0
    phases_skipped: int = 0
    phases_superseded: int = 0
    steps_cancelled: int = 0
    inits_requested: int = 0

    def __add__(self, other: "TransitionCounts") -> "TransitionCounts":
        return TransitionCounts(
            self.batches + other.batches,
            self.batches_waiting + other.batches_waiting,
            self.phases_created + other.phases_created,
            self.phases_skipped + other.phases_skipped,
            self.phases_superseded + other.phases_superseded,
            self.steps_cancelled + other.steps_cancelled,
            self.inits_requested + other.inits_requested,
        )


@dataclass(frozen=True, slots=True)
class _Version:
    """The version that batches take, as it is stored and as it is meant."""

    row: RunbookRow
    target: TargetVersion
    at: datetime


def transition_batches(
    store: Store, publisher: Publisher, row: RunbookRow, runbook: Runbook, now: datetime, confirm: Confirm
) -> TransitionCounts:
    """Let the unfinished batches of a runbook take its active version; `confirm` begins every transaction."""
    version = _Version(row, target_of(row, runbook), now)
    with store.reading() as tx:
        decisions = _first_look(tx, version)
    _tell(row, [one for one in decisions if one.stays is not None])
    total = TransitionCounts(batches_waiting=sum(one.is_waiting for one in decisions))
    for ids in _slices([one.batch_id for one in decisions if one.stays is None]):
        with store.transaction() as tx:
            confirm(tx)
            taking, counts = _take_version(tx, publisher, version, ids)
        _tell(row, taking)
        total += counts
    if not row.ignore_overdue_applied and not total.batches_waiting:
        with store.transaction() as tx:
            confirm(tx)
            _note_if_done(tx, version)
    return total


def _first_look(tx: Transaction, version: _Version) -> list[Transition]:
    """Decide without locks and without phases: enough to know which batches may take the version at all."""
    batches = unfinished_batches(tx, version.row.name)
    return [transition(in_flight(batch, (), version.row.id), version.target, version.at) for batch in batches]


def _take_version(
    tx: Transaction, publisher: Publisher, version: _Version, ids: Sequence[int]
) -> tuple[list[Transition], TransitionCounts]:
    active = active_runbook(tx, version.row.name)
    if active is None or active.id != version.row.id:
        log.info("a newer version was published during the tick; the next tick applies it", extra=_about(version.row))
        return [], TransitionCounts()
    locked = lock_batches(tx, ids)
    found = [transition(one, version.target, version.at) for one in batches_in_flight(tx, locked, version.row.id)]
    follow = follow_version(tx, [one.batch_id for one in found if one.stays is None], version.row.id)
    taking = [one for one in found if one.batch_id in set(follow)]
    counts = _change_phases(tx, publisher, version, taking)
    requested = _change_inits(tx, publisher, version, taking, locked)
    waiting = sum(one.is_waiting for one in found)
    return found, replace(counts, batches=len(taking), batches_waiting=waiting, inits_requested=requested)


def _change_phases(
    tx: Transaction, publisher: Publisher, version: _Version, taking: Sequence[Transition]
) -> TransitionCounts:
    """Supersede old phases with their open steps, and create the new ones (rules V3 and V4)."""
    done = change_phases(tx, publisher, version.row.version, taking, version.at)
    return TransitionCounts(
        phases_created=done.created,
        phases_skipped=sum(len(one.skipped) for one in taking),
        phases_superseded=done.superseded,
        steps_cancelled=done.steps_cancelled,
    )


def _change_inits(
    tx: Transaction,
    publisher: Publisher,
    version: _Version,
    taking: Sequence[Transition],
    locked: Sequence[BatchRow],
) -> int:
    """Cancel the old init and request the new one, where the version wants it (rule V5)."""
    number = version.row.version
    changed = inits_of_batches(tx, [one.batch_id for one in taking if one.init is not InitChange.KEPT])
    cancel_inits(tx, publisher, [init for init in changed if init.runbook_version != number], version.at)
    activate_and_wake(tx, publisher, [one.batch_id for one in taking if one.activates])
    wanted = {one.batch_id for one in taking if one.init is InitChange.REQUESTED}
    return request_inits(tx, publisher, number, [batch for batch in locked if batch.id in wanted], version.at)


def _note_if_done(tx: Transaction, version: _Version) -> None:
    if all(one.stays is not None and not one.is_waiting for one in _first_look(tx, version)):
        note_transition_done(tx, version.row.id)


def _tell(row: RunbookRow, decisions: Sequence[Transition]) -> None:
    for one in decisions:
        level = logging.DEBUG if one.stays in _LASTING else logging.INFO
        what = f"takes version {row.version}" if one.stays is None else f"does not take version {row.version}"
        log.log(level, "batch %s: %s", what, one.in_words(), extra=_about(row) | {"batch": one.batch_id})


def _about(row: RunbookRow) -> dict[str, object]:
    return {"runbook": row.name}


def _slices(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), SLICE):
        yield ids[start : start + SLICE]
