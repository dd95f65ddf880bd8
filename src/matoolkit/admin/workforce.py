"""Workers as a person looks at them: what each can do, what it is at work on, and what runbooks miss."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.admin.catalogue import announced_parameters
from matoolkit.admin.silence import SilentWorker, silent_workers
from matoolkit.domain.messages import AnnouncedParameter
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.catalogue import FunctionRow, known_functions
from matoolkit.store.jobsout import JobsOut, jobs_out
from matoolkit.store.runbooks import RunbookRow, active_runbooks


@dataclass(frozen=True, slots=True)
class WorkerFunction:
    """A function of a worker; without parameters if it was announced in a form unknown here."""

    name: str
    parameters: Sequence[AnnouncedParameter] | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker id: what it announced and when, and which jobs it has. One that has announced nothing may have jobs."""

    id: str
    announced_at: datetime | None
    functions: Sequence[WorkerFunction]
    out: JobsOut | None
    silent: SilentWorker | None


@dataclass(frozen=True, slots=True)
class Missing:
    """Functions that the active version of a runbook needs of a worker that has not announced them."""

    runbook_name: str
    version: int
    worker_id: str
    function_names: Sequence[str]
    is_worker_known: bool


@dataclass(frozen=True, slots=True)
class Workforce:
    """All workers at one moment, and what runbooks miss."""

    at: datetime
    workers: Sequence[Worker]
    missing: Sequence[Missing]


def look_at_workers(store: Store) -> Workforce:
    """Look at all workers, and at the functions that active runbooks need of them."""
    with store.reading() as tx:
        at = tx.time()
        announced, out = _announced(tx), {one.worker_id: one for one in jobs_out(tx)}
        silent = {one.worker_id: one for one in silent_workers(tx, at)}
        names = sorted({*announced, *out})
        workers = [_worker(name, announced.get(name, ()), out.get(name), silent.get(name)) for name in names]
        return Workforce(at, workers, list(_missing(active_runbooks(tx), announced)))


def _announced(tx: Transaction) -> Mapping[str, Sequence[FunctionRow]]:
    found: dict[str, list[FunctionRow]] = defaultdict(list)
    for row in known_functions(tx):
        found[row.worker_id].append(row)
    return found


def _worker(name: str, rows: Sequence[FunctionRow], out: JobsOut | None, silent: SilentWorker | None) -> Worker:
    functions = [WorkerFunction(row.function_name, announced_parameters(row)) for row in rows]
    return Worker(name, max((row.announced_at for row in rows), default=None), functions, out, silent)


def _missing(runbooks: Sequence[RunbookRow], announced: Mapping[str, Sequence[FunctionRow]]) -> Iterator[Missing]:
    known = {worker: {row.function_name.casefold() for row in rows} for worker, rows in announced.items()}
    for runbook in runbooks:
        for worker, names in _needed(runbook).items():
            if missing := [name for name in names if name.casefold() not in known.get(worker, ())]:
                yield Missing(runbook.name, runbook.version, worker, missing, worker in known)


def _needed(runbook: RunbookRow) -> Mapping[str, Sequence[str]]:
    try:
        steps = parse_runbook(runbook.yaml_content).every_step()
    except InvalidRunbook:
        # A document that today's rules refuse does not run.
        return {}
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for step in steps:
        found[step.worker_id] |= dict.fromkeys(step.known_functions)
    return {worker: list(names) for worker, names in found.items()}
