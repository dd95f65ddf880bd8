"""What happened to batches and phases between two looks, and which rows were set aside."""

from collections.abc import Iterator

import orjson

from matoolkit.domain.states import ENDED_BATCHES, PhaseStatus
from matoolkit.hosting.story.lines import Line, Mark, moment_text
from matoolkit.hosting.story.look import Comparison
from matoolkit.hosting.story.summaries import outcome_of
from matoolkit.runbook.offsets import Offset
from matoolkit.store.automation import TickRow
from matoolkit.store.batches import BatchRow
from matoolkit.words import counted

_TOLD_ENDINGS = frozenset(
    {PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.SKIPPED, PhaseStatus.SUPERSEDED, PhaseStatus.CANCELLED}
)


def batches_told(looks: Comparison) -> Iterator[Line]:
    """Tell of batches that were found, moved and ended."""
    for batch in looks.after.batches.values():
        known = looks.before.batches.get(batch.id)
        if known is None:
            yield looks.line(batch.detected_at, Mark.FOUND, _found(batch, looks), batch.id)
        else:
            yield from _moved(looks, known, batch)
        if batch.is_held and (known is None or known.hold_count != batch.hold_count):
            yield looks.line(batch.held_at, Mark.HELD, f"until a person approves: {batch.hold_reason}", batch.id)
        if batch.status in ENDED_BATCHES and (known is None or known.status is not batch.status):
            text = f"the batch is {batch.status}: {outcome_of(batch, looks.after)}"
            yield looks.line(batch.completed_at, Mark.ENDED, text, batch.id)


def phases_told(looks: Comparison) -> Iterator[Line]:
    """Tell of phases that came due and ended."""
    for phase in looks.after.phases.values():
        known = looks.before.phases.get(phase.id)
        if phase.dispatch_count > (known.dispatch_count if known else 0):
            planned = "" if phase.due_at is None else f", planned for {Offset(phase.offset_minutes)}"
            yield looks.line(phase.dispatched_at, Mark.DUE, f"phase {phase.phase_name}{planned}", phase.batch_id)
        if phase.status in _TOLD_ENDINGS and (known is None or phase.status is not known.status):
            text = f"phase {phase.phase_name} is {phase.status}"
            yield looks.line(phase.completed_at, Mark.ENDED, text, phase.batch_id)


def rows_told(looks: Comparison) -> Iterator[Line]:
    """Tell of rows that could not be used, when they are not those of the look before."""
    for name, tick in looks.after.ticks.items():
        known = looks.before.ticks.get(name)
        if known is None or known.set_aside_json != tick.set_aside_json:
            before = _samples(known)
            for sample in _samples(tick) - before:
                yield Line(tick.finished_at, Mark.SET_ASIDE, sample)


def _moved(looks: Comparison, known: BatchRow, batch: BatchRow) -> Iterator[Line]:
    if known.is_held and not batch.is_held:
        yield looks.line(None, Mark.CHANGED, "no longer held", batch.id)
    if batch.batch_start_time and known.batch_start_time != batch.batch_start_time:
        text = f"T is now {moment_text(batch.batch_start_time, looks.now)}"
        yield looks.line(None, Mark.CHANGED, text, batch.id)
    if known.runbook_id != batch.runbook_id:
        yield looks.line(None, Mark.CHANGED, "follows another version of its runbook", batch.id)
    if known.status in ENDED_BATCHES and batch.status not in ENDED_BATCHES:
        yield looks.line(batch.reopened_at, Mark.CHANGED, "reopened, to try again", batch.id)


def _found(batch: BatchRow, looks: Comparison) -> str:
    size = sum(looks.after.counts.get(batch.id, {}).values())
    start = batch.batch_start_time
    whence = f"T is {moment_text(start, looks.now)}" if start else f"made by {batch.created_by}"
    keys = ", ".join(member.member_key for member in looks.after.members_of(batch.id))
    return f"{counted(size, 'member')} of {batch.runbook_name}, {whence}{f': {keys}' if keys else ''}"


def _samples(tick: TickRow | None) -> set[str]:
    samples = orjson.loads(tick.set_aside_json).get("samples", []) if tick else []
    return {f"{sample['key'] or 'a row without key'}: {sample['detail']}" for sample in samples}
