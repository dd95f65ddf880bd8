"""Rule R4: Dataverse as a source, over TDS with TLS, against a server that plays an organisation's endpoint."""

import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from matoolkit.domain.rows import RowReader
from matoolkit.errors import SourceFailed
from matoolkit.runbook.model import DataSource
from matoolkit.sources.dataverse import DataverseSource
from matoolkit.sources.tokens import GivenToken
from tests.servers.certificates import make_certificate
from tests.servers.tds import Organisation, Refusal, Result

QUERY = "SELECT id, '100% :name ? %s {x}' AS text FROM contact WHERE name LIKE 'a%'"
TOKEN = "token-1"


@pytest.fixture
def source(organisation: Organisation) -> DataverseSource:
    return DataverseSource(f"https://localhost:{organisation.port()}", GivenToken(TOKEN))


def said(failed: pytest.ExceptionInfo[SourceFailed]) -> str:
    return f"{failed.value} {failed.value.hint} {failed.getrepr(chain=True)}"


def people(count: int) -> list[tuple[str, str]]:
    return [(f"user{number}", "x" * (number % 50)) for number in range(count)]


PEOPLE = [("id", "nvarchar"), ("text", "ntext")]
# Drivers fetch texts of any length row by row, and rows without them many at a time.
ROW_BY_ROW_OR_MANY = pytest.mark.parametrize("columns", [PEOPLE, [("id", "nvarchar"), ("text", "nvarchar")]])


def test_r4_many_rows_come_in_pieces_of_five_hundred(organisation: Organisation, source: DataverseSource) -> None:
    organisation.answer(QUERY, Result(PEOPLE, people(12_001)))
    pieces = list(source.pieces(QUERY))
    assert [len(piece.rows) for piece in pieces] == [500] * 24 + [1]
    assert {tuple(piece.columns) for piece in pieces} == {("id", "text")}
    assert [tuple(row) for piece in pieces for row in piece.rows] == people(12_001)
    assert QUERY in organisation.queries()


def test_r4_an_empty_result_is_one_empty_piece_that_knows_its_columns(
    organisation: Organisation, source: DataverseSource
) -> None:
    organisation.answer(QUERY, Result(PEOPLE, []))
    (piece,) = source.pieces(QUERY)
    assert (tuple(piece.columns), list(piece.rows)) == (("id", "text"), [])


def test_the_token_reaches_the_server_inside_tls(organisation: Organisation, source: DataverseSource) -> None:
    organisation.answer(QUERY, Result(PEOPLE, people(1)))
    list(source.pieces(QUERY))
    assert organisation.tokens_shown() == [TOKEN]


def test_a_token_that_is_refused_is_an_error_with_a_hint_that_does_not_show_it(
    organisation: Organisation, source: DataverseSource
) -> None:
    organisation.accept("another")
    with pytest.raises(SourceFailed, match="Login failed") as failed:
        list(source.pieces(QUERY))
    assert "application user" in str(failed.value.hint)
    assert TOKEN not in said(failed)
    assert failed.value.transient


def test_a_server_whose_certificate_is_not_trusted_gets_no_token(
    organisation: Organisation, source: DataverseSource, tmp_path: Path
) -> None:
    organisation.show_certificate(make_certificate(tmp_path)[0])
    with pytest.raises(SourceFailed, match="certificate"):
        list(source.pieces(QUERY))
    assert organisation.tokens_shown() == []


def test_t2_a_query_that_the_server_refuses_says_why_and_shows_no_token(
    organisation: Organisation, source: DataverseSource
) -> None:
    organisation.answer(QUERY, Refusal(208, f"Invalid object name 'nowhere'. {TOKEN}"))
    with pytest.raises(SourceFailed, match="Invalid object name 'nowhere'") as failed:
        list(source.pieces(QUERY))
    assert TOKEN not in said(failed)


@ROW_BY_ROW_OR_MANY
@pytest.mark.parametrize("rows", [0, 1, 7_000])
def test_t2_a_connection_that_breaks_in_the_middle_is_an_error_and_not_an_end(
    organisation: Organisation, source: DataverseSource, rows: int, columns: list[tuple[str, str]]
) -> None:
    organisation.answer(QUERY, Result(columns, people(10_000), rows_before_break=rows))
    with pytest.raises(SourceFailed, match="Dataverse could not be queried"):
        list(source.pieces(QUERY))


