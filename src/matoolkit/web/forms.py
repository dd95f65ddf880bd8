"""What people choose and type in forms, where an empty field means that nothing was chosen."""

from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, StringConstraints

ChosenT = TypeVar("ChosenT")
LARGEST_ID = 2**63 - 1
_LONGEST_REASON = 1000


def _nothing_if_empty(given: Any) -> Any:
    return None if given == "" else given


Choice = Annotated[ChosenT | None, BeforeValidator(_nothing_if_empty)]
RowNumber = Annotated[int, Field(ge=1, le=LARGEST_ID)]
Number = Choice[RowNumber]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_LONGEST_REASON)]
