"""Rule R4: a Databricks warehouse as a source, over HTTP, against a server that plays the SQL Statements API."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.rows import RowReader
from matoolkit.errors import SourceFailed
from matoolkit.runbook.model import DataSource
from matoolkit.sources.databricks import DatabricksSource
from matoolkit.sources.tokens import GivenToken
from tests.servers.databricks import STATEMENTS, Workspace
from tests.servers.http import Answer

TOKEN = "dapi-secret"


@pytest.fixture
def source(workspace: Workspace, clock: VirtualClock) -> DatabricksSource:
    return DatabricksSource(workspace.address, "warehouse-1", GivenToken(TOKEN), clock, rows_in_a_piece=3)


class RenewableToken:
    """A token that is renewed when it is refused; each has a number."""

    def __init__(self) -> None:
        self.number = 1

    def token(self, refused: str | None = None) -> str:
        self.number += refused == f"token-{self.number}"
        return f"token-{self.number}"


def all_rows(source: DatabricksSource, query: str = "SELECT 1") -> list[Any]:
    return [row[0] for piece in source.pieces(query) for row in piece.rows]


def said(failed: pytest.ExceptionInfo[SourceFailed]) -> str:
    return f"{failed.value} {failed.value.hint} {failed.getrepr(chain=True)}"


def letters(count: int, first: int = 0) -> list[tuple[str]]:
    return [(f"user{number}",) for number in range(first, first + count)]


def test_r4_a_result_comes_chunk_by_chunk_in_pieces_with_its_columns(
    workspace: Workspace, source: DatabricksSource
) -> None:
    workspace.columns = [("Id", "STRING"), ("n", "INT")]
    workspace.chunks = [[("a", "1"), ("b", "2"), ("c", None), ("d", "4")], [("e", "5")]]
    pieces = list(source.pieces("SELECT Id, n FROM people WHERE Id LIKE '%' OR Id = ':x ? {y}'"))
    assert [len(piece.rows) for piece in pieces] == [3, 1, 1]
    assert {tuple(piece.columns) for piece in pieces} == {("Id", "n")}
    assert [list(row) for piece in pieces for row in piece.rows] == [
        ["a", 1],
        ["b", 2],
        ["c", None],
        ["d", 4],
        ["e", 5],
    ]
    assert workspace.requests[0].path == STATEMENTS
    assert workspace.requests[0].body == {
        "warehouse_id": "warehouse-1",
        "statement": "SELECT Id, n FROM people WHERE Id LIKE '%' OR Id = ':x ? {y}'",
        "wait_timeout": "10s",
        "on_wait_timeout": "CONTINUE",
        "disposition": "EXTERNAL_LINKS",
        "format": "JSON_ARRAY",
    }
    assert not workspace.cancelled


@pytest.mark.parametrize("chunks", [[], [[]]])
def test_r4_an_empty_result_is_one_empty_piece_that_knows_its_columns(
    workspace: Workspace, source: DatabricksSource, chunks: list[list[Any]]
) -> None:
    workspace.chunks = chunks
    (piece,) = source.pieces("SELECT id FROM people WHERE 1 = 0")
    assert (tuple(piece.columns), list(piece.rows)) == (("id",), [])


def test_a_statement_that_takes_its_time_is_asked_about_until_it_ends(
    workspace: Workspace, source: DatabricksSource, clock: VirtualClock
) -> None:
    workspace.polls_before_the_end = 20
    assert all_rows(source) == ["a"]
    assert len(workspace.asked("statement-1")) == 20
    assert clock.monotonic() > 60


def test_links_get_the_headers_they_ask_for_and_no_token(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.chunks = [letters(2), letters(2)]
    all_rows(source)
    links = workspace.asked("/storage/")
    assert len(links) == 2
    for request in links:
        assert "authorization" not in {name.lower() for name in request.headers}
        assert TOKEN not in str(request.headers)
        assert request.headers["x-ms-encryption"] == "key-of-the-chunk"


def test_a_link_that_expired_while_rows_were_read_is_asked_for_again(
    workspace: Workspace, source: DatabricksSource, clock: VirtualClock
) -> None:
    workspace.chunks = [letters(2), letters(2, first=2)]
    workspace.links_in_an_answer = 2
    pieces = source.pieces("SELECT 1")
    read = [row[0] for row in next(pieces).rows]
    clock.advance(timedelta(minutes=16))
    read += [row[0] for piece in pieces for row in piece.rows]
    assert read == ["user0", "user1", "user2", "user3"]
    assert len(workspace.asked("/result/chunks/1")) == 1


def test_a_link_that_storage_refuses_is_asked_for_again(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.next_answers = [("/storage/", Answer(b"<Error/>", 403))]
    assert all_rows(source) == ["a"]


@pytest.mark.parametrize("expiration", [None, "2026-03-03T12:10:00.5", "2026-03-03T12:00:10Z", "2026-03-03T11:00:00Z"])
def test_a_link_is_used_until_shortly_before_it_expires(
    workspace: Workspace, source: DatabricksSource, expiration: str | None
) -> None:
    link = {"chunk_index": 0, "row_count": 1, "external_link": f"{workspace.address}/early", "expiration": expiration}
    workspace.next_answers = [
        (STATEMENTS, Answer(workspace.succeeded() | {"result": {"external_links": [link]}})),
        ("/early", Answer([["early"]])),
    ]
    is_good = expiration is None or "12:10" in expiration
    assert all_rows(source) == (["early"] if is_good else ["a"])


@pytest.mark.parametrize("expiration", ["soon", 5, "0001-01-01T00:00:00+14:00"])
def test_a_link_that_cannot_be_read_is_an_error(
    workspace: Workspace, source: DatabricksSource, expiration: object
) -> None:
    link = {"chunk_index": 0, "external_link": f"{workspace.address}/early", "expiration": expiration}
    workspace.next_answers = [(STATEMENTS, Answer(workspace.succeeded() | {"result": {"external_links": [link]}}))]
    with pytest.raises(SourceFailed, match="link"):
        all_rows(source)


def test_links_that_are_always_refused_are_given_up_and_never_shown(
    workspace: Workspace, source: DatabricksSource
) -> None:
    workspace.next_answers = [("/storage/", Answer(b"<Error/>", 403))] * 10
    with pytest.raises(SourceFailed, match="refused") as failed:
        all_rows(source)
    assert len(workspace.asked("/storage/")) == 3
    assert "link-secret" not in said(failed)
    assert workspace.cancelled


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("place", [STATEMENTS, "/storage/"])
@pytest.mark.parametrize("retry_after", ["47", "Tue, 03 Mar 2026 12:00:47 GMT"])
def test_a_busy_service_is_left_alone_for_as_long_as_it_asks(
    workspace: Workspace, source: DatabricksSource, clock: VirtualClock, status: int, place: str, retry_after: str
) -> None:
    headers = {"Retry-After": retry_after, "Date": "Tue, 03 Mar 2026 12:00:00 GMT"}
    workspace.next_answers = [(place, Answer({}, status, headers))]
    assert all_rows(source) == ["a"]
    assert clock.monotonic() == 47


@pytest.mark.parametrize("retry_after", [{}, {"Retry-After": "soon"}, {"Retry-After": "Mon, 02 Mar 2026 12:00:00 GMT"}])
def test_a_busy_service_that_says_nothing_usable_is_tried_again_a_bounded_number_of_times(
    workspace: Workspace, source: DatabricksSource, retry_after: dict[str, str]
) -> None:
    busy = Answer({"error_code": "REQUEST_LIMIT_EXCEEDED", "message": "too many"}, 429, retry_after)
    workspace.next_answers = [(STATEMENTS, busy)] * 100
    with pytest.raises(SourceFailed, match="too many") as failed:
        all_rows(source)
    assert len(workspace.requests) == 6
    assert failed.value.transient


def test_a_wait_that_is_longer_than_the_query_may_take_is_not_begun(
    workspace: Workspace, source: DatabricksSource, clock: VirtualClock
) -> None:
    workspace.next_answers = [(STATEMENTS, Answer({}, 429, {"Retry-After": "86400"}))]
    with pytest.raises(SourceFailed, match="1800 seconds"):
        all_rows(source)
    assert clock.monotonic() == 0


@pytest.mark.parametrize("answer", [Answer(is_reset=True), Answer([["a"]], bytes_sent=3), Answer(bytes_sent=0)])
@pytest.mark.parametrize("place", [STATEMENTS, "/storage/"])
def test_a_connection_that_breaks_is_made_again(
    workspace: Workspace, source: DatabricksSource, answer: Answer, place: str
) -> None:
    workspace.next_answers = [(place, answer)]
    assert all_rows(source) == ["a"]


def test_t2_a_workspace_that_is_away_is_trouble_that_passes(clock: VirtualClock) -> None:
    source = DatabricksSource("http://127.0.0.1:1", "warehouse-1", GivenToken(TOKEN), clock)
    with pytest.raises(SourceFailed, match="could not be reached") as failed:
        all_rows(source)
    assert failed.value.transient
    assert TOKEN not in said(failed)


def test_t2_a_result_that_was_cut_off_is_an_error_before_any_row_is_seen(
    workspace: Workspace, source: DatabricksSource
) -> None:
    workspace.manifest_says = {"truncated": True}
    with pytest.raises(SourceFailed, match="cut the result off"):
        next(source.pieces("SELECT 1"))


@pytest.mark.parametrize("says", [{"total_row_count": 5}, {"total_row_count": 5, "total_chunk_count": 0}])
def test_t2_a_result_with_fewer_rows_than_promised_is_an_error(
    workspace: Workspace, source: DatabricksSource, says: dict[str, int]
) -> None:
    workspace.chunks = [letters(4)]
    workspace.manifest_says = says
    with pytest.raises(SourceFailed, match="incomplete"):
        all_rows(source)


def test_t2_a_chunk_with_fewer_rows_than_promised_is_an_error(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.chunks = [letters(4)]
    workspace.next_answers = [("/storage/", Answer([["user0"]]))]
    with pytest.raises(SourceFailed, match="1 rows came where 4"):
        all_rows(source)


@pytest.mark.parametrize("state", ["FAILED", "CANCELED", "CLOSED"])
def test_a_statement_that_fails_says_why_and_is_not_cancelled(
    workspace: Workspace, source: DatabricksSource, state: str
) -> None:
    error = {"error_code": "BAD_REQUEST", "message": f"no table nowhere, token {TOKEN}\nat line 1"}
    workspace.ends = {"state": state, "error": error}
    with pytest.raises(SourceFailed, match=r"no table nowhere, token \*\*\* \(BAD_REQUEST\)") as failed:
        all_rows(source)
    assert TOKEN not in said(failed)
    assert not workspace.cancelled


def test_a_statement_that_ended_without_a_word_is_told_by_its_state(
    workspace: Workspace, source: DatabricksSource
) -> None:
    workspace.ends = {"state": "CANCELED"}
    with pytest.raises(SourceFailed, match="CANCELED"):
        all_rows(source)


def test_a_statement_that_takes_too_long_is_cancelled(
    workspace: Workspace, source: DatabricksSource, clock: VirtualClock
) -> None:
    workspace.polls_before_the_end = 1_000_000
    with pytest.raises(SourceFailed, match="1800 seconds") as failed:
        all_rows(source)
    assert workspace.cancelled
    assert clock.monotonic() <= 1800
    assert failed.value.hint


def test_whoever_stops_reading_cancels_the_statement(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.chunks = [letters(2), letters(2)]
    pieces = source.pieces("SELECT 1")
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert workspace.cancelled
    assert len(workspace.asked("/storage/")) == 1


def test_a_cancel_that_fails_does_not_hide_the_reason(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.polls_before_the_end = 1_000_000
    workspace.next_answers = [("/cancel", Answer(is_reset=True))]
    with pytest.raises(SourceFailed, match="1800 seconds"):
        all_rows(source)


def test_a_token_that_ends_while_the_statement_runs_is_renewed(workspace: Workspace, clock: VirtualClock) -> None:
    workspace.good_tokens = {"token-2"}
    workspace.polls_before_the_end = 2
    workspace.next_answers = [(STATEMENTS, Answer({"statement_id": "statement-1", "status": {"state": "RUNNING"}}))]
    source = DatabricksSource(workspace.address, "warehouse-1", RenewableToken(), clock)
    assert all_rows(source) == ["a"]


def test_a_token_that_is_refused_twice_is_an_error_that_does_not_show_it(
    workspace: Workspace, source: DatabricksSource
) -> None:
    workspace.good_tokens = {"another"}
    with pytest.raises(SourceFailed, match="refused the token") as failed:
        all_rows(source)
    assert len(workspace.requests) == 2
    assert TOKEN not in said(failed)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"<html>sign in</html>"),
        Answer(b"", 302, {"Location": "https://login.example"}),
        Answer([1, 2]),
        Answer({}),
        Answer({"status": {"state": "SUCCEEDED"}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"total_chunk_count": 0}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"schema": {"columns": ["id"]}}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"schema": {}}, "result": {"external_links": [{}]}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"schema": {}, "total_chunk_count": "many"}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"schema": {}, "total_row_count": [1]}}),
        Answer({"status": {"state": "SUCCEEDED"}, "manifest": {"schema": {}}, "result": {"external_links": [1]}}),
        Answer({"error_code": "PERMISSION_DENIED", "message": "no access to the warehouse"}, 403),
        Answer(b"bad gateway", 418),
    ],
)
def test_an_answer_that_is_not_what_it_should_be_is_an_error(
    workspace: Workspace, source: DatabricksSource, answer: Answer
) -> None:
    workspace.next_answers = [(STATEMENTS, answer)]
    with pytest.raises(SourceFailed):
        all_rows(source)


@pytest.mark.parametrize("body", [b"[[", {"rows": []}, [["a", "b"]], ["a", 5], [[]]])
def test_rows_that_are_not_what_they_should_be_are_an_error(
    workspace: Workspace, source: DatabricksSource, body: Any
) -> None:
    workspace.columns = [("id", "STRING"), ("a", "STRING"), ("b", "STRING")]
    workspace.chunks = [[("1", "2", "3")] * (len(body) if isinstance(body, list) else 1)]
    workspace.next_answers = [("/storage/", Answer(body))]
    with pytest.raises(SourceFailed):
        all_rows(source)


@pytest.mark.off_contract  # TIMESTAMP_NTZ is a type of Databricks' SQL, and its client does not list it
def test_values_come_as_what_their_columns_hold(workspace: Workspace, source: DatabricksSource) -> None:
    cells: list[tuple[str, str | None, Any]] = [
        ("STRING", "1", "1"),
        ("STRING", None, None),
        ("BYTE", "-1", -1),
        ("LONG", "9223372036854775807", 2**63 - 1),
        (
            "DECIMAL(38,2)",
            "12345678901234567890123456789.70",
            Decimal("12345678901234567890123456789.70"),
        ),
        ("DOUBLE", "1.5E10", 1.5e10),
        ("BOOLEAN", "true", True),
        ("BOOLEAN", "false", False),
        ("DATE", "2026-03-03", date(2026, 3, 3)),
        ("TIMESTAMP", "2026-03-03T20:00:00.000Z", datetime(2026, 3, 3, 20, tzinfo=UTC)),
        ("TIMESTAMP_NTZ", "2026-03-03T20:00:00.000", datetime(2026, 3, 3, 20)),  # noqa: DTZ001
        ("ARRAY", '["a", 12345678901234567890123, null]', ["a", 12345678901234567890123, None]),
        ("BINARY", "AAH/", b"\x00\x01\xff"),
    ]
    workspace.columns = [(f"c{place}", kind) for place, (kind, _, _) in enumerate(cells)]
    workspace.chunks = [[[text for _, text, _ in cells]]]
    (piece,) = source.pieces("SELECT 1")
    assert list(piece.rows[0]) == [value for _, _, value in cells]


def test_the_rows_of_a_query_become_candidates(workspace: Workspace, source: DatabricksSource) -> None:
    workspace.columns = [("id", "STRING"), ("cutover", "TIMESTAMP"), ("proxies", "ARRAY"), ("amount", "DOUBLE")]
    workspace.chunks = [[("ada", "2026-03-03T20:00:00Z", '["smtp:a@b"]', "NaN")]]
    data_source = DataSource.model_validate(
        {
            "type": "databricks",
            "connection": "WORKSPACE",
            "warehouse_id": "WAREHOUSE",
            "query": "SELECT 1",
            "primary_key": "id",
            "batch_time_column": "cutover",
            "batch_time_zone": "Europe/Berlin",
            "multi_valued_columns": [{"name": "proxies", "format": "json_array"}],
        }
    )
    reader = RowReader(data_source)
    for piece in source.pieces(data_source.query):
        reader.take(piece.columns, piece.rows)
    (candidate,) = reader.reading().candidates.values()
    assert candidate.batch_time == datetime(2026, 3, 3, 20, tzinfo=UTC)
    assert orjson.loads(reader.reading().data_of(candidate)) == {
        "id": "ada",
        "cutover": "2026-03-03T20:00:00Z",
        "proxies": ["smtp:a@b"],
        "amount": "nan",
    }
