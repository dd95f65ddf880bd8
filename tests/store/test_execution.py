"""Statements on the driver's own cursor."""

from collections.abc import Iterator
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Boolean, Column, Integer, MetaData, String, Table, event, select, text, union_all, update
from sqlalchemy.dialects import mssql

from matoolkit.errors import RowConflict, StoreError, StoreUnavailable
from matoolkit.store import Store, open_store
from matoolkit.store.dialect.types import Instant, OneOf
from matoolkit.store.sql.engine import Execution
from matoolkit.store.sql.execution import Compiled

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


PEOPLE = Table(
    "people",
    MetaData(),
    Column("id", Integer, primary_key=True),
    Column("name", String, unique=True),
    Column("at", Instant),
    Column("is_here", Boolean),
    Column("mood", OneOf(Mood)),
)
ADA, GRACE = (1, "Ada", NOON, True, Mood.GOOD), (2, "Grace", None, False, None)


# SQLAlchemy has other words for what the kernel itself refuses, and other moments.
only_of_the_kernel = pytest.mark.parametrize("store", ["driver"], indirect=True)


@pytest.fixture(params=["driver", "sqlalchemy"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    store = open_store(f"sqlite:///{tmp_path}/state.db", execution=request.param)
    PEOPLE.metadata.create_all(store.engine)
    with store.transaction() as tx:
        tx.execute(PEOPLE.insert().values([ADA, GRACE]))
    yield store
    store.close()


def whole(*row: Any) -> tuple[Any, ...]:
    return row


def test_values_of_every_type_are_bound_and_read(store: Store) -> None:
    with store.reading() as tx:
        assert tx.rows(whole, select(PEOPLE).order_by(PEOPLE.c.id)) == [ADA, GRACE]
        assert tx.values(select(PEOPLE.c.mood).where(PEOPLE.c.at == NOON)) == [Mood.GOOD]
        both = union_all(select(PEOPLE.c.id, PEOPLE.c.at), select(PEOPLE.c.id, PEOPLE.c.at)).order_by("id")
        assert tx.rows(whole, both) == [(1, NOON), (1, NOON), (2, None), (2, None)]
        assert tx.values(text("SELECT name FROM people ORDER BY id")) == ["Ada", "Grace"]


@dataclass
class Person:
    mood: Mood | None
    name: str
    id: int
    group: str = "staff"


PERSON = (PEOPLE.c.id, PEOPLE.c.name, PEOPLE.c.mood)


@pytest.mark.parametrize("columns", list(permutations(PERSON)))
def test_the_fields_of_a_record_are_the_columns_of_their_names(store: Store, columns: tuple[Column[Any], ...]) -> None:
    with store.reading() as tx:
        found = tx.rows(Person, select(*columns).order_by(PEOPLE.c.id), group="guests")
    assert found == [Person(Mood.GOOD, "Ada", 1, "guests"), Person(None, "Grace", 2, "guests")]


def test_swapping_two_fields_of_a_record_does_not_mix_up_its_columns(store: Store) -> None:
    swapped = make_dataclass("Person", ["id", "mood", "name"])
    with store.reading() as tx:
        query = select(*PERSON).order_by(PEOPLE.c.id)
        assert [(one.id, one.mood, one.name) for one in tx.rows(swapped, query)] == [
            (1, Mood.GOOD, "Ada"),
            (2, None, "Grace"),
        ]


@only_of_the_kernel
@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        (PERSON, {}, "Person.group has no column"),
        ((PEOPLE.c.id, PEOPLE.c.name), {"group": "staff"}, "Person.mood has no column"),
        ((*PERSON, PEOPLE.c.at), {"group": "staff"}, "Person has no field for at"),
        (PERSON, {"group": "staff", "name": "Ada"}, "Person.name is both a column and given"),
        ((*PERSON, PEOPLE.c.at.label("id")), {"group": "staff"}, "Person has no field for id_1"),
    ],
)
def test_a_record_that_does_not_fit_its_statement_is_refused(
    store: Store, columns: tuple[Any, ...], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said), store.reading() as tx:
        tx.rows(Person, select(*columns), **given)


@only_of_the_kernel
def test_a_record_with_some_fields_filled_in_by_place_is_refused(store: Store) -> None:
    with pytest.raises(TypeError, match="by name, not in a partial Person"), store.reading() as tx:
        tx.rows(partial(Person, Mood.GOOD), select(*PERSON))


