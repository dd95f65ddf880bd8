"""People across all batches: finding them, and all that was done for them."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from matoolkit.admin.people import person_history, who_is_meant
from matoolkit.api.paging import Page, PageQuery, page, position, whole
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.batches import EnrolmentShape, PlaceHistoryShape, enrolment_shape, place_history_shape
from matoolkit.api.shapes.naming import RowId
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.store import Transaction
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.memberstates import states_of_members
from matoolkit.store.people import enrolments_containing, enrolments_of_key

router = APIRouter(prefix="/api", tags=["members"])

_MOST_ENROLMENTS = 100
_MOST_PLACES = 20

Text = Annotated[str, Query(min_length=1, max_length=500)]


class PeopleQuery(PageQuery):
    """Which people are wanted."""

    key: Annotated[
        str | None, Field(min_length=1, max_length=500, description="The whole key; its case does not matter.")
    ] = None
    key_contains: Annotated[
        str | None,
        Field(min_length=1, max_length=MAX_KEY_LENGTH, description="Part of the key; its case does not matter."),
    ] = None


@router.get("/members")
def find_members(serving: Serving, _: Reader, wanted: Annotated[PeopleQuery, Query()]) -> Page[EnrolmentShape]:
    """Find people in all batches in which they are or were, newest first. A whole key has at most 100 places."""
    before = position(wanted.cursor, "people")
    with serving.store.reading() as tx:
        if wanted.key is not None:
            rows = enrolments_of_key(tx, wanted.key.strip(), _MOST_ENROLMENTS + 1)
            return whole(_shapes(tx, rows), _MOST_ENROLMENTS)
        rows = enrolments_containing(tx, wanted.key_contains or "", before=before, limit=wanted.limit + 1)
        return page(_shapes(tx, rows), wanted.limit, "people", lambda shape: shape.id, lambda shape: shape)


@router.get("/members/meant")
def members_meant(
    serving: Serving, _: Reader, who: Text, batch_id: Annotated[RowId | None, Query(alias="batchId")] = None
) -> Page[EnrolmentShape]:
    """Say who is meant by a key, the number of a member, or an address in a row: of a batch if given, newest first."""
    with serving.store.reading() as tx:
        rows = who_is_meant(tx, who.strip(), batch_id, _MOST_ENROLMENTS + 1)
        return whole(_shapes(tx, rows), _MOST_ENROLMENTS)


@router.get("/members/history")
def get_history(serving: Serving, _: Reader, key: Text) -> Page[PlaceHistoryShape]:
    """Return all that was done for a person in every batch, newest first, at most 20 batches."""
    places = person_history(serving.store, key.strip(), _MOST_PLACES + 1)
    return whole([place_history_shape(place) for place in places], _MOST_PLACES)


def _shapes(tx: Transaction, rows: Sequence[Enrolment]) -> list[EnrolmentShape]:
    states = states_of_members(tx, [row.id for row in rows])
    return [enrolment_shape(row, states[row.id]) for row in rows]
