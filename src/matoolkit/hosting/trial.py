"""What `matoolkit up` runs on: a runbook of your own, the demo, or what its folder has already."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import orjson

from matoolkit.admin.publishing import publish
from matoolkit.clock import Clock, Pace
from matoolkit.errors import InvalidRunbook, NotForTrying, OtherSpeed, UnreadableFile
from matoolkit.hosting import demo
from matoolkit.hosting.folder import ROWS, SOURCE, TENANT
from matoolkit.hosting.tenant import fill
from matoolkit.privacy import private_file
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.parse import Report, lint_runbook
from matoolkit.runbook.query import on_rows
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.store import Store
from matoolkit.store.pace import keep_pace, stored_pace
from matoolkit.store.runbooks import latest_version, runbook_names
from matoolkit.worker.tenant import StateFile, Tenant

_BY = "matoolkit up"
_READABLE = frozenset({".csv", ".xlsx"})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trial:
    """A runbook to try: its file, what is in it, and a file with rows that stands for its source."""

    file: str
    report: Report
    rows: Path | None = None

    @property
    def name(self) -> str:
        """The name of the runbook; without errors it has one."""
        if self.report.runbook is None:
            raise InvalidRunbook(self.report.findings)
        return self.report.runbook.name


def trial_of(file: str, content: bytes, rows: Path | None = None) -> Trial:
    """Check a runbook of your own, and whether its query can read a file of rows, before anything is started."""
    report = lint_runbook(content[: MAX_BYTES + 1])
    if rows is not None and report.runbook is not None:
        _check_rows(report.runbook.data_source, rows)
    return Trial(file, report, rows.absolute() if rows else None)


def _check_rows(source: DataSource, rows: Path) -> None:
    if not rows.is_file():
        raise UnreadableFile(str(rows), "there is no such file")
    if rows.suffix.casefold() not in _READABLE:
        raise NotForTrying(f"'{rows.name}' is neither CSV nor a workbook", "name a .csv or .xlsx file")
    try:
        on_rows(source.query, source.type, datetime.min.replace(tzinfo=UTC))
    except ValueError as why:
        raise NotForTrying(str(why), "put a view behind the query, and let it read that alone") from None


def begin_pace(store: Store, speed: int | None, now: datetime) -> Pace:
    """Return how fast the calendar of a database runs; the first start decides it, and where it begins (rule U5)."""
    with store.transaction() as tx:
        known = stored_pace(tx)
        if known is None:
            # What ran here before ran at the pace of the clock.
            known = Pace(1 if runbook_names(tx) else speed or 1, now)
            keep_pace(tx, known)
        if speed is not None and speed != known.speed:
            raise OtherSpeed(known.speed, speed)
    return known


def begin(store: Store, trial: Trial | None, now: datetime) -> bool:
    """Publish what is to run, unless the database knows it, and return whether the database knew nothing at all.

    Publishing comes last: after a crash before it, the next start does everything again.
    """
    with store.reading() as tx:
        is_first = not runbook_names(tx)
        known = latest_version(tx, trial.name) if trial else None
    if is_first:
        TENANT.unlink(missing_ok=True)
    if trial is not None:
        _remember_rows(trial)
        text = trial.report.source.text
        if known is None:
            publish(store, text, by=_BY, now=now, enable=True)
        elif known.yaml_content != text:
            log.info("%s is not what is published: `matoolkit runbook publish %s`", trial.file, trial.file)
    elif is_first:
        demo.make_source(SOURCE, now)
        publish(store, demo.RUNBOOK.read_text(encoding="utf-8"), by=_BY, now=now, enable=True)
    return is_first


def remembered_rows() -> dict[str, Path]:
    """Return which file of rows stands for the source of which runbook."""
    try:
        return {name: Path(path) for name, path in orjson.loads(ROWS.read_bytes()).items()}
    except FileNotFoundError:
        return {}


def _remember_rows(trial: Trial) -> None:
    if trial.rows is None:
        return
    known = {**remembered_rows(), trial.name: trial.rows}
    unfinished = ROWS.with_suffix(".new")
    private_file(unfinished)
    unfinished.write_bytes(orjson.dumps({name: str(path) for name, path in known.items()}))
    unfinished.replace(ROWS)


def open_tenant(clock: Clock) -> Tenant:
    """Open the tenant to which people move, as it was left."""
    tenant = Tenant(clock, StateFile(TENANT))
    if tenant.is_new:
        fill(tenant, demo.TENANT_AT_FIRST)
    return tenant
