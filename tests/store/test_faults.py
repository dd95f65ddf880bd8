"""What the drivers say, told apart."""

import sqlite3
import traceback

import psycopg
import pytest
from sqlalchemy import exc
from sqlalchemy.engine import make_url

from matoolkit.errors import (
    DriverMissing,
    InvalidDatabaseUrl,
    RowConflict,
    SignInRefused,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from matoolkit.store import open_store
from matoolkit.store.dialect.postgresql import PostgreSQL
from matoolkit.store.dialect.sqlite import SQLite
from matoolkit.store.sql.faults import ToldApart


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (psycopg.errors.lookup("53100")(), StoreFull),
        (psycopg.errors.lookup("40P01")(), StoreBusy),
        (psycopg.errors.lookup("40001")(), StoreBusy),
        (psycopg.errors.lookup("55P03")(), StoreBusy),
        (psycopg.errors.lookup("57014")(), StoreBusy),
        (psycopg.errors.lookup("57P01")(), StoreUnavailable),
        (psycopg.errors.lookup("53300")(), StoreUnavailable),
        (psycopg.errors.lookup("28P01")(), SignInRefused),
        (psycopg.errors.lookup("23505")(), RowConflict),
        (psycopg.errors.lookup("25006")(), StoreReadOnly),
        (psycopg.errors.lookup("42P01")(), StoreError),
        (psycopg.OperationalError("the connection is lost"), StoreUnavailable),
        (psycopg.ProgrammingError("what"), StoreError),
    ],
)
def test_errors_of_postgresql_are_told_apart(fault: psycopg.Error, error: type[StoreError]) -> None:
    assert PostgreSQL().error_for(fault) is error


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, StoreBusy),
        (sqlite3.SQLITE_LOCKED, StoreBusy),
        (sqlite3.SQLITE_FULL, StoreFull),
        (sqlite3.SQLITE_IOERR_WRITE, StoreUnavailable),
        (sqlite3.SQLITE_READONLY, StoreReadOnly),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, RowConflict),
        (sqlite3.SQLITE_ERROR, StoreError),
    ],
)
def test_errors_of_sqlite_are_told_apart(code: int, error: type[StoreError]) -> None:
    fault = sqlite3.OperationalError("what")
    fault.sqlite_errorcode = code
    assert SQLite().error_for(fault) is error


@pytest.mark.parametrize(
    "url",
    [
        "",
        "no url",
        "oracle://anna:hunter2@host/db",
        "postgresql://anna:hunter2@host:port/db",
        "sqlite://hunter2/state.db",
        "sqlite:///state.db?timeout=hunter2",
        "sqlite:///state.db?timeout=1&timeout=2",
        "sqlite:///state.db?check_same_thread=hunter2",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidDatabaseUrl) as refused:
        open_store(url)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("password", ["p@hunter2", "@hunter2", "p@hunter2/x", "p/@hunter2@x"])
@pytest.mark.parametrize("scheme", ["postgresql", "mssql"])
def test_a_password_that_is_not_encoded_is_refused_without_repeating_any_of_it(scheme: str, password: str) -> None:
    with pytest.raises(InvalidDatabaseUrl) as refused:
        open_store(f"{scheme}://anna:{password}@host/db")
    assert "%40" in str(refused.value.hint)
    assert "hunter2" not in f"{refused.value} {refused.value.hint}"


@pytest.mark.parametrize("rest", ["anna:p%40ss@host/db", "host/db@home", "anna@host/db?application_name=a@b/c"])
def test_an_at_sign_elsewhere_is_nothing_special(rest: str) -> None:
    open_store(f"postgresql://{rest}").close()


@pytest.mark.parametrize("address", ["anna:hunter2@host/state", "host/state?password=hunter2&sslkey=hunter2"])
def test_secrets_of_the_address_are_not_in_what_is_said(address: str) -> None:
    url = make_url(f"postgresql://{address}")
    fault = exc.OperationalError("SELECT 1", {}, psycopg.OperationalError('no "hunter2" on host\nmore'))
    with pytest.raises(StoreUnavailable) as told, ToldApart(PostgreSQL(), url):
        raise fault
    assert told.value.message == 'PostgreSQL: no "***" on host'


@pytest.mark.parametrize("kind", [psycopg.errors.NotNullViolation, psycopg.errors.NumericValueOutOfRange])
def test_w8_the_row_that_a_database_refuses_is_in_no_traceback(kind: type[psycopg.Error]) -> None:
    refused = kind("a value is missing\nDETAIL:  Failing row contains (1, hunter2).")
    fault = exc.DBAPIError.instance("INSERT", None, refused, psycopg.Error, hide_parameters=True)
    with pytest.raises(StoreError) as told, ToldApart(PostgreSQL(), make_url("postgresql://host/state")):
        raise fault
    assert told.value.message == "PostgreSQL: a value is missing"
    assert "hunter2" not in "".join(traceback.format_exception(told.value))


def test_an_sqlite_that_is_too_old_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(StoreError, match=r"SQLite 3\.38 or newer is needed"):
        open_store("sqlite://")


def test_a_missing_driver_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "mssql_python", None)
    with pytest.raises(DriverMissing, match="driver for SQL Server is not installed") as refused:
        open_store("mssql://server/state")
    assert "matoolkit[mssql]" in str(refused.value.hint)
