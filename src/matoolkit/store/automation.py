"""Whether the scheduler may query a runbook's source (rule T1), and what its last tick did."""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Table, Update, select, true, update

from matoolkit.domain.keys import folded
from matoolkit.store.schema import runbook_automation_settings, runbook_ticks
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import insert_each, select_records
from matoolkit.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """Whether a runbook is automated, and who decided it."""

    runbook_name: str
    automation_enabled: bool
    enabled_at: datetime | None
    enabled_by: str | None
    disabled_at: datetime | None
    disabled_by: str | None


@dataclass(frozen=True, slots=True)
class TickRow:
    """What the last tick did for a runbook."""

    runbook_name: str
    runbook_version: int
    started_at: datetime
    finished_at: datetime
    queried: bool
    rows_read: int = 0
    rows_set_aside: int = 0
    rows_ignored: int = 0
    batches_created: int = 0
    batches_rescheduled: int = 0
    batches_held: int = 0
    members_added: int = 0
    members_removed: int = 0
    members_moved: int = 0
    members_returned: int = 0
    members_refreshed: int = 0
    phases_dispatched: int = 0
    set_aside_json: str = "{}"
    remarks_json: str = "[]"


@dataclass(frozen=True, slots=True)
class _Key:
    runbook_key: str


def enable_automation(tx: Transaction, runbook_name: str, by: str, at: datetime) -> None:
    """Let the scheduler query the source of a runbook."""
    _put(tx, runbook_automation_settings, runbook_name, automation_enabled=True, enabled_at=at, enabled_by=by)


def disable_automation(tx: Transaction, runbook_name: str, by: str, at: datetime) -> None:
    """Keep the scheduler from querying the source of a runbook; what is in flight goes on."""
    values = {"automation_enabled": False, "disabled_at": at, "disabled_by": by}
    _put(tx, runbook_automation_settings, runbook_name, **values)


def automation_of(tx: Transaction, runbook_name: str) -> AutomationRow | None:
    """Return what was decided for a runbook; nothing means that it was never automated."""
    return next(iter(tx.rows(AutomationRow, _settings_of(tx, folded(runbook_name)))), None)


@prepared
def _settings_of(_draft: Drafting, key: str) -> Select[Any]:
    query = select_records(AutomationRow, runbook_automation_settings)
    return query.where(runbook_automation_settings.c.runbook_key == key)


def automated_runbooks(tx: Transaction) -> list[str]:
    """Return the folded names of the runbooks that are automated."""
    return sorted(tx.values(_automated(tx)))


@prepared
def _automated(_draft: Drafting) -> Select[Any]:
    table = runbook_automation_settings
    return select(table.c.runbook_key).where(table.c.automation_enabled == true())


def record_tick(tx: Transaction, tick: TickRow) -> None:
    """Keep what this tick did for a runbook, in place of the one before."""
    values = {field.name: getattr(tick, field.name) for field in fields(TickRow)}
    _put(tx, runbook_ticks, values.pop("runbook_name"), **values)


def last_ticks(tx: Transaction) -> list[TickRow]:
    """Return the last tick of every runbook, by name."""
    return tx.rows(TickRow, select_records(TickRow, runbook_ticks).order_by(runbook_ticks.c.runbook_key))


def last_tick(tx: Transaction, runbook_name: str) -> TickRow | None:
    """Return the last tick of a runbook, if it had one."""
    query = select_records(TickRow, runbook_ticks)
    same = runbook_ticks.c.runbook_key == folded(runbook_name)
    return next(iter(tx.rows(TickRow, query.where(same))), None)


def _put(tx: Transaction, table: Table, runbook_name: str, **values: Any) -> None:
    key = _Key(folded(runbook_name))
    tx.execute(insert_each(tx, table, [key], {"runbook_name": runbook_name, **values}, ("runbook_key",)))
    tx.execute(_put_again(tx, key.runbook_key, Named(values), table=table))


@prepared
def _put_again(_draft: Drafting, key: str, values: Named, *, table: Table) -> Update:
    return update(table).where(table.c.runbook_key == key).values(values)
