"""Numbers for Prometheus, read when they are asked for; never a member's key as a label."""

from collections.abc import Iterable, Iterator

from matoolkit.store import Store
from matoolkit.store.automation import last_ticks
from matoolkit.store.counts import batch_counts
from matoolkit.store.deadletters import open_dead_letters
from matoolkit.store.failures import OpenFailures, open_failures
from matoolkit.store.phases import due_phases

_MOST_COUNTED = 1000

Sample = tuple[dict[str, str], float]


def metrics_text(store: Store) -> str:
    """Return all metrics in Prometheus' text format."""
    with store.reading() as tx:
        now = tx.time()
        batches = [
            ({"runbook": row.runbook_name, "status": str(row.status)}, float(row.count)) for row in batch_counts(tx)
        ]
        ticks = [({"runbook": row.runbook_name}, (now - row.finished_at).total_seconds()) for row in last_ticks(tx)]
        letters = float(len(open_dead_letters(tx, limit=_MOST_COUNTED)))
        failed = [(_cause(row), float(row.members)) for row in open_failures(tx)]
        overdue = [phase.due_at for phase in due_phases(tx, now, limit=1) if phase.due_at is not None]
    lag = max(((now - due).total_seconds() for due in overdue), default=0.0)
    lines = [
        *_family("matoolkit_batches", "Batches by runbook and status.", batches),
        *_family("matoolkit_failed_members", "Failed members of unfinished batches by cause, the 100 largest.", failed),
        *_family("matoolkit_tick_age_seconds", "Seconds since the last tick of a runbook.", ticks),
        *_family("matoolkit_dead_letters_open", "Open dead letters, counted up to 1000.", [({}, letters)]),
        *_family("matoolkit_phase_lag_seconds", "How long the longest overdue phase has waited.", [({}, lag)]),
    ]
    return "\n".join(lines) + "\n"


def _cause(group: OpenFailures) -> dict[str, str]:
    # The text of an error may name a member; its fingerprint does not.
    named = {"type": group.error_type or "", "cause": group.fingerprint or ""}
    return {"runbook": group.runbook_name, "step": group.step_name, **named}


def _family(name: str, meaning: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} gauge"
    for labels, value in samples:
        told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{told}}} {value:g}" if told else f"{name} {value:g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
