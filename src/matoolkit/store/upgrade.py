"""Bringing the tables to what this version of the program needs, and telling whether they are.

An upgrade is one transaction on every database: it happens whole or not at all, and two at once wait for
each other.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from matoolkit.crashpoints import crash_point
from matoolkit.errors import SchemaDamaged, SchemaMissing, SchemaTooNew, SchemaTooOld
from matoolkit.privacy import private_file
from matoolkit.store.comparison import left_out_differences
from matoolkit.store.dialect import Dialect
from matoolkit.store.schema import metadata
from matoolkit.store.sql.connections import changing_tables, looking_at_tables
from matoolkit.store.sql.transaction import Store

REVISION_APPLIED = crash_point("store.revision_applied")
_MIGRATIONS = Path(__file__).parent / "migrations"


class SchemaState(StrEnum):
    """How the tables stand to this version of the program."""

    CURRENT = "current"
    MISSING = "missing"
    OLD = "old"
    NEW = "new"
    UNKNOWN = "unknown"


_MEANING = {
    SchemaState.CURRENT: "up to date",
    SchemaState.MISSING: "no tables yet",
    SchemaState.OLD: "older than this version needs",
    SchemaState.NEW: "newer than this version",
    SchemaState.UNKNOWN: "there are tables, but no record of their version",
}
_TODO = {
    SchemaState.MISSING: "run `matoolkit db upgrade`",
    SchemaState.OLD: "run `matoolkit db upgrade`",
    SchemaState.NEW: "install the newer matoolkit",
    SchemaState.UNKNOWN: "give this database a name of its own, or restore a backup",
}


@dataclass(frozen=True, slots=True)
class SchemaStatus:
    """The schema version that was found, the one that is needed, and what lies between."""

    state: SchemaState
    found: str | None
    wanted: str
    pending: tuple[str, ...]

    @property
    def said(self) -> str:
        """The versions and what they mean, for people."""
        return f"schema {self.found or 'none'}, needed {self.wanted}: {_MEANING[self.state]}"

    @property
    def todo(self) -> str | None:
        """What to do about it, if anything."""
        return _TODO.get(self.state)


def revisions() -> tuple[str, ...]:
    """Return the whole history, oldest first."""
    script = ScriptDirectory(str(_MIGRATIONS))
    return tuple(revision.revision for revision in reversed(list(script.walk_revisions())))


def schema_status(store: Store) -> SchemaStatus:
    """Look which schema the database has; a file that is not there yet is not made by looking."""
    if file_is_missing(store):
        history = revisions()
        return SchemaStatus(SchemaState.MISSING, None, history[-1], history)
    with looking_at_tables(store) as connection:
        return _status(connection)


def require_current_schema(store: Store) -> None:
    """Refuse to work on tables that do not fit; every service calls this before anything else."""
    status = schema_status(store)
    match status.state:
        case SchemaState.MISSING:
            raise SchemaMissing
        case SchemaState.OLD:
            raise SchemaTooOld(str(status.found), status.wanted)
        case SchemaState.NEW:
            raise SchemaTooNew(str(status.found), status.wanted)
        case SchemaState.UNKNOWN:
            raise SchemaDamaged(["there are tables, but no record of their version"])
        case SchemaState.CURRENT:
            return


def _make_place(store: Store) -> None:
    """Make the folder and the file of a database, for their owner alone; the files beside it take its permissions."""
    name = store.url.database
    if not store.dialect.is_file or name in (None, "", ":memory:"):
        return
    path = Path(str(name))
    path.parent.mkdir(0o700, parents=True, exist_ok=True)
    # If that cannot be done, the database says why.
    with suppress(OSError):
        private_file(path)


def upgrade(store: Store, to: str = "head") -> tuple[str, ...]:
    """Apply what is missing, up to a revision, and return the revisions that were applied."""
    _make_place(store)
    with changing_tables(store) as connection:
        status = _status(connection)
        if status.state is SchemaState.NEW:
            raise SchemaTooNew(str(status.found), status.wanted)
        if status.state is SchemaState.UNKNOWN:
            raise SchemaDamaged(["there are tables, but no record of their version"])
        command.upgrade(_config(connection=connection, on_version_apply=_revision_applied), to)
        return status.pending if to == "head" else status.pending[: status.pending.index(to) + 1]


def upgrade_script(dialect: Dialect) -> str:
    """Return the statements of the whole history, for a person to run."""
    script = StringIO()
    config = _config(dialect_name=dialect.name, dialect_opts=dict(dialect.writing_options), script=script)
    command.upgrade(config, "head", sql=True)
    return script.getvalue()


def schema_differences(store: Store) -> list[str]:
    """Compare the tables with what the program expects, and say what differs; tables of others are let be."""
    if file_is_missing(store):
        return ["there is no database yet"]
    with looking_at_tables(store) as connection:
        context = MigrationContext.configure(connection, opts={"include_object": _is_ours})
        found = [_described(difference) for difference in compare_metadata(context, metadata)]
        schema = store.dialect.data_schema
        if schema is not None and not inspect(connection).has_schema(schema):
            found.append(f"schema {schema}: missing")
        return sorted([*found, *left_out_differences(connection, metadata, store.dialect)])


def file_is_missing(store: Store) -> bool:
    """Tell whether the database is a file that nobody has made yet."""
    path = store.url.database
    return store.dialect.is_file and path not in (None, "", ":memory:") and not Path(str(path)).exists()


def _status(connection: Connection) -> SchemaStatus:
    history = revisions()
    wanted = history[-1]
    found = MigrationContext.configure(connection).get_current_heads()
    if not found:
        there = set(inspect(connection).get_table_names()) & set(metadata.tables)
        state = SchemaState.UNKNOWN if there else SchemaState.MISSING
        return SchemaStatus(state, None, wanted, () if there else history)
    at = found[0]
    if at not in history:
        return SchemaStatus(SchemaState.NEW, at, wanted, ())
    state = SchemaState.CURRENT if at == wanted else SchemaState.OLD
    return SchemaStatus(state, at, wanted, history[history.index(at) + 1 :])


def _config(**attributes: Any) -> Config:
    config = Config(attributes=attributes)
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _revision_applied(**_: Any) -> None:
    REVISION_APPLIED.reached()


def _is_ours(_thing: Any, name: str | None, kind: str, reflected: bool, compared_to: Any) -> bool:
    return not (kind == "table" and reflected and compared_to is None and name not in metadata.tables)


def _described(difference: Sequence[Any]) -> str:
    if isinstance(difference[0], tuple):
        difference = difference[0]
    kind, *rest = difference
    names = [getattr(part, "name", part) for part in rest if isinstance(getattr(part, "name", part), str)]
    table = getattr(getattr(rest[-1], "table", None), "name", None)
    about = " ".join(dict.fromkeys([name for name in (table, *names) if name]))
    verb = "missing" if kind.startswith("add") else "not expected" if kind.startswith("remove") else "different"
    return f"{kind.partition('_')[2] or kind} {about}: {verb}"
