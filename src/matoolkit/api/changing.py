"""Changes: done once however often they are sent, and only to what was looked at.

The key, the look, the change and the answer are one transaction.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, BinaryIO, TypeVar

import orjson
from fastapi import Depends, Header, Response

from matoolkit.api.conditions import IfMatch, Subject, json_of
from matoolkit.api.services import Admin, Services, Serving
from matoolkit.api.shapes.naming import Shape
from matoolkit.errors import KeyReused
from matoolkit.store import Store, Transaction
from matoolkit.store.idempotency import begin_request, finish_request

KEPT_FOR = timedelta(hours=24)
_PIECE = 1024 * 1024

ShapeT = TypeVar("ShapeT", bound=Shape)

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
    """A change that an administrator asks for, perhaps under a key, perhaps only of what was seen."""

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
        file: BinaryIO | None = None,
        status: Callable[[ShapeT], int] = lambda _: 200,
    ) -> Response:
        """Do the work, or if the key of this very request is known, give the answer that was given then.

        `asked` and `file` are what makes it this request and no other.
        """
        store = self.services.store
        if self.key is None and (self.seen is None or of is None):
            done = work(store)
            return _answer(status(done), json_of(done))
        request = None if self.key is None else _fingerprint(asked, file)
        with store.transaction() as tx:
            if request is not None and (before := self._before(tx, request)) is not None:
                return before
            within = store.within(tx)
            # After the key: what is sent again was looked at before it was done the first time.
            if self.seen is not None and of is not None:
                of.require(within, tx, self.seen)
            done = work(within)
            content = json_of(done)
            if self.key is not None:
                finish_request(tx, self.by, self.key, status(done), content)
            return _answer(status(done), content)

    def _before(self, tx: Transaction, request: str) -> Response | None:
        at = tx.time()
        before = begin_request(tx, self.by, self.key or "", request, at, at + KEPT_FOR)
        if before is None:
            return None
        if before.request_hash != request or before.response_status is None:
            raise KeyReused
        replayed = _answer(before.response_status, before.response_json or "")
        replayed.headers["Idempotent-Replayed"] = "true"
        return replayed


def _creation(serving: Serving, admin: Admin, key: IdempotencyKey = None) -> Change:
    return Change(serving, admin, key)


def _change(serving: Serving, admin: Admin, key: IdempotencyKey = None, seen: IfMatch = None) -> Change:
    return Change(serving, admin, key, seen)


Creating = Annotated[Change, Depends(_creation)]
Changing = Annotated[Change, Depends(_change)]


def _fingerprint(asked: Sequence[object], file: BinaryIO | None) -> str:
    """Return the same for the same request."""
    seen = hashlib.sha256(orjson.dumps([str(part) for part in asked]))
    if file is not None:
        while piece := file.read(_PIECE):
            seen.update(piece)
        file.seek(0)
    return seen.hexdigest()


def _answer(status: int, content: str) -> Response:
    return Response(content, status, media_type="application/json")
