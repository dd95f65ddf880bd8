"""Groups the changes of batches into transactions of a good size (rule T5).

Small batches share one, so that the number of statements grows with the members and not with the batches. All members
that leave the same batch leave it in one transaction: after a crash, half of a change would look like another change to
the next tick.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from matoolkit.domain.changes import BatchChanges, Changes
from matoolkit.domain.snapshot import Snapshot
from matoolkit.scheduler.joining import Part
from matoolkit.scheduler.reading import AT_ONCE


def packed(changes: Changes, snapshot: Snapshot) -> Iterator[list[Part]]:
    """Put the changes of batches together until there are enough for one transaction."""
    starts = {batch.id: batch.start for batch in snapshot.batches} | changes.reschedules
    parts = [Part(start, batch_id, changes.batches[batch_id]) for batch_id, start in _known(starts, changes)]
    parts += [_new(start, changes) for start in sorted(changes.new)]
    pack: list[Part] = []
    for inseparable in _together(parts):
        pack += inseparable
        if sum(len(part.changes) for part in pack) >= AT_ONCE:
            yield pack
            pack = []
    if pack:
        yield pack


def _new(start: datetime, changes: Changes) -> Part:
    return Part(start, None, BatchChanges(joins=changes.new[start]), changes.new_holds.get(start))


def _known(starts: Mapping[int, datetime | None], changes: Changes) -> list[tuple[int, datetime]]:
    known = ((batch_id, starts[batch_id]) for batch_id, some in sorted(changes.batches.items()) if len(some))
    return [(batch_id, start) for batch_id, start in known if start is not None]


def _together(parts: Sequence[Part]) -> list[list[Part]]:
    """Group parts that concern the same batches, also by way of others."""
    groups: dict[int, tuple[list[Part], set[int]]] = {}
    group_of: dict[int, int] = {}
    for number, part in enumerate(parts):
        members, concerned = [part], _concerned(part)
        for met in sorted({group_of[batch] for batch in concerned if batch in group_of}):
            others, batches = groups.pop(met)
            members = [*others, *members]
            concerned |= batches
        groups[number] = members, concerned
        group_of |= dict.fromkeys(concerned, number)
    return [members for members, _ in groups.values()]


def _concerned(part: Part) -> set[int]:
    left = {someone.leaves.batch_id for someone in part.changes.coming if someone.leaves}
    return left if part.batch_id is None else left | {part.batch_id}
