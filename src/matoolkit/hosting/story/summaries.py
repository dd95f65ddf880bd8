"""Where each batch stands, in a few words."""

from datetime import datetime

from matoolkit.domain.states import ENDED_BATCHES, MemberStatus, PhaseStatus
from matoolkit.hosting.story.lines import Line, Mark, moment_text
from matoolkit.hosting.story.look import Look
from matoolkit.store.batches import BatchRow
from matoolkit.words import counted

_WORDS = {MemberStatus.ACTIVE: "migrated", MemberStatus.FAILED: "failed", MemberStatus.REMOVED: "left"}


def outcome_of(batch: BatchRow, look: Look) -> str:
    """Say how the members of a batch ended."""
    counts = look.counts.get(batch.id, {})
    return ", ".join(f"{counts[status]} {word}" for status, word in _WORDS.items() if counts.get(status))


def summaries(look: Look, now: datetime) -> list[Line]:
    """Say for each batch where it stands, after a restart."""
    return [
        Line(batch.detected_at, Mark.FOUND, _summary_of(batch, look, now), batch.id)
        for batch in sorted(look.batches.values(), key=lambda batch: batch.id)
    ]


def _summary_of(batch: BatchRow, look: Look, now: datetime) -> str:
    if batch.status in ENDED_BATCHES:
        return f"{batch.status}: {outcome_of(batch, look)}"
    members = counted(look.counts.get(batch.id, {}).get(MemberStatus.ACTIVE, 0), "member")
    waiting = [phase for phase in look.phases_of(batch.id) if phase.status is PhaseStatus.PENDING and phase.due_at]
    coming = min(waiting, key=lambda phase: (phase.due_at, phase.phase_index), default=None)
    if coming is None or coming.due_at is None:
        return f"{batch.status}: {members}"
    return f"{batch.status}: {members}, {coming.phase_name} comes at {moment_text(coming.due_at, now)}"
