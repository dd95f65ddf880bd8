"""Requests that are sent twice and done once: the key, the work and the answer are one transaction."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, BinaryIO

import orjson
from fastapi import Header, Response

from matoolkit.api.services import Services
from matoolkit.api.shapes.naming import Shape
from matoolkit.errors import KeyReused
from matoolkit.store import Store
from matoolkit.store.idempotency import begin_request, finish_request

KEPT_FOR = timedelta(hours=24)
_PIECE = 1024 * 1024

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


def once(
    services: Services, actor: str, key: str | None, request_hash: str, status: int, work: Callable[[Store], Shape]
) -> Response:
    """Do work in a store, or if its key is known, give the answer that was given then."""
    if key is None:
        return _answer(status, _json(work(services.store)))
    with services.store.transaction() as tx:
        at = tx.time()
        before = begin_request(tx, actor, key, request_hash, at, at + KEPT_FOR)
        if before is not None:
            if before.request_hash != request_hash or before.response_status is None:
                raise KeyReused
            replayed = _answer(before.response_status, before.response_json or "")
            replayed.headers["Idempotent-Replayed"] = "true"
            return replayed
        content = _json(work(services.store.within(tx)))
        finish_request(tx, actor, key, status, content)
        return _answer(status, content)


def fingerprint(*parts: object, file: BinaryIO | None = None) -> str:
    """Return the same for the same request."""
    seen = hashlib.sha256(orjson.dumps([str(part) for part in parts]))
    if file is not None:
        while piece := file.read(_PIECE):
            seen.update(piece)
        file.seek(0)
    return seen.hexdigest()


def _json(shape: Shape) -> str:
    return shape.model_dump_json(by_alias=True)


def _answer(status: int, content: str) -> Response:
    return Response(content, status, media_type="application/json")
