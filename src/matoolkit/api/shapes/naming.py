"""How fields are spelled: camelCase in answers, either way in requests."""

from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

# Numbers that every database can hold; no row has a larger one.
RowId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Reason = Annotated[str | None, Field(max_length=1000, description="Why; kept in the audit log.")]

GivenReason = Annotated[
    str,
    StringConstraints(strip_whitespace=True),
    Field(min_length=1, max_length=1000, description="Why; kept in the audit log."),
]


class Shape(BaseModel):
    """A request or an answer; a field that it does not have is refused."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, from_attributes=True, extra="forbid")


class WithReason(Shape):
    """A request that only says why."""

    reason: Reason = None


def parsed(text: str | None) -> Any:
    """Return stored JSON as a value."""
    return None if text is None else orjson.loads(text)
