"""Rule R4: SQL Server as a source of type sql, over TDS, against a server that plays one."""

import pytest

from matoolkit.errors import SourceFailed
from matoolkit.sources.sql import SqlSource
from tests.servers.tds import Organisation, Result

QUERY = "SELECT id FROM people"
VERSION = "Microsoft SQL Server 2022 (RTM) - 16.0.1000.6 (X64)"
PEOPLE = [(f"user{number}",) for number in range(10_000)]


@pytest.fixture
def source(organisation: Organisation) -> SqlSource:
    # SQLAlchemy asks a few things before the first query.
    organisation.answer("select @@version", Result([("", "nvarchar")], [(VERSION,)]))
    organisation.answer_all_else(Result([("", "nvarchar")], [("READ COMMITTED",)]))
    organisation.accept(None)
    return SqlSource(f"mssql+mssqlpython://me:hunter2@localhost:{organisation.port()}/db?Encrypt=yes")


def test_r4_rows_come_in_pieces(organisation: Organisation, source: SqlSource) -> None:
    organisation.answer(QUERY, Result([("id", "nvarchar")], PEOPLE))
    assert [len(piece.rows) for piece in source.pieces(QUERY)] == [500] * 20
    assert organisation.wait_until_nobody_is_connected()


def test_t2_a_connection_that_breaks_in_the_middle_is_an_error_and_not_an_end(
    organisation: Organisation, source: SqlSource
) -> None:
    organisation.answer(QUERY, Result([("id", "nvarchar")], PEOPLE, rows_before_break=7_000))
    with pytest.raises(SourceFailed) as failed:
        list(source.pieces(QUERY))
    assert "hunter2" not in str(failed.getrepr(chain=True))
