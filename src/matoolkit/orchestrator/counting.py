"""Steps by outcome, counted once their moves are committed; labels are of the runbook, never of a member."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from matoolkit.domain.moves.step import (
    Fail,
    FailLost,
    FailUnsent,
    PollLater,
    RetryLater,
    RetryLost,
    StepMove,
    Succeed,
    TimeOut,
)
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import Dispatchable
from matoolkit.telemetry import metering

_OUTCOMES: Mapping[type[StepMove], str] = {
    Succeed: "succeeded",
    PollLater: "polled",
    RetryLater: "retried",
    RetryLost: "retried",
    Fail: "failed",
    TimeOut: "failed",
    FailLost: "failed",
    FailUnsent: "failed",
}


def count_outcomes(
    agenda: Agenda,
    kind: Kind,
    states: Mapping[int, Dispatchable],
    moves: Sequence[StepMove],
    moved: Collection[int],
) -> None:
    """Count the moves that were made, if and when the transaction commits."""
    if not metering.is_on():
        return
    counts = Counter(
        (agenda.batches[states[move.id].batch_id].runbook_name, outcome)
        for move in moves
        if move.id in moved and (outcome := _OUTCOMES.get(type(move)))
    )
    for (runbook, outcome), number in counts.items():
        labels = {"runbook": runbook, "kind": str(kind), "outcome": outcome}
        agenda.tx.on_commit.append(partial(metering.count, metering.STEPS, labels, number))
