"""Changes: done once however often they are sent, and only to what was looked at.

The key, the look, the change and the answer are one transaction; only a long file is several.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, BinaryIO, TypeVar

import orjson
from fastapi import Depends, Header, Response

from matoolkit.api.conditions import IfMatch, Subject, json_of
from matoolkit.api.services import Admin, Approver, Operator, Serving
from matoolkit.api.shapes.naming import Shape
from matoolkit.doors.services import Services
from matoolkit.errors import KeyReused
from matoolkit.store import Store, Transaction
from matoolkit.store.idempotency import RequestRow, begin_request, finish_request

KEPT_FOR = timedelta(hours=24)
_PIECE = 1024 * 1024

ShapeT = TypeVar("ShapeT", bound=Shape)
# What is done in one transaction: it returns the answer, or how far a long work has come, if there is anything to say.
Part = Callable[[Store], ShapeT | None]

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="A request that comes again with its key within 24 hours is answered as before, not done again.",
    ),
]


@dataclass(frozen=True, slots=True)
class Change:
    """A change that an administrator asks for, perhaps with a key, perhaps with an ETag."""

    services: Services
    by: str
    key: str | None
    seen: str | None = None

    def made(
        self,
        asked: Sequence[object],
        work: Callable[[Store], ShapeT],
        *,
        of: Subject | None = None,
        status: Callable[[ShapeT], int] = lambda _: 200,
    ) -> Response:
        """Do the work, or if the key of this very request is known, give the answer that was given then.

        `asked` is what makes it this request and no other.
        """
        return self._made(self._fingerprint(asked), iter([work]), of=of, status=status)

    def made_in_parts(
        self,
        asked: Sequence[object],
        parts: Iterator[Part[ShapeT]],
        *,
        file: BinaryIO | None = None,
        resume: Callable[[Mapping[str, Any]], None] = lambda _: None,
        of: Subject | None = None,
        status: Callable[[ShapeT], int] = lambda _: 200,
    ) -> Response:
        """Do the same in several transactions, so that others can write between them.

        A part is asked for outside of any transaction, and says how far the work has come. If it broke off, the same
        request with its key goes on from there: `resume` is told what the last part said.
        """
        return self._made(self._fingerprint(asked, file), parts, of=of, status=status, resume=resume)

    def _made(
        self,
        request: str,
        parts: Iterator[Part[ShapeT]],
        *,
        of: Subject | None,
        status: Callable[[ShapeT], int],
        resume: Callable[[Mapping[str, Any]], None] = lambda _: None,
    ) -> Response:
        store, done = self.services.store, None
        if self.key is None and (self.seen is None or of is None):
            for part in parts:
                done = part(store)
            return _answered(done, status)
        part, following = next(parts), next(parts, None)
        with store.transaction() as tx:
            # The key is reserved in the transaction of the work: if the work is rolled back, the key is free again
            # (rule A1).
            before = self._before(tx, request)
            if before is not None and before.response_status is not None:
                return _replayed(before.response_status, before.response_json)
            if before is not None:
                resume(orjson.loads(before.response_json or "{}"))
            # A repeated request was checked before it was done the first time.
            elif self.seen is not None and of is not None:
                of.require(store.within(tx), tx, self.seen)
            done = self._done(tx, part, status, is_last=following is None)
        while following is not None:
            part, following = following, next(parts, None)
            with store.transaction() as tx:
                done = self._done(tx, part, status, is_last=following is None)
        return _answered(done, status)

    def _fingerprint(self, asked: Sequence[object], file: BinaryIO | None = None) -> str:
        """Return the same value for the same request; without a key it is not needed."""
        if self.key is None:
            return ""
        seen = hashlib.sha256(orjson.dumps([str(part) for part in asked]))
        if file is not None:
            file.seek(0)
            while piece := file.read(_PIECE):
                seen.update(piece)
        return seen.hexdigest()

    def _done(
        self, tx: Transaction, part: Part[ShapeT], status: Callable[[ShapeT], int], *, is_last: bool
    ) -> ShapeT | None:
        """Do a part, and keep with the key how far it has come."""
        done = part(self.services.store.within(tx))
        if self.key is not None and done is not None:
            finish_request(tx, self.by, self.key, status(done) if is_last else None, json_of(done))
        return done

    def _before(self, tx: Transaction, request: str) -> RequestRow | None:
        if self.key is None:
            return None
        at = tx.lock_time()
        before = begin_request(tx, self.by, self.key, request, at, at + KEPT_FOR)
        if before is not None and before.request_hash != request:
            raise KeyReused
        return before


def _creation(serving: Serving, admin: Admin, key: IdempotencyKey = None) -> Change:
    return Change(serving, admin, key)


def _change(serving: Serving, admin: Admin, key: IdempotencyKey = None, seen: IfMatch = None) -> Change:
    return Change(serving, admin, key, seen)


def _operation(serving: Serving, operator: Operator, key: IdempotencyKey = None) -> Change:
    return Change(serving, operator, key)


def _signing(serving: Serving, approver: Approver, key: IdempotencyKey = None, seen: IfMatch = None) -> Change:
    return Change(serving, approver.name, key, seen)


def _operation_on(serving: Serving, operator: Operator, key: IdempotencyKey = None, seen: IfMatch = None) -> Change:
    return Change(serving, operator, key, seen)


Operating = Annotated[Change, Depends(_operation)]
OperatingOn = Annotated[Change, Depends(_operation_on)]
Signing = Annotated[Change, Depends(_signing)]
Creating = Annotated[Change, Depends(_creation)]
Changing = Annotated[Change, Depends(_change)]


def _answered(done: ShapeT | None, status: Callable[[ShapeT], int]) -> Response:
    assert done is not None  # noqa: S101 - the last part has an answer
    return _answer(status(done), json_of(done))


def _replayed(status: int, content: str | None) -> Response:
    replayed = _answer(status, content or "")
    replayed.headers["Idempotent-Replayed"] = "true"
    return replayed


def _answer(status: int, content: str) -> Response:
    return Response(content, status, media_type="application/json")
