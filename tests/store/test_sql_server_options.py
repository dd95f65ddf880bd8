"""What `db check` makes of what a SQL Server says about itself. The answers are canned: no real one was asked."""

from collections.abc import Iterator
from typing import Any

import pytest

from matoolkit.store import Store, open_store
from matoolkit.store.checkup.check import check_properties
from matoolkit.store.checkup.findings import Checked, Outcome
from matoolkit.store.dialect.mssql_options import ASKED
from tests.servers.tds import Organisation, Result

AZURE = "Microsoft SQL Azure (RTM) - 12.0.2000.8 \n\tMar  3 2026 12:00:00 \n\tCopyright (C) Microsoft Corporation"
# ANSI_WARNINGS, ANSI_PADDING, ANSI_NULLS, QUOTED_IDENTIFIER and what else ODBC switches on.
SESSION = 5496
GOOD: dict[str, tuple[str, Any]] = {
    "version": ("nvarchar", AZURE),
    "edition": ("int", 5),
    "product": ("nvarchar", "12.0.2000.8"),
    "language": ("nvarchar", "us_english"),
    "options": ("int", SESSION),
    "updateability": ("nvarchar", "READ_WRITE"),
    "collation_name": ("nvarchar", "Latin1_General_100_BIN2"),
    "compatibility_level": ("int", 170),
    "is_read_committed_snapshot_on": ("bit", True),
    "snapshot_isolation_state": ("int", 1),
}


@pytest.fixture
def azure(organisation: Organisation) -> Iterator[Store]:
    organisation.answer_all_else(Result([("", "nvarchar")], [("READ COMMITTED",)]))
    for question in ("select @@version", "SELECT @@VERSION"):
        organisation.answer(question, Result([("", "nvarchar")], [(AZURE,)]))
    organisation.accept(None)
    store = open_store(f"mssql://me:hunter2@localhost:{organisation.port()}/state?Encrypt=yes")
    yield store
    store.close()


def checked(organisation: Organisation, store: Store, **said: Any) -> dict[str, Checked]:
    """Let the server be as it should except for what is said here."""
    row = [said.get(name, value) for name, (_, value) in GOOD.items()]
    organisation.answer(str(ASKED), Result([(name, kind) for name, (kind, _) in GOOD.items()], [row]))
    return {one.name: one for one in check_properties(store)}


def test_an_azure_sql_as_it_should_be_passes(organisation: Organisation, azure: Store) -> None:
    found = checked(organisation, azure)
    assert {one.outcome for one in found.values()} == {Outcome.OK}
    assert found["version"].said.startswith("Microsoft SQL Azure (RTM) - 12.0.2000.8 Mar 3 2026")


def test_an_own_server_passes_if_it_is_new_enough(organisation: Organisation, azure: Store) -> None:
    found = checked(organisation, azure, edition=3, product="16.0.4135.4")
    assert {one.outcome for one in found.values()} == {Outcome.OK}


@pytest.mark.parametrize(
    ("said", "name", "todo"),
    [
        ({"edition": 3, "product": "12.0.6024.0"}, "version", "SQL Server 2016 or newer"),
        ({"compatibility_level": 120}, "compatibility level", "ALTER DATABASE CURRENT SET COMPATIBILITY_LEVEL = 130"),
        ({"collation_name": "SQL_Latin1_General_CP1_CI_AS"}, "collation", "COLLATE Latin1_General_100_BIN2"),
        (
            {"is_read_committed_snapshot_on": False},
            "READ_COMMITTED_SNAPSHOT",
            "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT ON",
        ),
        (
            {"snapshot_isolation_state": 0},
            "ALLOW_SNAPSHOT_ISOLATION",
            "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON",
        ),
        # It is being switched on, and is not yet.
        ({"snapshot_isolation_state": 3}, "ALLOW_SNAPSHOT_ISOLATION", "ALLOW_SNAPSHOT_ISOLATION ON"),
        ({"updateability": "READ_ONLY"}, "updateability", "without ApplicationIntent=ReadOnly"),
        ({"language": "Deutsch"}, "language", "DEFAULT_LANGUAGE = us_english"),
        ({"options": SESSION | 16384}, "session", "user options"),
        ({"options": SESSION | 512}, "session", "user options"),
        ({"options": SESSION & ~8}, "session", "user options"),
        ({"options": SESSION & ~256}, "session", "user options"),
    ],
)
def test_each_misconfiguration_is_found_alone_and_told_with_what_to_do(
    organisation: Organisation, azure: Store, said: dict[str, Any], name: str, todo: str
) -> None:
    found = checked(organisation, azure, **said)
    assert [one.name for one in found.values() if one.outcome is not Outcome.OK] == [name]
    assert todo in found[name].todo
