"""What a tick saw and did not act on, counted and with examples, for people to look at (rule T5)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_SAMPLES = 5


class Seen(StrEnum):
    """Why a row changes nothing, in words."""

    MOVED_AFTER_START = "have another time in the source, but their batch has started: nobody moves after T"
    TIME_HAS_ENDED = "have a time whose batch has ended: it takes nobody"
    IN_MANUAL_BATCH = "are in a manual batch of this runbook that has not ended"
    BATCH_IS_HELD = "wait to join, because the batch is held"
    BATCH_WAS_REOPENED = "belong to a time whose batch was reopened by a retry: it takes nobody"
    TIME_IS_CLAIMED = "wait to join, because a batch that is held is to be moved to that time"
    START_HAS_PASSED = "belong to a batch whose T has passed: it takes nobody by itself; `matoolkit member include` can"
    TAKEN_BEFORE = (
        "are done, have failed or were undone at this very time: it takes nobody twice; `matoolkit member include` can"
    )
    UNDONE = "were undone in the batch of their time: it takes nobody twice; `matoolkit member include` can"
    EXCLUDED = "are excluded by a person; `matoolkit member include` ends that"
    DONE_BEFORE = "are done in another batch: nobody is migrated again by itself; `matoolkit member include` can"
    FAILED_THERE = "failed in the batch of that time, and stay failed"
    LEFT_WINDOW = "are no longer returned, but T is at most a tick away: the batch keeps them"
    WAITS_FOR_ITS_JOBS = "left their batch and join the other when their jobs and rollbacks have ended"
    BATCH_CHANGED = "were to change, but a person or another process changed their batch at that moment"
    UNDONE_IN_INTERVAL = "wait for the next interval, because they were undone in the batch of this one"
    INTERVAL_HAS_ENDED = "wait for the next interval, because the batch of this one has ended"


@dataclass(frozen=True, slots=True)
class Remark:
    """What was seen in a batch, or at a time that has none: how often, and for whom for example."""

    seen: Seen
    batch_id: int | None
    count: int
    samples: Sequence[str]


class Remarks:
    """Collects what is seen."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[Seen, int | None]] = Counter()
        self._samples: dict[tuple[Seen, int | None], list[str]] = {}

    def add(self, seen: Seen, key: str, batch_id: int | None = None) -> None:
        """Note what was seen for a member."""
        about = (seen, batch_id)
        self._counts[about] += 1
        samples = self._samples.setdefault(about, [])
        if len(samples) < _SAMPLES:
            samples.append(key)

    def all(self) -> list[Remark]:
        """Return what was seen, in the order in which it was first seen."""
        return [Remark(*about, count, self._samples[about]) for about, count in self._counts.items()]
