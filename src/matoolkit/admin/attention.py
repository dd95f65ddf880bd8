"""What needs a person, at one moment: one list for the first page, the admin API and the command line (rule U6).

Its cost does not grow with members that are well: looks count, none lists members, and their number is fixed.
To add a kind, name it in `MatterKind`, give it a look in `words.py`, and add a function to `_LOOKS`. What waits for a
person's decision comes from `decisions.py`, and is in the inbox too.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from matoolkit.admin.decisions import (
    budgets,
    dead_letters,
    held_batches,
    late_phases,
    pressing_approvals,
    standing_pauses,
)
from matoolkit.admin.matters import Matter, MatterKind
from matoolkit.admin.overdue import phases_that_nothing_keeps
from matoolkit.admin.silence import SilentWorker, silent_workers
from matoolkit.store import Store, Transaction
from matoolkit.store.automation import last_ticks
from matoolkit.store.leases import Lease, known_leases
from matoolkit.store.unresolved import (
    BatchFailure,
    FailingRunbook,
    PendingPhase,
    failing_runbooks,
    failures_of_inits,
    failures_of_members,
    failures_of_undo,
    next_phase,
)
from matoolkit.words import counted

# More of a kind are counted; the command of the last item lists them.
_MOST_OF_A_KIND = 6
_MOST_CAUSES = 4
_LONGEST_CAUSE = 120
# Failures of a batch that has ended are news for a week; the report of the batch keeps them for ever.
_NEWS = timedelta(days=7)
# A phase begins with a tick, and the usual interval of ticks is five minutes.
OVERDUE = timedelta(minutes=15)
_SCHEDULER = "scheduler"
_SCHEDULER_AWAY = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Attention:
    """What needs a person, and what comes next by itself."""

    at: datetime
    matters: Sequence[Matter]
    next_phase: PendingPhase | None
    last_tick_at: datetime | None

    @property
    def things(self) -> int:
        """How many things need a person, those that are only counted included."""
        return sum(matter.things for matter in self.matters)


def what_needs_a_person(store: Store) -> Attention:
    """Look at everything that may need a person."""
    with store.reading() as tx:
        at = tx.time()
        matters = [matter for look in _LOOKS for matter in _cut(look(tx, at))]
        ticks = [tick.finished_at for tick in last_ticks(tx)]
        return Attention(at, matters, next_phase(tx, at), max(ticks, default=None))


def _cut(found: Sequence[Matter]) -> list[Matter]:
    """Keep the first of a kind, and let one more stand for the others."""
    if len(found) <= _MOST_OF_A_KIND:
        return list(found)
    shown, rest = found[: _MOST_OF_A_KIND - 1], found[_MOST_OF_A_KIND - 1 :]
    kind = rest[0].kind
    page, command = _LISTS[kind]
    names = ", ".join(_unique(matter.runbook_name for matter in rest))
    more = Matter(kind, f"{len(rest):,} more like this", names[:_LONGEST_CAUSE], rest[0].since, page, command)
    return [*shown, _standing_for(more, len(rest))]


def _standing_for(matter: Matter, things: int) -> Matter:
    return Matter(matter.kind, matter.sentence, matter.detail, matter.since, matter.page, matter.command, things=things)


def _overdue(tx: Transaction, at: datetime) -> list[Matter]:
    late = sorted(phases_that_nothing_keeps(tx, at - OVERDUE, at), key=attrgetter("batch_id", "due_at"))
    found = [_overdue_of(list(phases)) for _, phases in groupby(late, attrgetter("batch_id"))]
    return sorted(found, key=attrgetter("since"))


def _overdue_of(phases: Sequence[PendingPhase]) -> Matter:
    first, others = phases[0], len(phases) - 1
    more = f", and {counted(others, 'phase')} after it" if others else ""
    return Matter(
        MatterKind.OVERDUE,
        f"{first.phase_name} of batch {first.batch_id} is due and has not begun{more}",
        f"{first.runbook_name}; the scheduler begins phases, so look at its log",
        first.due_at,
        f"/batches/{first.batch_id}",
        f"matoolkit batch get {first.batch_id}",
        *(first.batch_id, first.batch_start_time, first.runbook_name),
    )


def _scheduler(tx: Transaction, _: datetime) -> list[Matter]:
    """Tell that no scheduler works where one has worked; its lease runs out by the clock of locks."""
    now = tx.lock_time()
    away = [lease for lease in known_leases(tx) if lease.name == _SCHEDULER]
    return [_away(tx, lease) for lease in away if now - lease.expires_at > _SCHEDULER_AWAY]


def _away(tx: Transaction, lease: Lease) -> Matter:
    return Matter(
        MatterKind.SCHEDULER,
        "No scheduler is at work",
        f"the last one was {lease.holder}; nobody joins a batch and no phase begins before one runs again",
        tx.calendar_time(lease.expires_at),
        "/workers",
        "matoolkit scheduler run",
    )


def _undo_failures(tx: Transaction, _: datetime) -> list[Matter]:
    return _by_batch(failures_of_undo(tx), _undo_failed)


def _undo_failed(causes: Sequence[BatchFailure]) -> Matter:
    first, total = causes[0], sum(cause.count for cause in causes)
    return Matter(
        MatterKind.UNDO_FAILED,
        f"{counted(total, 'undo step')} failed in batch {first.batch_id}",
        _told(causes),
        min(cause.first_at for cause in causes),
        f"/undo-failures?batch={first.batch_id}",
        f"matoolkit undo-failure list --batch {first.batch_id}",
        *(first.batch_id, first.batch_start_time, first.runbook_name),
    )


def _failures(tx: Transaction, at: datetime) -> list[Matter]:
    inits = _by_batch(failures_of_inits(tx, at - _NEWS), _init_failed)
    members = _by_batch(failures_of_members(tx, at - _NEWS), _members_failed)
    return sorted([*inits, *members], key=attrgetter("since"))


def _init_failed(causes: Sequence[BatchFailure]) -> Matter:
    first = causes[0]
    return Matter(
        MatterKind.FAILED,
        f"The init of batch {first.batch_id} failed, so no phase of it begins",
        f"{first.runbook_name}: {_cause(first)}",
        first.first_at,
        f"/batches/{first.batch_id}",
        f"matoolkit batch retry-init {first.batch_id}",
        *(first.batch_id, first.batch_start_time, first.runbook_name),
    )


def _members_failed(causes: Sequence[BatchFailure]) -> Matter:
    first, total = causes[0], sum(cause.count for cause in causes)
    reasons = f", for {len(causes)} reasons" if len(causes) > 1 else ""
    return Matter(
        MatterKind.FAILED,
        f"{counted(total, 'member')} of batch {first.batch_id} failed{reasons}",
        _told(causes),
        min(cause.first_at for cause in causes),
        f"/batches/{first.batch_id}#failures",
        f"matoolkit batch failures {first.batch_id}",
        *(first.batch_id, first.batch_start_time, first.runbook_name),
    )


def _by_batch(found: Iterable[BatchFailure], tell: Callable[[Sequence[BatchFailure]], Matter]) -> list[Matter]:
    """Make one matter of all failures of a batch; they come with the largest first, and keep that order."""
    ordered = sorted(found, key=attrgetter("batch_id"))
    matters = [tell(list(causes)) for _, causes in groupby(ordered, attrgetter("batch_id"))]
    return sorted(matters, key=attrgetter("since", "batch_id"))


def _told(causes: Sequence[BatchFailure]) -> str:
    told = [f"{cause.count:,} {_cause(cause)}" for cause in causes[:_MOST_CAUSES]]
    more = len(causes) - _MOST_CAUSES
    return " · ".join([*told, f"and {more:,} more"] if more > 0 else told)


def _cause(cause: BatchFailure) -> str:
    text = cause.error or "no error was kept"
    return f"{cause.step_name}: {text if len(text) <= _LONGEST_CAUSE else f'{text[: _LONGEST_CAUSE - 1]}…'}"


def _sources(tx: Transaction, _: datetime) -> list[Matter]:
    return [_failing(runbook) for runbook in failing_runbooks(tx)]


def _failing(runbook: FailingRunbook) -> Matter:
    return Matter(
        MatterKind.SOURCE,
        f"The last tick of {runbook.name} failed",
        f"{runbook.last_error}; the next tick tries again",
        runbook.read_at or runbook.last_error_at,
        f"/runbooks/{runbook.name}",
        f"matoolkit runbook status {runbook.name}",
        runbook_name=runbook.name,
    )


def _silent(tx: Transaction, at: datetime) -> list[Matter]:
    workers = sorted(silent_workers(tx, at), key=attrgetter("since", "worker_id"))
    return [_silence(worker) for worker in workers]


def _silence(worker: SilentWorker) -> Matter:
    jobs = f"{counted(worker.jobs, 'job')}{' or more' if worker.may_be_more else ''}"
    return Matter(
        MatterKind.SILENT,
        f"{worker.worker_id} has jobs and says nothing",
        f"{jobs} out, each lost when its time is over; a function that takes that long looks the same",
        worker.since,
        "/workers",
        "matoolkit worker catalogue",
    )


def _unique(names: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name is not None))


# One for each kind, in the order of the kinds; what they find is in the order of its age.
_LOOKS: Sequence[Callable[[Transaction, datetime], list[Matter]]] = (
    held_batches,
    late_phases,
    budgets,
    pressing_approvals,
    _overdue,
    _scheduler,
    _undo_failures,
    _failures,
    _sources,
    _silent,
    dead_letters,
    standing_pauses,
)
_LISTS = {
    MatterKind.HELD: ("/holds", "matoolkit hold list"),
    MatterKind.LATE: ("/batches?status=active", "matoolkit inbox"),
    MatterKind.BUDGET: ("/batches?status=active", "matoolkit inbox"),
    MatterKind.APPROVAL: ("/batches", "matoolkit approval list"),
    MatterKind.PAUSED: ("/batches", "matoolkit gate list"),
    MatterKind.OVERDUE: ("/batches?status=active", "matoolkit batch list --status active"),
    MatterKind.UNDO_FAILED: ("/undo-failures", "matoolkit undo-failure list --all"),
    MatterKind.FAILED: ("/batches", "matoolkit batch list"),
    MatterKind.SOURCE: ("/runbooks", "matoolkit runbook list"),
    MatterKind.SILENT: ("/workers", "matoolkit worker catalogue"),
    MatterKind.DEAD_LETTER: ("/dead-letters", "matoolkit dead-letter list --all"),
}
