"""Runbooks as people look at them: all at a glance, and the document of one with what the linter finds in it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from matoolkit.admin.catalogue import known_catalogue
from matoolkit.admin.queries import latest_runbook
from matoolkit.domain.keys import folded
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import UnknownVersion
from matoolkit.runbook.parse import Report, lint_runbook
from matoolkit.store import Store
from matoolkit.store.automation import TickRow, automated_runbooks, last_ticks
from matoolkit.store.counts import batch_counts
from matoolkit.store.runbooks import RunbookRow, active_runbooks, runbook_names, runbook_versions


@dataclass(frozen=True, slots=True)
class RunbookGlance:
    """A runbook in one line: its active version, if one is active, its last tick, and its batches by status."""

    name: str
    active: RunbookRow | None
    is_automated: bool
    tick: TickRow | None
    batches: Mapping[BatchStatus, int]


@dataclass(frozen=True, slots=True)
class Document:
    """A version of a runbook, what the linter finds in it now, and all versions, newest first."""

    row: RunbookRow
    report: Report
    versions: Sequence[RunbookRow]

    @property
    def active(self) -> RunbookRow | None:
        """The version in use, if there is one."""
        return next((version for version in self.versions if version.is_active), None)

    @property
    def before(self) -> RunbookRow | None:
        """The version before this one."""
        return next((version for version in self.versions if version.version < self.row.version), None)


def runbook_glances(store: Store) -> list[RunbookGlance]:
    """Return all runbooks by name, those without an active version too."""
    with store.reading() as tx:
        active = {row.name: row for row in active_runbooks(tx)}
        automated = set(automated_runbooks(tx))
        ticks = {folded(tick.runbook_name): tick for tick in last_ticks(tx)}
        counts: dict[str, dict[BatchStatus, int]] = defaultdict(dict)
        for count in batch_counts(tx):
            counts[count.runbook_name][count.status] = count.count
        return [
            RunbookGlance(name, active.get(name), folded(name) in automated, ticks.get(folded(name)), counts[name])
            for name in runbook_names(tx)
        ]


def document_of(store: Store, name: str, version: int | None = None) -> Document:
    """Return a version of a runbook, or the active one, else the newest."""
    with store.reading() as tx:
        latest = latest_runbook(tx, name)
        versions = runbook_versions(tx, name)
        catalogue = known_catalogue(tx)
    numbers = {row.version: row for row in versions}
    wanted = latest.version if version is None else version
    if wanted not in numbers:
        raise UnknownVersion(latest.name, wanted, versions[0].version)
    row = numbers[wanted]
    return Document(row, lint_runbook(row.yaml_content, catalogue), versions)


def rows_set_aside(tick: TickRow | None) -> Mapping[str, Any]:
    """Return how many rows a tick set aside for which reason, and some of them: `counts` and `samples`."""
    told: dict[str, Any] = orjson.loads(tick.set_aside_json) if tick else {}
    return {"counts": told.get("counts") or {}, "samples": told.get("samples") or []}


def rows_left_alone(tick: TickRow | None) -> Sequence[Mapping[str, Any]]:
    """Return whom a tick left alone, and why."""
    remarks: list[dict[str, Any]] = orjson.loads(tick.remarks_json) if tick else []
    return remarks
