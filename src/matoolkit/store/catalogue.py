"""The functions that workers have announced (rule W6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, func, select

from matoolkit.store.schema import worker_functions
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class AnnouncedFunction:
    """A function that a worker says it has."""

    function_name: str
    parameters_json: str


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A function of a worker as it is stored."""

    worker_id: str
    function_name: str
    parameters_json: str
    announced_at: datetime


def announce_functions(tx: Transaction, worker_id: str, functions: Sequence[AnnouncedFunction], at: datetime) -> bool:
    """Replace the functions of a worker, unless it has announced newer ones; return whether it was done."""
    of_worker = worker_functions.c.worker_id == worker_id
    tx.execute(delete(worker_functions).where(of_worker, worker_functions.c.announced_at <= at))
    latest = tx.values(select(func.max(worker_functions.c.announced_at)).where(of_worker))[0]
    if latest is not None and latest > at:
        return False
    if functions:
        alike = {"worker_id": worker_id, "announced_at": at}
        tx.execute(insert_each(tx, worker_functions, functions, alike, ("worker_id", "function_name")))
    return True


def known_functions(tx: Transaction) -> list[FunctionRow]:
    """Return all functions of all workers, by worker and name."""
    return tx.rows(FunctionRow, _known(tx))


@prepared
def _known(_draft: Drafting) -> Select[Any]:
    order = (worker_functions.c.worker_id, worker_functions.c.function_name)
    return select_records(FunctionRow, worker_functions).order_by(*order)