@pytest.mark.parametrize(("execution", "seen"), [("driver", 0), ("sqlalchemy", 3)])
def test_one_switch_lets_sqlalchemy_run_every_statement(tmp_path: Path, execution: Execution, seen: int) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db", execution=execution)
    PEOPLE.metadata.create_all(store.engine)
    run: list[str] = []
    event.listen(store.engine, "before_cursor_execute", lambda *told: run.append(told[2]))
    with store.transaction() as tx:
        tx.execute(PEOPLE.insert().values([ADA]))
        assert tx.values(select(PEOPLE.c.id)) == [1]
        assert tx.rows(int, select(PEOPLE.c.id)) == [1]
    store.close()
    assert len(run) == seen


def test_a_list_of_values_is_as_long_as_it_is(store: Store) -> None:
    with store.reading() as tx:
        found = [
            tx.values(select(PEOPLE.c.id).where(PEOPLE.c.name.in_(names))) for names in (["Ada"], [], ["Ada", "X"])
        ]
    assert found == [[1], [], [1]]


def test_it_says_how_many_rows_changed(store: Store) -> None:
    with store.transaction() as tx:
        assert tx.changed(update(PEOPLE).values(is_here=True)) == 2
        assert tx.changed(update(PEOPLE).values(is_here=True).where(PEOPLE.c.id == 3)) == 0


def test_more_rows_than_are_fetched_at_once_come_in_their_order(store: Store) -> None:
    numbers = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 25000) SELECT n FROM n"
    with store.reading() as tx:
        assert tx.rows(int, text(numbers)) == list(range(1, 25_001))


def test_a_value_that_cannot_be_stored_is_refused_before_the_database_sees_it(store: Store) -> None:
    seen: list[str] = []
    store.watchers.append(lambda statement, _parameters: seen.append(statement))
    with pytest.raises(StoreError, match="a value cannot be stored: 'furious'"), store.transaction() as tx:
        tx.execute(update(PEOPLE).values(mood="furious"))
    assert seen == []


def test_what_no_database_can_store_is_replaced(store: Store) -> None:
    with store.transaction() as tx:
        tx.execute(update(PEOPLE).where(PEOPLE.c.id == 1).values(name="A\0d\ud83da"))
        assert tx.values(select(PEOPLE.c.name).where(PEOPLE.c.id == 1)) == ["A\ufffdd\ufffda"]


def test_an_error_of_the_driver_leaves_the_rest_of_the_transaction_as_it_is(store: Store) -> None:
    with store.transaction() as tx:
        with pytest.raises(RowConflict), tx.part():
            tx.execute(update(PEOPLE).values(name="Ada"))
        tx.execute(update(PEOPLE).values(is_here=True))
    with store.reading() as tx:
        assert tx.values(select(PEOPLE.c.name).where(PEOPLE.c.is_here).order_by(PEOPLE.c.id)) == ["Ada", "Grace"]


def test_whoever_watches_is_told_before_a_statement_runs(store: Store) -> None:
    told: list[tuple[str, Any]] = []
    store.watchers.append(lambda statement, parameters: told.append((statement, parameters)))
    with store.transaction() as tx:
        tx.execute(update(PEOPLE).where(PEOPLE.c.id == 2).values(at=NOON))
    assert told == [("UPDATE people SET at=? WHERE people.id = ?", ("2026-03-03 12:00:00.000000", 2))]


@only_of_the_kernel
def test_who_is_interrupted_in_a_statement_does_not_use_the_connection_again(store: Store) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(StoreUnavailable, match="broke during the transaction"), store.transaction() as tx:
        tx.execute(update(PEOPLE).values(is_here=False))
        with pytest.raises(KeyboardInterrupt):
            tx.rows(interrupted, select(PEOPLE.c.id))
        tx.values(select(PEOPLE.c.id))
    with store.transaction() as tx:
        assert tx.values(select(PEOPLE.c.is_here).order_by(PEOPLE.c.id)) == [True, False]


def test_sql_server_gets_a_limit_as_a_number_and_everything_else_as_a_parameter() -> None:
    dialect = mssql.dialect(paramstyle="qmark")  # type: ignore[no-untyped-call]
    statement = select(PEOPLE.c.id).where(PEOPLE.c.at < NOON, PEOPLE.c.name.in_(["Ada", "Grace"])).limit(5)
    sent, parameters, kinds = Compiled(statement, dialect).bound({})
    assert "TOP 5" in sent
    assert parameters == (NOON.replace(tzinfo=None), "Ada", "Grace")
    assert list(map(type, kinds)) == [Instant, String, String]