@ROW_BY_ROW_OR_MANY
@pytest.mark.parametrize("rows", [0, 1, 4_999, 5_000, 7_000])
def test_t2_an_error_after_some_rows_is_an_error_and_not_an_end(
    organisation: Organisation, source: DataverseSource, rows: int, columns: list[tuple[str, str]]
) -> None:
    too_large = Refusal(40000, "The result is larger than what may be returned")
    organisation.answer(QUERY, Result(columns, people(rows), ends_with=too_large))
    with pytest.raises(SourceFailed, match="larger than what may be returned"):
        list(source.pieces(QUERY))


def test_t2_an_endpoint_that_is_away_is_trouble_that_passes(organisation: Organisation) -> None:
    with pytest.raises(SourceFailed) as failed:
        list(DataverseSource("https://localhost:1", GivenToken(TOKEN), sign_in_seconds=1).pieces(QUERY))
    assert failed.value.transient
    assert TOKEN not in said(failed)


def test_whoever_stops_reading_closes_the_connection(organisation: Organisation, source: DataverseSource) -> None:
    organisation.answer(QUERY, Result(PEOPLE, people(20_000)))
    pieces = source.pieces(QUERY)
    next(pieces)
    assert organisation.open_connections() == 1
    pieces.close()  # type: ignore[attr-defined]
    assert organisation.wait_until_nobody_is_connected()


def test_a_query_leaves_no_connection_open(organisation: Organisation, source: DataverseSource) -> None:
    organisation.answer(QUERY, Result(PEOPLE, people(3)))
    list(source.pieces(QUERY))
    assert organisation.wait_until_nobody_is_connected()


def test_values_come_as_what_their_columns_hold(organisation: Organisation, source: DataverseSource) -> None:
    berlin = timezone(timedelta(hours=1))
    cells: list[tuple[str, Any]] = [
        ("int", -5),
        ("bigint", 2**63 - 1),
        ("bit", True),
        ("float", 0.1),
        ("decimal", Decimal("-12345678901234567890.1234567890")),
        ("uniqueidentifier", UUID("6f9619ff-8b86-d011-b42d-00c04fc964ff")),
        ("date", date(2026, 3, 3)),
        ("datetime", datetime(2026, 3, 3, 20, 15)),  # noqa: DTZ001
        ("datetime2", datetime(2026, 3, 3, 20, 15, 1, 123456)),  # noqa: DTZ001
        ("datetimeoffset", datetime(2026, 3, 3, 20, 15, tzinfo=berlin)),
        ("nvarchar", "Zoë 😀"),
        ("nvarchar", ""),
        ("ntext", "long " * 5000),
        ("varbinary", b"\x00\x01" * 5000),
    ]
    columns = [(f"c{place}", kind) for place, (kind, _) in enumerate(cells)]
    organisation.answer(QUERY, Result(columns, [[value for _, value in cells], [None for _ in cells]]))
    (piece,) = source.pieces(QUERY)
    assert list(piece.rows[0]) == [value for _, value in cells]
    assert [type(value) for value in piece.rows[0]] == [type(value) for _, value in cells]
    assert set(piece.rows[1]) == {None}


def test_the_rows_of_a_query_become_candidates(organisation: Organisation, source: DataverseSource) -> None:
    data_source = DataSource.model_validate(
        {
            "type": "dataverse",
            "connection": "ORG",
            "query": QUERY,
            "primary_key": "contactid",
            "batch_time_column": "cutover",
        }
    )
    key = UUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")
    columns = [("contactid", "uniqueidentifier"), ("cutover", "datetime")]
    organisation.answer(QUERY, Result(columns, [(key, datetime(2026, 3, 3, 20))]))  # noqa: DTZ001
    reader = RowReader(data_source)
    for piece in source.pieces(QUERY):
        reader.take(piece.columns, piece.rows)
    (candidate,) = reader.reading().candidates.values()
    assert orjson.loads(reader.reading().data_of(candidate)) == {
        "contactid": "6f9619ff-8b86-d011-b42d-00c04fc964ff",
        "cutover": "2026-03-03T20:00:00Z",
    }


def test_without_the_driver_the_hint_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mssql_python", None)
    with pytest.raises(SourceFailed) as failed:
        list(DataverseSource("https://localhost", GivenToken(TOKEN)).pieces(QUERY))
    assert failed.value.hint == "install matoolkit[mssql]"


def test_without_the_drivers_system_library_the_hint_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import mssql_python

    def connect(*_: Any, **__: Any) -> None:
        raise mssql_python.OperationalError("Connection operation failed", "Failed to load the driver. Please read …")

    monkeypatch.setattr(mssql_python, "connect", connect)
    with pytest.raises(SourceFailed, match="Failed to load the driver") as failed:
        list(DataverseSource("https://localhost", GivenToken(TOKEN)).pieces(QUERY))
    assert "libltdl7" in str(failed.value.hint)
