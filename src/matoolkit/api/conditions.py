"""What a client has seen (RFC 9110): an ETag for what changes, 304 if it has not, 412 for a change of what has."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any

from fastapi import Header, Response

from matoolkit.api.shapes.naming import Shape
from matoolkit.errors import ChangedSince
from matoolkit.store import Store, Transaction

_TAG = re.compile(r'(?P<weak>W/)?(?P<tag>"[^"]*")')

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=1000,
        description="`ETag` of what was read: refused with 412 if it has changed since.",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=1000,
        description="`ETag` of what is known: answered with 304 if it has not changed.",
    ),
]

# What the document says of an answer that has an ETag.
TAGGED: dict[int | str, dict[str, Any]] = {
    200: {"headers": {"ETag": {"schema": {"type": "string"}, "description": "Changes as soon as anything changes."}}},
    304: {"description": "Nothing has changed since the `If-None-Match` tag."},
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a change: how it is locked, and how it is shown."""

    lock: Callable[[Transaction], object]
    show: Callable[[Store], Shape]

    def require(self, store: Store, tx: Transaction, seen: str) -> None:
        """Refuse a change of something that has changed since it was read."""
        self.lock(tx)
        if not _is_among(tag_of(json_of(self.show(store))), seen, allow_weak=False):
            raise ChangedSince


def shown(shape: Shape, known: str | None) -> Response:
    """Answer with something that can change, or say that it has not."""
    content = json_of(shape)
    headers = {"ETag": tag_of(content), "Cache-Control": "private, no-cache"}
    if known is not None and _is_among(headers["ETag"], known, allow_weak=True):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def json_of(shape: Shape) -> str:
    """Write an answer."""
    return shape.model_dump_json(by_alias=True)


def tag_of(content: str) -> str:
    """Return the ETag of an answer."""
    return f'"{blake2b(content.encode(), digest_size=16).hexdigest()}"'


def _is_among(tag: str, given: str, *, allow_weak: bool) -> bool:
    if given.strip() == "*":
        return True
    return any(one["tag"] == tag and (allow_weak or not one["weak"]) for one in _TAG.finditer(given))
