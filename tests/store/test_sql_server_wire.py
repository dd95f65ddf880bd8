"""What SQL Server is told, as a server in the tests sees it that knows no SQL."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import BigInteger, Boolean, Connection, String, TextClause, Unicode, UnicodeText, bindparam, text

from matoolkit.errors import ReadsNotStable, StoreBusy, StoreError, StoreReadOnly
from matoolkit.store import Store, open_store
from matoolkit.store.checkup.samples import Samples, public_functions
from matoolkit.store.datatables import open_data_table
from matoolkit.store.dialect.mssql_types import driver_types
from matoolkit.store.dialect.types import FoldedKey, Instant
from matoolkit.store.sql.driver import run
from matoolkit.store.sql.execution import Compiled, Runner
from matoolkit.store.sql.prepared import Ready
from matoolkit.store.sql.rehearsal import Answer
from tests.golden.tsql import THERE, CompilingTransaction
from tests.servers.tds import Organisation, Refusal, Result

VERSION = "Microsoft SQL Azure (RTM) - 12.0.2000.8"
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
KINDS = {"a": BigInteger(), "b": Boolean(), "c": Instant(), "d": Unicode(20), "e": UnicodeText(), "f": None}
DECLARED = ["bigint", "tinyint", "datetime2", "nvarchar(4000)", "nvarchar(max)", "nvarchar(max)"]


@pytest.fixture(params=["driver", "sqlalchemy"])
def store(organisation: Organisation, request: pytest.FixtureRequest) -> Iterator[Store]:
    organisation.answer_all_else(Result([("", "nvarchar")], [("READ COMMITTED",)]))
    for question in ("select @@version", "SELECT @@VERSION"):
        organisation.answer(question, Result([("", "nvarchar")], [(VERSION,)]))
    organisation.accept(None)
    address = f"mssql://me:hunter2@localhost:{organisation.port()}/state?Encrypt=yes"
    store = open_store(address, execution=request.param)
    yield store
    store.close()


def test_readers_see_one_picture_on_connections_of_their_own(organisation: Organisation, store: Store) -> None:
    for begun in (store.reading, store.transaction, store.reading, store.transaction):
        with begun() as tx:
            tx.values(text("SELECT 1"))
    prepared = [query for query in organisation.queries() if "ISOLATION LEVEL" in query]
    assert [query.rpartition("LEVEL ")[2] for query in prepared] == ["SNAPSHOT", "READ COMMITTED"]
    assert organisation.open_connections() == 2


def test_a_reader_that_writes_is_refused_before_the_server_hears_it(organisation: Organisation, store: Store) -> None:
    with pytest.raises(StoreReadOnly, match="may not write"), store.reading() as tx:
        tx.execute(text("DELETE FROM steps"))
    assert "DELETE FROM steps" not in organisation.queries()


def test_a_database_without_snapshots_is_told_with_what_to_do(organisation: Organisation, store: Store) -> None:
    said = "Snapshot isolation transaction failed accessing database 'state' because snapshot isolation is not allowed"
    organisation.answer("SELECT 1 AS work", Refusal(3952, f"{said} in this database."))
    with pytest.raises(ReadsNotStable) as failed, store.reading() as tx:
        tx.values(text("SELECT 1 AS work"))
    assert "ALLOW_SNAPSHOT_ISOLATION ON" in str(failed.value.hint)


def written(values: dict[str, Any]) -> TextClause:
    """Write a value to a column of each type."""
    cells = ", ".join(f"{name} = :{name}" for name in values)
    return text(f"UPDATE steps SET {cells}").bindparams(
        *(bindparam(name, value, KINDS[name]) for name, value in values.items())
    )


TYPE = re.compile(r"@P\d+ ((?:bigint|tinyint|datetime2|n?varchar)(?:\(\w+\))?)", re.IGNORECASE)


def declared(texts: str) -> list[str]:
    """Return the types with which a call declares its parameters; the digits of seconds are the driver's affair."""
    return [kind.lower().replace("datetime2(7)", "datetime2") for kind in TYPE.findall(texts)]


def test_the_driver_never_asks_for_the_type_of_a_null(organisation: Organisation, store: Store) -> None:
    with store.transaction() as tx:
        assert tx.changed(written(dict.fromkeys(KINDS))) == 1
    names, texts = zip(*organisation.calls(), strict=True)
    assert "sp_describe_undeclared_parameters" not in names
    assert declared(texts[0]) == DECLARED


