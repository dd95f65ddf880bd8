"""The calls of Databricks' SQL Statements API, and the links that lead to its results.

A link carries a credential of its own, and is as secret as a token: it gets no Authorization header and appears in no
error.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from matoolkit.errors import MatoolkitError, SourceFailed
from matoolkit.sources.addresses import Address
from matoolkit.sources.databricks.values import read_instant
from matoolkit.sources.patience import Patience
from matoolkit.tokens import Tokens

_STATEMENTS = "/api/2.0/sql/statements"
_LINK_MARGIN = timedelta(seconds=30)
# The statuses with which storage refuses an expired link.
_LINK_REFUSED = frozenset({400, 401, 403, 404, 410})


@dataclass(frozen=True, slots=True)
class Link:
    """Where a chunk of a result can be had, for a while."""

    chunk: int
    rows: int | None
    expires_at: datetime | None
    url: str
    headers: Mapping[str, str]

    def has_expired(self, now: datetime) -> bool:
        """Whether the link is, or is about to be, no longer good."""
        return self.expires_at is not None and self.expires_at - _LINK_MARGIN <= now


class StatementsApi:
    """One workspace, for the time of one query."""

    def __init__(self, address: Address, tokens: Tokens, http: httpx.Client, patience: Patience) -> None:
        self._address = address
        self._tokens = tokens
        self._http = http
        self._patience = patience
        self._token = ""

    def start(self, warehouse: str, query: str) -> dict[str, Any]:
        """Run a query and return what is known after a few seconds."""
        # A start whose answer was lost is sent again: the query only reads, so a second run changes nothing.
        body = {
            "warehouse_id": warehouse,
            "statement": query,
            "wait_timeout": "10s",
            "on_wait_timeout": "CONTINUE",
            "disposition": "EXTERNAL_LINKS",
            "format": "JSON_ARRAY",
        }
        return self._call("POST", _STATEMENTS, body)

    def state(self, statement: str) -> dict[str, Any]:
        """Ask how far a statement has come."""
        return self._call("GET", _path(statement))

    def links(self, statement: str, chunk: int) -> dict[int, Link]:
        """Ask for new links to a chunk, and perhaps to those after it."""
        return read_links(self._call("GET", _path(statement, f"/result/chunks/{chunk}")))

    def cancel(self, statement: str) -> None:
        """Cancel a statement that is no longer needed; if that fails, it ends by itself."""
        with suppress(httpx.RequestError, MatoolkitError):
            self._send("POST", _path(statement, "/cancel"), None)

    def download(self, link: Link) -> list[list[Any]] | None:
        """Fetch the rows behind a link; None if it is no longer good."""
        if self._address.is_encrypted and not link.url.startswith("https://"):
            raise SourceFailed("Databricks returned a link that is not encrypted")
        headers = {name: value for name, value in link.headers.items() if name.lower() != "authorization"}
        response = self._patience.answer(lambda: self._http.get(link.url, headers=headers))
        if response.status_code in _LINK_REFUSED:
            return None
        if response.status_code != httpx.codes.OK:
            raise SourceFailed(f"a part of the result could not be fetched: status {response.status_code}")
        rows = _json(response)
        if not isinstance(rows, list):
            raise SourceFailed("a part of the result is not a list of rows")
        return rows

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        response = self._patience.answer(lambda: self._send(method, path, body))
        if response.status_code == httpx.codes.UNAUTHORIZED:
            # A token may end while a statement runs.
            self._tokens.token(refused=self._token)
            response = self._patience.answer(lambda: self._send(method, path, body))
        if response.status_code != httpx.codes.OK:
            raise self._refusal(response)
        answer = _json(response)
        if not isinstance(answer, dict):
            raise SourceFailed("Databricks' answer is not an object")
        return answer

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        self._token = self._tokens.token()
        headers = {"Authorization": f"Bearer {self._token}"}
        return self._http.request(method, f"{self._address.origin}{path}", headers=headers, json=body)

    def _refusal(self, response: httpx.Response) -> SourceFailed:
        if response.status_code == httpx.codes.UNAUTHORIZED:
            return SourceFailed(
                "Databricks refused the token, and a fresh one too",
                hint="check the token, or that the workspace knows the Entra identity",
            )
        with suppress(SourceFailed):
            answer = _json(response)
            if isinstance(answer, dict) and answer.get("message"):
                return self.failure(answer)
        return SourceFailed(f"Databricks answered with status {response.status_code}")

    def failure(self, error: Mapping[str, Any]) -> SourceFailed:
        """Tell what Databricks says about a failure, in one line and without the token if it repeats that."""
        said = (str(error.get("message") or "no reason given").strip().splitlines() or [""])[0][:500]
        code = f" ({error['error_code']})" if error.get("error_code") else ""
        return SourceFailed(f"Databricks: {said}{code}".replace(self._token, "***"))


def read_links(result: Mapping[str, Any]) -> dict[int, Link]:
    """Read the links in a result, by the number of the chunk."""
    try:
        links = [_link(link) for link in result.get("external_links") or ()]
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        raise SourceFailed("Databricks returned a link that cannot be read") from None
    return {link.chunk: link for link in links}


def _link(link: Mapping[str, Any]) -> Link:
    expiration = link.get("expiration")
    return Link(
        chunk=int(link["chunk_index"]),
        rows=link.get("row_count"),
        expires_at=read_instant(expiration) if expiration else None,
        url=str(link["external_link"]),
        headers=dict(link.get("http_headers") or {}),
    )


def _path(statement: str, rest: str = "") -> str:
    return f"{_STATEMENTS}/{quote(statement, safe='')}{rest}"


def _json(response: httpx.Response) -> Any:
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError:
        raise SourceFailed("what the source returned is not JSON") from None
