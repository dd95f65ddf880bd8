"""Runbooks: their versions; one version may be active."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Update, func, or_, select, true, union, update

from matoolkit.domain.keys import folded
from matoolkit.domain.states import OPEN_PHASES, OPEN_STEPS, UNFINISHED_BATCHES, BatchStatus, OverdueBehavior
from matoolkit.records import record
from matoolkit.store.datanames import DataTableName, data_table_name
from matoolkit.store.schema import batches, init_executions, phase_executions, runbooks
from matoolkit.store.sql.prepared import Drafting, Named, prepared
from matoolkit.store.sql.statements import columns_of, insert_each, is_any, records_among, select_records
from matoolkit.store.sql.transaction import Transaction

_ACTIVE = runbooks.c.is_active == true()


@dataclass(frozen=True, slots=True)
class RunbookRow:
    """A version of a runbook as it is stored."""

    id: int
    name: str
    version: int
    yaml_content: str
    content_hash: str
    data_table_name: str
    data_table_schema: str | None
    is_active: bool
    overdue_behavior: OverdueBehavior
    ignore_overdue_applied: bool
    rerun_init: bool
    published_by: str
    created_at: datetime
    last_error: str | None
    last_error_at: datetime | None
    read_at: datetime | None

    @property
    def data_table(self) -> DataTableName:
        """Where the rows of its query are."""
        return DataTableName(self.data_table_name, self.data_table_schema)


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to be published."""

    name: str
    yaml_content: str
    content_hash: str
    overdue_behavior: OverdueBehavior
    rerun_init: bool
    published_by: str


@dataclass(frozen=True, slots=True)
class _VersionToInsert:
    name: str
    name_key: str
    version: int
    data_table_name: str
    data_table_schema: str | None
    yaml_content: str
    content_hash: str
    overdue_behavior: OverdueBehavior
    rerun_init: bool
    published_by: str


def publish_version(tx: Transaction, new: NewVersion, at: datetime) -> RunbookRow:
    """Publish the next version of a runbook and make it the active one (rule V1).

    The name keeps the spelling of its first version. Two people who publish at the same moment get two
    versions, or one of them a conflict; never the same number.
    """
    key = folded(new.name)
    query = select_records(RunbookRow, runbooks).where(runbooks.c.name_key == key)
    versions = tx.rows(RunbookRow, tx.locking(query.order_by(runbooks.c.version), runbooks))
    name = versions[0].name if versions else new.name
    number = versions[-1].version + 1 if versions else 1
    row = _VersionToInsert(
        name=name,
        name_key=key,
        version=number,
        data_table_name=data_table_name(name, number, _is_taken(tx)),
        data_table_schema=tx.dialect.data_schema,
        yaml_content=new.yaml_content,
        content_hash=new.content_hash,
        overdue_behavior=new.overdue_behavior,
        rerun_init=new.rerun_init,
        published_by=new.published_by,
    )
    tx.execute(update(runbooks).where(runbooks.c.name_key == key, _ACTIVE).values(is_active=False))
    alike = {"is_active": True, "ignore_overdue_applied": False, "created_at": at}
    made = insert_each(tx, runbooks, [row], alike, returning=columns_of(RunbookRow, runbooks))
    return tx.rows(RunbookRow, made)[0]


def lock_runbook(tx: Transaction, name: str) -> None:
    """Lock a runbook for the transaction: nobody else publishes, switches it or lets people into its batches.

    A transaction that also locks batches locks them first, or two could wait for each other.
    """
    tx.values(_locked(tx, folded(name)))


@prepared
def _locked(draft: Drafting, key: str) -> Select[Any]:
    query = select(runbooks.c.id).where(runbooks.c.name_key == key).order_by(runbooks.c.version)
    return draft.locking(query, runbooks)


def latest_version(tx: Transaction, name: str) -> RunbookRow | None:
    """Return the newest version of a runbook, active or not."""
    return next(iter(tx.rows(RunbookRow, _latest(tx, folded(name)))), None)


@prepared
def _latest(_draft: Drafting, key: str) -> Select[Any]:
    query = select_records(RunbookRow, runbooks).where(runbooks.c.name_key == key)
    return query.order_by(runbooks.c.version.desc()).limit(1)


def runbook_names(tx: Transaction) -> list[str]:
    """Return the names of all runbooks, active or not."""
    return tx.values(select(runbooks.c.name).where(runbooks.c.version == 1).order_by(runbooks.c.name_key))


def active_runbooks(tx: Transaction) -> list[RunbookRow]:
    """Return the active version of every runbook that has one, by name."""
    return tx.rows(RunbookRow, _active(tx, Named()))


def runbooks_in_use(tx: Transaction) -> list[int]:
    """Return the versions that are active or that an unfinished batch follows."""
    return tx.values(_in_use(tx))


@prepared
def _in_use(_draft: Drafting) -> Select[Any]:
    followed = select(batches.c.runbook_id).where(is_any(batches.c.status, UNFINISHED_BATCHES))
    return select(runbooks.c.id).where(or_(_ACTIVE, runbooks.c.id.in_(followed))).order_by(runbooks.c.id)


@record
class UnderWay:
    """A version whose phases or init have not ended in a batch."""

    batch_id: int
    version: int


def versions_under_way(tx: Transaction) -> list[UnderWay]:
    """Return the versions that have something under way in unfinished batches: older ones than they follow too."""
    return tx.rows(UnderWay, _under_way(tx))