def test_a_value_has_the_type_that_a_null_would_have(organisation: Organisation, store: Store) -> None:
    """So the statement is the same one to the server, whatever its values are."""
    with store.transaction() as tx:
        tx.execute(written({"a": 7, "b": True, "c": NOON, "d": "short", "e": "text", "f": "é"}))
    assert declared(organisation.calls()[0][1]) == DECLARED


def test_the_values_of_a_list_have_the_type_of_the_list(organisation: Organisation, store: Store) -> None:
    among = bindparam("ids", [1, None, 3], BigInteger(), expanding=True)
    with store.transaction() as tx:
        tx.execute(text("UPDATE steps SET d = :d WHERE a IN :ids").bindparams(bindparam("d", None, Unicode(9)), among))
    assert declared(organisation.calls()[0][1]) == ["nvarchar(4000)", "bigint", "bigint", "bigint"]


@pytest.mark.parametrize(
    ("kind", "value", "size"),
    [
        (Unicode(20), "x" * 2000, 4000),
        (Unicode(20), "x" * 2001, 0),
        (FoldedKey, "anna", 4000),
        (FoldedKey, None, 4000),
        (String(), "[]", 0),
        (UnicodeText(), None, 0),
    ],
)
def test_a_text_is_declared_as_a_short_one_if_it_surely_fits(kind: Any, value: Any, size: int) -> None:
    assert driver_types([kind], [value]) == [(-9, size, 0)]


def test_m6_a_deadlock_in_a_part_is_told_as_a_deadlock(organisation: Organisation, store: Store) -> None:
    """It has undone the whole transaction, and so there is no savepoint left to go back to."""
    deadlock = "Transaction (Process ID 52) was deadlocked on lock resources with another process"
    organisation.answer("UPDATE steps SET a = 1", Refusal(1205, deadlock))
    gone = "Cannot roll back sa_savepoint_1. No transaction or savepoint of that name was found."
    organisation.answer("ROLLBACK TRANSACTION sa_savepoint_1", Refusal(6401, gone))
    with pytest.raises(StoreBusy, match="deadlocked"), store.transaction() as tx, store.within(tx).transaction():
        tx.execute(text("UPDATE steps SET a = 1"))
    assert "ROLLBACK TRANSACTION sa_savepoint_1" in organisation.queries()


def test_a_conflict_that_ended_the_transaction_is_not_told_as_a_conflict(
    organisation: Organisation, store: Store
) -> None:
    """Who is told of a conflict may go on with the rest of the transaction, and there is none any more."""
    organisation.answer("UPDATE steps SET a = 1", Refusal(2627, "Violation of PRIMARY KEY constraint 'pk_steps'."))
    organisation.answer("ROLLBACK TRANSACTION sa_savepoint_1", Refusal(6401, "Cannot roll back sa_savepoint_1."))
    with pytest.raises(StoreError, match="Cannot") as failed, store.transaction() as tx, store.within(tx).transaction():
        tx.execute(text("UPDATE steps SET a = 1"))
    assert type(failed.value) is StoreError


class NullingRunner(Runner):
    """Runs every statement with nothing but NULLs, and answers with a made-up row."""

    def run(self, statement: Any, compiled: Compiled, take: Callable[[Any], Any]) -> Any:
        text, values, kinds = compiled.bound(statement.values if isinstance(statement, Ready) else {})
        nothing = (None,) * len(values)
        assert self.typing is not None
        run(self.connection, text, nothing, lambda _: None, self.typing(kinds, nothing))
        return take(Answer(statement, self.connection.dialect))


class NullingTransaction(CompilingTransaction):
    """Reaches a server with its statements, and asks it nothing about tables."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._runner = NullingRunner(connection, ())


@pytest.mark.parametrize("store", ["driver"], indirect=True)
def test_no_statement_of_the_store_makes_the_driver_ask_for_a_type(organisation: Organisation, store: Store) -> None:
    samples = Samples(7, NOON, THERE, open_data_table(CompilingTransaction(), THERE, ["Email", "Aliases"]))
    with store.engine.connect() as connection:
        for _, function in public_functions():
            function(**samples.arguments_for(function, NullingTransaction(connection)))
    names = Counter(name for name, _ in organisation.calls())
    assert set(names) <= {"sp_prepexec", "sp_executesql", "sp_unprepare"}
    assert names["sp_prepexec"] + names["sp_executesql"] > 200
