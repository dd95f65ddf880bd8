"""What the state says in numbers, read when they are asked for: for `/metrics` and for OpenTelemetry alike.

The number of queries does not depend on how much there is, and no label holds the key of a member.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from matoolkit.admin.overdue import phases_that_nothing_keeps
from matoolkit.domain.gates import GateKind
from matoolkit.store import Store
from matoolkit.store.automation import last_ticks
from matoolkit.store.counts import batch_counts
from matoolkit.store.deadletters import open_dead_letters
from matoolkit.store.failures import OpenFailures, open_failures
from matoolkit.store.gates import gates_in_force
from matoolkit.store.outbox import waiting_count
from matoolkit.store.queue import queue_lengths
from matoolkit.store.undofailures import undo_failure_counts
from matoolkit.telemetry.metering import (
    BATCHES,
    DEAD_LETTERS,
    FAILED_MEMBERS,
    GATES,
    OUTBOX_LENGTH,
    PHASE_LAG,
    QUEUE_LENGTH,
    TICK_AGE,
    UNDO_FAILURES,
    Measure,
)

_MOST_COUNTED = 1000

Sample: TypeAlias = tuple[dict[str, str], float]


def measured(store: Store) -> Mapping[Measure, Sequence[Sample]]:
    """Return all gauges, each with its samples by label."""
    with store.reading() as tx:
        now = tx.time()
        due = [phase.due_at for phase in phases_that_nothing_keeps(tx, now, now)]
        shut = Counter(gate.kind for gate in gates_in_force(tx, now))
        return {
            BATCHES: [
                ({"runbook": row.runbook_name, "status": str(row.status)}, float(row.count)) for row in batch_counts(tx)
            ],
            GATES: [({"kind": str(kind)}, float(shut[kind])) for kind in GateKind],
            FAILED_MEMBERS: [(_cause(row), float(row.members)) for row in open_failures(tx)],
            UNDO_FAILURES: [({"runbook": row.runbook_name}, float(row.count)) for row in undo_failure_counts(tx)],
            TICK_AGE: [
                ({"runbook": row.runbook_name}, (now - row.finished_at).total_seconds()) for row in last_ticks(tx)
            ],
            DEAD_LETTERS: [({}, float(len(open_dead_letters(tx, limit=_MOST_COUNTED))))],
            PHASE_LAG: [({}, max(((now - at).total_seconds() for at in due), default=0.0))],
            QUEUE_LENGTH: [
                ({"topic": topic, "subscription": name}, float(count))
                for (topic, name), count in queue_lengths(tx).items()
            ],
            OUTBOX_LENGTH: [({}, float(waiting_count(tx)))],
        }


def _cause(group: OpenFailures) -> dict[str, str]:
    # The text of an error may name a member; its fingerprint does not.
    named = {"type": group.error_type or "", "cause": group.fingerprint or ""}
    return {"runbook": group.runbook_name, "step": group.step_name, **named}
