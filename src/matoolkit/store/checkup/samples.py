"""Every function of the store that takes a transaction, and made-up arguments of the right types to call it with."""

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from matoolkit import store
from matoolkit.domain.moves import Move
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves.step import StepMove
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.ids import Kind
from matoolkit.store.datanames import DataTableName
from matoolkit.store.datatables import DataRow, DataTable
from matoolkit.store.queue import NewQueued
from matoolkit.store.sql.transaction import Transaction

# These make statements for others to run, take no transaction of a caller, or have nothing to say to SQL Server.
_NOT_STATEMENTS = {
    "store.upgrade",
    "store.listening",
    "store.moves.make_alike",
    "store.moves.make_each",
    "store.noting",
    "store.gatetimes.count_waits",
}
_LIMIT = 7


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Find every function of the store that takes a transaction."""
    for found in pkgutil.iter_modules(store.__path__):
        name = f"store.{found.name}"
        if found.ispkg or name in _NOT_STATEMENTS:
            continue
        module = importlib.import_module(f"matoolkit.{name}")
        for function in vars(module).values():
            if _is_statement_of(module.__name__, function) and f"{name}.{function.__name__}" not in _NOT_STATEMENTS:
                yield f"{name}.{function.__name__}", function


def _is_statement_of(module: str, thing: Any) -> bool:
    if not inspect.isfunction(thing) or thing.__module__ != module or thing.__name__.startswith("_"):
        return False
    return "tx" in inspect.signature(thing).parameters


class Samples:
    """Values of every type that a function of the store takes: one number, one time, one data table."""

    def __init__(self, number: int, at: datetime, place: DataTableName, data_table: DataTable) -> None:
        texts = {"name": place.name, "schema": place.schema, "sources": "Email", "hold_json": "{}"}
        self._made: dict[Any, Callable[[str], Any]] = {
            int: lambda name: _LIMIT if name in ("limit", "most") else number,
            str: lambda name: texts.get(name, "text"),
            bool: lambda _: True,
            datetime: lambda _: at,
            timedelta: lambda _: timedelta(minutes=1),
            Kind: lambda _: Kind.STEP,
            DataTable: lambda _: data_table,
            # A statement for each row of the table.
            Sequence[StepMove]: lambda _: [self._of(one) for one in typing.get_args(StepMove)],
            Move[PhaseStatus]: lambda _: phase_moves.COMPLETE,
            Move[BatchStatus]: lambda _: batch_moves.COMPLETE,
            # Two of one topic; by the answer of a stand-in only one is inserted.
            Sequence[NewQueued]: lambda _: [
                NewQueued("topic", "subscription", f"message-{number}", "type", "{}", "{}", at, at) for number in (1, 2)
            ],
            Sequence[DataRow]: lambda _: [
                DataRow("anna", at, b"\1" * 16, list("abc")),
                DataRow("ffff", at, b"\2" * 16, ["d", None, None]),
            ],
        }

    def arguments_for(self, function: Callable[..., Any], tx: Transaction) -> dict[str, Any]:
        """Make up what a function is called with."""
        hints = typing.get_type_hints(function)
        names = inspect.signature(function).parameters
        return {"tx": tx} | {name: self._of(hints[name], name) for name in names if name != "tx"}

    def _of(self, kind: Any, name: str = "") -> Any:
        if kind in self._made:
            return self._made[kind](name)
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return self._of(next(one for one in inner if one is not type(None)), name)
        if origin in (Collection, Sequence):
            return [self._of(inner[0], name)]
        if is_dataclass(kind):
            hints = typing.get_type_hints(kind)
            made = {field.name: self._of(hints[field.name], field.name) for field in fields(kind)}
            return kind(**made)  # type: ignore[operator]
        if not issubclass(kind, StrEnum):
            raise TypeError(f"there is no sample of {kind}")
        return next(iter(kind))
