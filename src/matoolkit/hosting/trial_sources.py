"""The sources of runbooks under trial: a file may stand for one, and the tenant is told of people in its rows."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from matoolkit.clock import Clock
from matoolkit.duration import parse_duration
from matoolkit.hosting.demo import NAME as DEMO
from matoolkit.hosting.people import People, steps_forward
from matoolkit.ports import Piece, Source
from matoolkit.runbook.model import DataSource, Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.query import on_rows
from matoolkit.store import Store
from matoolkit.store.runbooks import active_runbooks
from matoolkit.worker.tenant import Tenant

_FROM_NOW = re.compile(r"now(?:\s*\+\s*([0-9]+[smhd]))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TrialSources:
    """Opens sources as runbooks describe them; `rows` are files that stand for them, by the names of runbooks.

    `origin` is what a time such as `now+3d` counts from: the first start, so that it stays the same.
    """

    store: Store
    tenant: Tenant
    open_source: Callable[[DataSource], Source]
    open_rows: Callable[[Path, Callable[[Any], Any]], Source]
    rows: Mapping[str, Path]
    clock: Clock
    origin: datetime
    _people: dict[str, People] = field(default_factory=dict)

    def open(self, data_source: DataSource) -> Source:
        """Return a source whose rows the tenant hears of before anybody works with them."""
        runbook = self._runbook_of(data_source)
        rows = self.rows.get(runbook.name) if runbook else None
        source = self._rows_for(data_source, rows) if rows else self.open_source(data_source)
        # The demo shows what happens when a group does not exist.
        if runbook is None or runbook.name == DEMO:
            return source
        return _Introducing(source, self._people_of(runbook))

    def _runbook_of(self, data_source: DataSource) -> Runbook | None:
        """Find whose source it is; an older version may have had another query."""
        with self.store.reading() as tx:
            runbooks = [parse_runbook(row.yaml_content) for row in active_runbooks(tx)]
        place = (data_source.connection, data_source.file)
        same = [one for one in runbooks if (one.data_source.connection, one.data_source.file) == place]
        return next((one for one in same if one.data_source == data_source), next(iter(same), None))

    def _rows_for(self, data_source: DataSource, rows: Path) -> Source:
        return _Standing(self.open_rows(rows, self._cell), data_source.type, self.clock)

    def _cell(self, cell: Any) -> Any:
        match = _FROM_NOW.fullmatch(cell.strip()) if isinstance(cell, str) else None
        if match is None:
            return cell
        at = self.origin + (parse_duration(match[1]) if match[1] else timedelta())
        return at.isoformat(sep=" ", timespec="seconds")

    def _people_of(self, runbook: Runbook) -> People:
        steps, known = steps_forward(runbook), self._people.get(runbook.name)
        if known is None or known.steps != steps:
            known = self._people[runbook.name] = People(self.tenant, steps)
        return known


@dataclass(frozen=True, slots=True)
class _Introducing:
    """A source of whose rows a tenant is told."""

    source: Source
    people: People

    def pieces(self, query: str) -> Iterator[Piece]:
        for piece in self.source.pieces(query):
            self.people.meet(piece)
            yield piece


@dataclass(frozen=True, slots=True)
class _Standing:
    """Rows that stand for a table of another source."""

    rows: Source
    source_type: str
    clock: Clock

    def pieces(self, query: str) -> Iterator[Piece]:
        return self.rows.pieces(on_rows(query, self.source_type, self.clock.now()))
