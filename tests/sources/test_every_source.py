"""What holds for every source, whatever its type (rules R4 and T2)."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import SourceFailed
from matoolkit.ports import Source
from matoolkit.sources.databricks import DatabricksSource
from matoolkit.sources.dataverse import DataverseSource
from matoolkit.sources.sql import SqlSource
from matoolkit.sources.tokens import GivenToken
from tests.servers.databricks import Workspace
from tests.servers.tds import Organisation, Refusal, Result
from tests.sources.lists import Lists

QUERY = "SELECT id, name FROM people"
IN_A_LIST = "SELECT id, name FROM rows"
PEOPLE = [(f"user{number}", "Zoë" if number % 2 else None) for number in range(12)]


@dataclass(frozen=True)
class Asked:
    """A source that has some people, and the ways to make it have none, or fail."""

    source: Source
    has_nobody: Callable[[], object]
    fails: Callable[[], object]
    query: str = QUERY


@pytest.fixture(params=["sql", "databricks", "dataverse", "csv", "xlsx"])
def asked(request: pytest.FixtureRequest) -> Asked:
    made: Asked = request.getfixturevalue(f"asked_{request.param}")
    return made


@pytest.fixture
def asked_sql(tmp_path: Path) -> Asked:
    file = tmp_path / "people.db"

    def run(statement: str, rows: Sequence[Sequence[str | None]] = ((),)) -> None:
        with closing(sqlite3.connect(file)) as database:
            database.executemany(statement, rows)
            database.commit()

    run("CREATE TABLE people (id TEXT, name TEXT)")
    run("INSERT INTO people VALUES (?, ?)", PEOPLE)
    source = SqlSource(f"sqlite:///{file}", rows_in_a_piece=5)
    return Asked(source, lambda: run("DELETE FROM people"), lambda: run("DROP TABLE people"))


@pytest.fixture
def asked_databricks(workspace: Workspace, clock: VirtualClock) -> Asked:
    workspace.columns = [("id", "STRING"), ("name", "STRING")]
    workspace.chunks = [PEOPLE]
    source = DatabricksSource(workspace.address, "w", GivenToken("dapi-secret"), clock, rows_in_a_piece=5)
    return Asked(
        source,
        lambda: setattr(workspace, "chunks", []),
        lambda: setattr(workspace, "ends", {"state": "FAILED", "error": {"message": "no table people"}}),
    )


@pytest.fixture
def asked_dataverse(organisation: Organisation) -> Asked:
    columns = [("id", "nvarchar"), ("name", "nvarchar")]
    organisation.answer(QUERY, Result(columns, PEOPLE))
    source = DataverseSource(f"https://localhost:{organisation.port()}", GivenToken("token-1"), rows_in_a_piece=5)
    return Asked(
        source,
        lambda: organisation.answer(QUERY, Result(columns, [])),
        lambda: organisation.answer(QUERY, Refusal(208, "Invalid object name 'people'")),
    )


@pytest.fixture
def asked_csv(lists: Lists) -> Asked:
    def write(rows: Sequence[Sequence[str | None]]) -> None:
        lists.write(
            "people.csv", "".join(f"{','.join(cell or '' for cell in row)}\n" for row in [("id", "name"), *rows])
        )

    write(PEOPLE)
    fails = partial(lists.write, "people.csv", "")
    return Asked(lists.source("people.csv", size=5), lambda: write([]), fails, IN_A_LIST)


@pytest.fixture
def asked_xlsx(lists: Lists) -> Asked:
    lists.workbook(("id", "name"), *PEOPLE)
    empty = partial(lists.workbook, ("id", "name"))
    return Asked(lists.source(size=5), empty, partial(lists.write, "people.xlsx", b"PK\x03\x04"), IN_A_LIST)


def test_r4_a_result_comes_in_pieces_and_can_be_had_again(asked: Asked) -> None:
    for _ in range(2):
        pieces = list(asked.source.pieces(asked.query))
        assert [len(piece.rows) for piece in pieces] == [5, 5, 2]
        assert {tuple(piece.columns) for piece in pieces} == {("id", "name")}
        assert [tuple(row) for piece in pieces for row in piece.rows] == PEOPLE


def test_r4_an_empty_result_is_one_empty_piece_that_knows_its_columns(asked: Asked) -> None:
    asked.has_nobody()
    (piece,) = asked.source.pieces(asked.query)
    assert (tuple(piece.columns), list(piece.rows)) == (("id", "name"), [])


def test_r4_nothing_is_asked_before_somebody_reads_and_a_reader_may_leave_early(asked: Asked) -> None:
    pieces = asked.source.pieces(asked.query)
    asked.has_nobody()
    (piece,) = pieces
    assert len(piece.rows) == 0
    left = asked.source.pieces(asked.query)
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert len(list(asked.source.pieces(asked.query))) == 1


def test_t2_a_query_that_fails_says_why_and_may_succeed_later(asked: Asked) -> None:
    asked.fails()
    with pytest.raises(SourceFailed, match="people") as failed:
        list(asked.source.pieces(asked.query))
    assert failed.value.transient
