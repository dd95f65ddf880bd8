"""A workspace that speaks the SQL Statements API: one canned result, and whatever goes wrong on the way to it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from matoolkit.clock import VirtualClock
from tests.calls.checking import HttpApi
from tests.servers.http import Answer, Request

STATEMENTS = "/api/2.0/sql/statements"
LINK_LIFE = timedelta(minutes=15)


@dataclass
class Workspace:
    """Holds a result in chunks. `next_answers` come first, each for the requests whose path contains its key."""

    clock: VirtualClock
    address: str = ""
    columns: Sequence[tuple[str, str]] = (("id", "STRING"),)
    chunks: Sequence[Sequence[Sequence[Any]]] = ((("a",),),)
    polls_before_the_end: int = 0
    links_in_an_answer: int = 1
    good_tokens: set[str] = field(default_factory=lambda: {"dapi-secret"})
    manifest_says: dict[str, Any] = field(default_factory=dict)
    ends: dict[str, Any] = field(default_factory=lambda: {"state": "SUCCEEDED"})
    next_answers: list[tuple[str, Answer]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _links: dict[str, tuple[int, datetime]] = field(default_factory=dict)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        for place, (path, answer) in enumerate(self.next_answers):
            if path in request.path:
                del self.next_answers[place]
                return answer
        if request.path.startswith("/storage/"):
            return self._from_storage(request)
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.good_tokens:
            return Answer({"error_code": "UNAUTHENTICATED", "message": "Credential was not sent"}, 401)
        answer = self._from_api(request)
        seen = request.method, request.path, request.body, answer.status, answer.body
        self.problems.extend(HttpApi("databricks").problems(*seen))
        return answer

    def asked(self, part: str) -> list[Request]:
        return [request for request in self.requests if part in request.path]

    @property
    def cancelled(self) -> bool:
        return bool(self.asked("/cancel"))

    def _from_api(self, request: Request) -> Answer:
        parts = request.path.removeprefix(STATEMENTS).strip("/").split("/")
        match request.method, parts:
            case ("POST", [""]) | ("GET", ["statement-1"]):
                return Answer(self._statement())
            case "POST", ["statement-1", "cancel"]:
                return Answer({})
            case "GET", ["statement-1", "result", "chunks", index]:
                return Answer({"external_links": self._external_links(int(index))})
            case _:
                return Answer({"error_code": "NOT_FOUND", "message": f"no {request.path}"}, 404)

    def _statement(self) -> dict[str, Any]:
        if self.polls_before_the_end > 0:
            self.polls_before_the_end -= 1
            return {"statement_id": "statement-1", "status": {"state": "RUNNING"}}
        if self.ends["state"] == "SUCCEEDED":
            return self.succeeded()
        return {"statement_id": "statement-1", "status": self.ends}

    def succeeded(self) -> dict[str, Any]:
        return {
            "statement_id": "statement-1",
            "status": self.ends,
            "manifest": self._manifest() | self.manifest_says,
            "result": {"external_links": self._external_links(0)} if self.chunks else {},
        }

    def _manifest(self) -> dict[str, Any]:
        columns = [
            {"name": name, "position": place, "type_name": kind.partition("(")[0], "type_text": kind}
            for place, (name, kind) in enumerate(self.columns)
        ]
        return {
            "format": "JSON_ARRAY",
            "schema": {"column_count": len(columns), "columns": columns},
            "total_chunk_count": len(self.chunks),
            "total_row_count": sum(len(chunk) for chunk in self.chunks),
            "truncated": False,
        }

    def _external_links(self, first: int) -> list[dict[str, Any]]:
        last = min(first + self.links_in_an_answer, len(self.chunks))
        return [self._external_link(index) for index in range(first, last)]

    def _external_link(self, index: int) -> dict[str, Any]:
        path = f"/storage/chunk-{index}?sig=link-secret-{len(self._links)}"
        expires_at = self.clock.now() + LINK_LIFE
        self._links[path] = (index, expires_at)
        return {
            "chunk_index": index,
            "row_count": len(self.chunks[index]),
            "external_link": f"{self.address}{path}",
            "expiration": expires_at.isoformat().replace("+00:00", "Z"),
            "http_headers": {"x-ms-encryption": "key-of-the-chunk"},
        }

    def _from_storage(self, request: Request) -> Answer:
        index, expires_at = self._links[request.path]
        if "Authorization" in request.headers or self.clock.now() >= expires_at:
            return Answer(b"<Error>AuthenticationFailed</Error>", 403)
        return Answer([list(row) for row in self.chunks[index]])
