"""What the mappings of a runbook are made of: kinds of values, and how keys are read."""

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, model_validator
from pydantic.fields import FieldInfo

from matoolkit.runbook import values
from matoolkit.runbook.offsets import OFFSET_PATTERN, Offset
from matoolkit.runbook.values import Allowance

T = TypeVar("T")


def _text(check: Callable[[str], object], hint: str | None = None, **schema: object) -> Any:
    """Build the annotation of a field that is written as text and checked by a function of `values`."""
    return (BeforeValidator(values.from_text(check, hint)), WithJsonSchema({"type": "string", **schema}))


Name = Annotated[str, *_text(values.name, pattern=values.NAME_PATTERN, maxLength=values.MAX_NAME)]
WorkerId = Annotated[str, *_text(values.worker_id, pattern=values.NAME_PATTERN, maxLength=values.MAX_WORKER_ID)]
NonEmptyText = Annotated[str, *_text(values.non_empty, minLength=1, maxLength=values.MAX_TEXT)]
Query = Annotated[str, *_text(values.query, minLength=1, maxLength=values.MAX_QUERY)]
EnvironmentVariable = Annotated[str, *_text(values.environment_variable, pattern=values.ENVIRONMENT_VARIABLE_PATTERN)]
FileName = Annotated[str, *_text(values.file_name, pattern=values.FILE_NAME_PATTERN, maxLength=values.MAX_TEXT)]
TimeZone = Annotated[str, *_text(values.time_zone)]
Duration = Annotated[
    timedelta, *_text(values.duration, "write a unit, as in 30s, 15m, 2h or 7d", pattern=values.DURATION_PATTERN)
]
TimeOfDay = Annotated[int, *_text(values.time_of_day, pattern=values.TIME_OF_DAY_PATTERN)]
PhaseOffset = Annotated[Offset, *_text(values.offset, pattern=OFFSET_PATTERN)]
Approver = Annotated[str, *_text(values.approver, minLength=1, maxLength=values.MAX_TEXT)]
CountOrPercentage = Annotated[
    Allowance,
    BeforeValidator(values.allowance),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0},
                {"type": "string", "pattern": values.PERCENTAGE_PATTERN},
            ]
        }
    ),
]

# A key without a value is a mistake, not a request for the default.
MayBeLeftOut: TypeAlias = Annotated[T | None, BeforeValidator(values.not_null)]


class Part(BaseModel):
    """A mapping with fixed keys; keys that begin with `x-` are the author's own."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        arbitrary_types_allowed=True,
        json_schema_extra={"patternProperties": {"^x-": True}},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_own_keys(cls, data: Any) -> Any:
        return values.without_own_keys(data)


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the keys of a mapping as people write them; those that are words of Python have an alias."""
    return {info.alias or name: info for name, info in model.model_fields.items()}
