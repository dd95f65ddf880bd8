"""All members of a batch, a slice at a time, as lists and files of them show them."""

from collections.abc import Iterator
from typing import Any

from matoolkit.admin.queries import existing_batch, member_views
from matoolkit.domain.states import MemberState
from matoolkit.store import Store
from matoolkit.store.enrolments import members_page

_AT_ONCE = 1000
_STORED = ("id", "member_key", "status", "epoch", "added_at", "removed_at", "remove_reason", "failed_at")
MEMBER_COLUMNS = (*_STORED, "state", "last_completed_phase")


def member_rows(
    store: Store, batch_id: int, *, state: MemberState | None = None, key_part: str | None = None
) -> Iterator[list[Any]]:
    """Return the members of a batch, or those in a state or with a part of a key, as rows; refuse before the first."""
    with store.reading() as tx:
        existing_batch(tx, batch_id)
    return _rows(store, batch_id, state, key_part)


def _rows(store: Store, batch_id: int, state: MemberState | None, key_part: str | None) -> Iterator[list[Any]]:
    after = 0
    while True:
        with store.reading() as tx:
            page = members_page(tx, batch_id, state=state, key_part=key_part, after=after, limit=_AT_ONCE)
            members = member_views(tx, page)
        if not members:
            return
        for member in members:
            yield [*(getattr(member.row, name) for name in _STORED), member.state, member.last_completed_phase]
        after = members[-1].row.id