@prepared
def _under_way(_draft: Drafting) -> Select[Any]:
    of_phases = select(phase_executions.c.batch_id, phase_executions.c.runbook_version.label("version")).where(
        phase_executions.c.batch_id == batches.c.id,
        is_any(phase_executions.c.status, OPEN_PHASES),
        is_any(batches.c.status, UNFINISHED_BATCHES),
    )
    of_inits = select(init_executions.c.batch_id, init_executions.c.runbook_version.label("version")).where(
        init_executions.c.batch_id == batches.c.id,
        is_any(init_executions.c.status, OPEN_STEPS),
        is_any(batches.c.status, {BatchStatus.INIT_DISPATCHED}),
    )
    found = union(of_phases, of_inits).subquery("under_way")
    return select(found.c.batch_id, found.c.version).order_by(found.c.batch_id, found.c.version)


@prepared
def _active(_draft: Drafting, wanted: Named) -> Select[Any]:
    same = (runbooks.c[name] == value for name, value in wanted.items())
    return select_records(RunbookRow, runbooks).where(_ACTIVE, *same).order_by(runbooks.c.name_key)


def active_runbook(tx: Transaction, name: str) -> RunbookRow | None:
    """Return the active version of a runbook, if it has one."""
    return next(iter(tx.rows(RunbookRow, _active(tx, Named(name_key=folded(name))))), None)


def runbook_version(tx: Transaction, name: str, version: int) -> RunbookRow | None:
    """Return one version of a runbook, active or not."""
    return next(iter(tx.rows(RunbookRow, _numbered(tx, folded(name), version))), None)


@prepared
def _numbered(_draft: Drafting, key: str, version: int) -> Select[Any]:
    return select_records(RunbookRow, runbooks).where(runbooks.c.name_key == key, runbooks.c.version == version)


def runbook_versions(tx: Transaction, name: str) -> list[RunbookRow]:
    """Return all versions of a runbook, newest first."""
    query = select_records(RunbookRow, runbooks).where(runbooks.c.name_key == folded(name))
    return tx.rows(RunbookRow, query.order_by(runbooks.c.version.desc()))


def content_hashes(tx: Transaction, name: str) -> dict[int, str]:
    """Return the hash of the document of each version of a runbook, by the version's id."""
    return dict(tx.rows(lambda *pair: pair, _hashes(tx, folded(name))))


@prepared
def _hashes(_draft: Drafting, key: str) -> Select[Any]:
    return select(runbooks.c.id, runbooks.c.content_hash).where(runbooks.c.name_key == key).order_by(runbooks.c.id)


def runbooks_by_id(tx: Transaction, ids: Collection[int]) -> list[RunbookRow]:
    """Return versions, by id."""
    return records_among(tx, RunbookRow, runbooks, runbooks.c.id, ids)


def deactivate_version(tx: Transaction, name: str, version: int) -> bool:
    """Put the active version out of use (rule V7); says whether it was active."""
    this = (runbooks.c.name_key == folded(name), runbooks.c.version == version, _ACTIVE)
    return bool(tx.changed(update(runbooks).where(*this).values(is_active=False)))


def note_transition_done(tx: Transaction, runbook_id: int) -> bool:
    """Note that all batches in flight have made the transition to a version."""
    this = update(runbooks).where(runbooks.c.id == runbook_id)
    return bool(tx.changed(this.values(ignore_overdue_applied=True)))


def record_error(tx: Transaction, runbook_id: int, error: str, at: datetime) -> bool:
    """Record what went wrong with a runbook in this tick (rule T1)."""
    this = update(runbooks).where(runbooks.c.id == runbook_id)
    return bool(tx.changed(this.values(last_error=error, last_error_at=at)))


def clear_error(tx: Transaction, runbook_id: int) -> bool:
    """Forget the last error after a good tick; says whether there was one."""
    return bool(tx.changed(_cleared(tx, runbook_id)))


@prepared
def _cleared(_draft: Drafting, runbook_id: int) -> Update:
    this = update(runbooks).where(runbooks.c.id == runbook_id, runbooks.c.last_error.is_not(None))
    return this.values(last_error=None, last_error_at=None)


def note_read(tx: Transaction, runbook_id: int, at: datetime) -> bool:
    """Note that the source was read into the data table of a version."""
    return bool(tx.changed(_read(tx, runbook_id, at)))


@prepared
def _read(_draft: Drafting, runbook_id: int, at: datetime) -> Update:
    return update(runbooks).where(runbooks.c.id == runbook_id).values(read_at=at)


def last_read(tx: Transaction, name: str) -> RunbookRow | None:
    """Return the version with whose query a runbook's source was last read, if that has happened (rule O14)."""
    query = select_records(RunbookRow, runbooks).where(
        runbooks.c.name_key == folded(name), runbooks.c.read_at.is_not(None)
    )
    latest = query.order_by(runbooks.c.read_at.desc(), runbooks.c.version.desc()).limit(1)
    return next(iter(tx.rows(RunbookRow, latest)), None)


def _is_taken(tx: Transaction) -> Callable[[str], bool]:
    def is_taken(name: str) -> bool:
        query = select(func.count()).where(runbooks.c.data_table_name == name)
        # A table that we did not make belongs to somebody else; it must not become ours because of its name.
        return bool(tx.values(query)[0]) or tx.has_table(name, tx.dialect.data_schema)

    return is_taken
