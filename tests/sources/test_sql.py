"""Rule R4: any SQL database as a source, on a real SQLite and a real PostgreSQL."""

import tracemalloc
from decimal import Decimal

import pytest
from sqlalchemy import create_engine

from matoolkit.domain.rows import RowReader
from matoolkit.errors import SourceFailed, SourceNotConfigured
from matoolkit.runbook.model import DataSource
from matoolkit.sources.environment import required_variable
from matoolkit.sources.sql import SqlSource
from tests.databases import Database


def run(database: Database, *statements: str) -> None:
    engine = create_engine(database.url)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture
def people(empty_database: Database) -> Database:
    rows = ", ".join(f"('user{number:04}', '2026-03-03 20:00', {number}.5)" for number in range(1000))
    run(
        empty_database,
        "CREATE TABLE people (id VARCHAR(20), cutover VARCHAR(20), amount NUMERIC(10, 2))",
        f"INSERT INTO people VALUES {rows}",
    )
    return empty_database


def test_r4_a_result_comes_in_pieces_with_its_columns(people: Database) -> None:
    pieces = list(
        SqlSource(people.url, rows_in_a_piece=300).pieces('SELECT id AS "Id", amount FROM people ORDER BY id')
    )
    assert [len(piece.rows) for piece in pieces] == [300, 300, 300, 100]
    assert {piece.columns for piece in pieces} == {("Id", "amount")}
    assert pieces[0].rows[0][0] == "user0000"
    assert Decimal(str(pieces[0].rows[0][1])) == Decimal("0.5")


def test_r4_an_empty_result_is_one_empty_piece_that_knows_its_columns(people: Database) -> None:
    (piece,) = SqlSource(people.url).pieces("SELECT id FROM people WHERE 1 = 0")
    assert (piece.columns, list(piece.rows)) == (("id",), [])


@pytest.mark.parametrize(
    "query", ["SELECT '100% :name %s %(x)s ?' AS text FROM people WHERE id LIKE 'user000%' LIMIT 1"]
)
def test_r4_what_looks_like_a_parameter_is_text(people: Database, query: str) -> None:
    (piece,) = SqlSource(people.url).pieces(query)
    assert piece.rows[0][0] == "100% :name %s %(x)s ?"


@pytest.mark.parametrize("statement", ["DELETE FROM people", "CREATE TABLE stolen (id INTEGER)"])
def test_r4_a_source_cannot_be_written_to(people: Database, statement: str) -> None:
    source = SqlSource(people.url)
    with pytest.raises(SourceFailed):
        list(source.pieces(statement))
    (piece,) = source.pieces("SELECT COUNT(*) FROM people")
    assert piece.rows[0][0] == 1000


def test_a_query_that_fails_says_why(people: Database) -> None:
    with pytest.raises(SourceFailed, match="nowhere"):
        list(SqlSource(people.url).pieces("SELECT id FROM nowhere"))


def test_a_source_that_is_away_is_trouble_that_passes_and_its_password_is_not_shown() -> None:
    source = SqlSource("postgresql+psycopg://me:hunter2@127.0.0.1:1/db?connect_timeout=1")
    with pytest.raises(SourceFailed) as failed:
        list(source.pieces("SELECT 1"))
    assert failed.value.transient
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize("address", ["not a url hunter2", "nosuchdb://me:hunter2@host/db"])
def test_r4_an_address_that_cannot_be_used_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        SqlSource(address)
    assert "hunter2" not in f"{failed.value} {failed.value.hint}"


@pytest.mark.parametrize("environ", [{}, {"SOURCE_URL": "  "}])
def test_r4_a_variable_that_is_not_set_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(SourceNotConfigured, match="SOURCE_URL"):
        required_variable(environ, "SOURCE_URL")
    assert required_variable({"SOURCE_URL": "x"}, "SOURCE_URL") == "x"


def test_the_rows_of_a_query_become_candidates(people: Database) -> None:
    source = DataSource(
        type="sql",
        connection="SOURCE_URL",
        query="SELECT id, cutover, amount FROM people",
        primary_key="id",
        batch_time_column="cutover",
    )
    reader = RowReader(source)
    for piece in SqlSource(people.url, rows_in_a_piece=100).pieces(source.query):
        reader.take(piece.columns, piece.rows)
    assert len(reader.reading().candidates) == 1000


def test_a_large_result_is_never_in_memory_as_a_whole(people: Database) -> None:
    wide = "SELECT a.id, b.id AS other FROM people a CROSS JOIN people b LIMIT 200000"
    source = SqlSource(people.url, rows_in_a_piece=1000)
    tracemalloc.start()
    total = sum(len(piece.rows) for piece in source.pieces(wide))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 200_000
    assert peak < 20_000_000
