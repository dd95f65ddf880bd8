"""A Databricks SQL warehouse, asked through the SQL Statements API (rule R4).

The result is fetched chunk by chunk and checked against what the manifest promises: a result that came in part is an
error, for members that are missing from it would count as gone.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import httpx

from matoolkit.backoff import Backoff
from matoolkit.clock import Clock
from matoolkit.errors import SourceFailed
from matoolkit.ports import Piece
from matoolkit.sources.addresses import read_address
from matoolkit.sources.databricks.api import Link, StatementsApi, read_links
from matoolkit.sources.databricks.values import read_rows, readers
from matoolkit.sources.patience import Patience
from matoolkit.tokens import Tokens

ADDRESS_EXAMPLE = "https://adb-1234567890123456.7.azuredatabricks.net"
# The application id of Databricks itself, the same in every tenant.
ENTRA_SCOPE = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"
ROWS_IN_A_PIECE = 5_000
LONGEST_QUERY = timedelta(minutes=30)

# Longer than the wait that we ask for at the start of a statement.
_HTTP_TIMEOUT = httpx.Timeout(60, connect=15)
_TRIES_OF_A_LINK = 3
_LOOKS = Backoff(first_seconds=0.5, longest_seconds=5)
_UNDER_WAY = frozenset({"PENDING", "RUNNING"})


class DatabricksSource:
    """A SQL warehouse of a workspace. Each query has connections of its own, which are closed after it."""

    def __init__(
        self,
        address: str,
        warehouse: str,
        tokens: Tokens,
        clock: Clock,
        *,
        rows_in_a_piece: int = ROWS_IN_A_PIECE,
        longest_query: timedelta = LONGEST_QUERY,
    ) -> None:
        self._address = read_address(address, ADDRESS_EXAMPLE)
        self._warehouse = warehouse
        self._tokens = tokens
        self._clock = clock
        self._rows = rows_in_a_piece
        self._longest = longest_query.total_seconds()

    def pieces(self, query: str) -> Iterator[Piece]:
        """Run a query and return its result in pieces, at least one; the query stops when reading stops."""
        patience = Patience(self._clock, self._longest)
        with httpx.Client(timeout=_HTTP_TIMEOUT) as http:
            api = StatementsApi(self._address, self._tokens, http, patience)
            answer = api.start(self._warehouse, query)
            statement = str(answer.get("statement_id"))
            with _cancelled_if_left(api, statement):
                answer = _ended(api, statement, answer, patience)
            manifest = _manifest(api, answer)
            with _cancelled_if_left(api, statement):
                links = read_links(answer.get("result") or {})
                yield from self._pieces(manifest, self._chunks(api, statement, manifest, links))

    def _pieces(self, manifest: Mapping[str, Any], chunks: Iterator[list[list[Any]]]) -> Iterator[Piece]:
        columns = _columns(manifest)
        names, reading = tuple(str(column["name"]) for column in columns), readers(columns)
        read = 0
        for chunk in chunks:
            for start in range(0, len(chunk), self._rows):
                try:
                    rows = read_rows(chunk[start : start + self._rows], reading)
                except (TypeError, ValueError):
                    raise SourceFailed("Databricks returned a row that does not have the result's columns") from None
                read += len(rows)
                yield Piece(names, rows)
        if read != (promised := _count(manifest, "total_row_count", read)):
            raise _incomplete(read, promised)
        if not read:
            yield Piece(names, [])

    def _chunks(
        self, api: StatementsApi, statement: str, manifest: Mapping[str, Any], links: dict[int, Link]
    ) -> Iterator[list[list[Any]]]:
        for chunk in range(_count(manifest, "total_chunk_count", 0)):
            yield self._chunk(api, statement, chunk, links)

    def _chunk(self, api: StatementsApi, statement: str, chunk: int, links: dict[int, Link]) -> list[list[Any]]:
        for _ in range(_TRIES_OF_A_LINK):
            link = links.pop(chunk, None)
            if link is None or link.has_expired(self._clock.now()):
                links.update(api.links(statement, chunk))
                link = links.pop(chunk, None)
            rows = None if link is None else api.download(link)
            if link is not None and rows is not None:
                if len(rows) != (link.rows if link.rows is not None else len(rows)):
                    raise _incomplete(len(rows), link.rows)
                return rows
        raise SourceFailed(f"part {chunk} of Databricks' result could not be fetched: its links are refused")


def _ended(api: StatementsApi, statement: str, answer: dict[str, Any], patience: Patience) -> dict[str, Any]:
    """Wait for a statement to end, whichever way."""
    for looks in count(1):
        if _status(answer).get("state") not in _UNDER_WAY:
            break
        patience.wait(_LOOKS.longest(looks))
        answer = api.state(statement)
    return answer


def _manifest(api: StatementsApi, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a statement that succeeded says about its result; anything else is an error."""
    status = _status(answer)
    if status.get("state") != "SUCCEEDED":
        raise api.failure(status.get("error") or {"message": f"the statement is {status.get('state')}"})
    manifest = answer.get("manifest")
    if not isinstance(manifest, dict):
        raise SourceFailed("Databricks' answer has no manifest")
    if manifest.get("truncated"):
        raise SourceFailed("Databricks cut the result off", hint="let the query return fewer rows or columns")
    return manifest


def _status(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    status = answer.get("status")
    return status if isinstance(status, dict) else {}


def _columns(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    try:
        columns = manifest["schema"].get("columns") or []
        return sorted(columns, key=lambda column: int(column.get("position", 0)))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise SourceFailed("Databricks' answer does not tell the result's columns") from None


def _count(manifest: Mapping[str, Any], name: str, otherwise: int) -> int:
    value = manifest.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int):
        raise SourceFailed(f"Databricks' answer has a {name} that is not a number")
    return value


def _incomplete(read: int, promised: object) -> SourceFailed:
    return SourceFailed(f"Databricks' result is incomplete: {read} rows came where {promised} were promised")


@contextmanager
def _cancelled_if_left(api: StatementsApi, statement: str) -> Iterator[None]:
    """Cancel a statement if an error, or a reader that stops early, leaves it before its end."""
    try:
        yield
    except BaseException:
        api.cancel(statement)
        raise
