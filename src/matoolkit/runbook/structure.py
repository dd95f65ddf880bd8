"""A tree to the model: problems of single keys and values, and as much of the model as can still be read.

Reading goes on around what is wrong, so that an author sees all problems at once: a broken value
is replaced by a placeholder or left out, as far up as it takes, and the rules look at the rest.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from matoolkit.errors import Finding
from matoolkit.runbook.explanations import explained, model_at
from matoolkit.runbook.findings import finding_at
from matoolkit.runbook.model import Approval, DataSource, Phase, Pilot, Runbook, Safeguards, Step
from matoolkit.runbook.parts import keys_of
from matoolkit.runbook.suggestions import Suggestions
from matoolkit.runbook.templates import Path
from matoolkit.runbook.tree import Node
from matoolkit.runbook.values import kind_of

T = TypeVar("T")

# Nobody reads more findings than this.
_MOST_EXPLAINED = 5_000
_LEAVE_OUT = object()
_SECTIONS = (
    "data_source",
    "safeguards",
    "pilot",
    "init",
    "init_approval",
    "phases",
    "on_member_removed",
    "rollbacks",
)

# Replaces an unreadable text; rules ask whether a place is sound before they check it.
_UNREADABLE = "unreadable"
_PLACEHOLDERS: dict[type[BaseModel] | None, dict[str, str]] = {
    Step: {"name": _UNREADABLE, "worker_id": _UNREADABLE, "function": _UNREADABLE},
    Phase: {"name": _UNREADABLE, "offset": "T-0"},
    DataSource: {
        "type": "sql",
        "query": "SELECT * FROM unreadable",
        "primary_key": _UNREADABLE,
    },
}


@dataclass(frozen=True, slots=True)
class ReadableParts:
    """The readable part of a runbook; `repaired` are the places where something was replaced or left out."""

    data_source: DataSource | None = None
    safeguards: Safeguards | None = None
    pilot: Pilot | None = None
    init: tuple[Step, ...] = ()
    init_approval: Approval | None = None
    phases: tuple[Phase, ...] = ()
    on_member_removed: tuple[Step, ...] = ()
    rollbacks: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    repaired: frozenset[Path] = frozenset()
    kept: Mapping[Path, Sequence[int]] = field(default_factory=dict)

    def items(self, path: Path, items: Sequence[T]) -> Iterator[tuple[Path, T]]:
        """Pair the items of a list with their paths in the document, where broken items may be between them."""
        places = self.kept.get(path, range(len(items)))
        return (((*path, place), item) for place, item in zip(places, items, strict=True))


def read_structure(root: Node, suggestions: Suggestions) -> tuple[Runbook | None, ReadableParts, list[Finding]]:
    """Check keys and values; the runbook is there only if all of them are right."""
    if not isinstance(root.value, dict):
        message = f"a runbook is a mapping of keys such as 'name:', and this is {kind_of(root.to_plain())}"
        return (
            None,
            ReadableParts(repaired=frozenset((key,) for key in Runbook.model_fields)),
            [finding_at(root, "RB007", (), message)],
        )
    data = root.to_plain()
    try:
        runbook = Runbook.model_validate(data)
    except ValidationError as invalid:
        errors = [error for error in invalid.errors(include_url=False) if not _is_consequence(error)]
        return (
            None,
            _readable(data, errors),
            [explained(root, error, suggestions) for error in errors[:_MOST_EXPLAINED]],
        )
    return runbook, _parts_of(runbook), []


def _is_consequence(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items are broken, which is already reported."""
    return error["type"] == "too_short" and bool(error["input"])


def _parts_of(runbook: Runbook) -> ReadableParts:
    return ReadableParts(
        runbook.data_source,
        runbook.safeguards,
        runbook.pilot,
        runbook.init,
        runbook.init_approval,
        runbook.phases,
        runbook.on_member_removed,
        runbook.rollbacks,
    )


def _readable(data: Any, errors: Sequence[ErrorDetails]) -> ReadableParts:
    kept: dict[Path, Sequence[int]] = {}
    repairs = _repairs(errors)
    data = _repaired(data, (), repairs, kept)
    sections: dict[str, Any] = {}
    for section in _SECTIONS:
        adapter: TypeAdapter[Any] = TypeAdapter(Runbook.model_fields[section].rebuild_annotation())
        if section in data:
            # A list that lost all its items is not valid where an item is required; then no model can be built.
            with suppress(ValidationError):
                sections[section] = adapter.validate_python(data[section])
    repaired = frozenset((*path, key) for path, here in repairs.items() for key in here)
    return ReadableParts(**sections, repaired=repaired, kept=kept)


def _repairs(errors: Sequence[ErrorDetails]) -> dict[Path, dict[str | int, Any]]:
    """Say, for each mapping or list, which of its values to replace or to leave out."""
    repairs: dict[Path, dict[str | int, Any]] = {}
    for number, error in enumerate(errors):
        path, repair = _repair(error, number)
        if path:
            repairs.setdefault(path[:-1], {})[path[-1]] = repair
    return repairs


def _repair(error: ErrorDetails, number: int) -> tuple[Path, Any]:
    path = tuple(part for part in error["loc"] if part != "[key]")
    while len(path) > 1:
        model = model_at(path[:-1])
        info = keys_of(model).get(str(path[-1])) if model else None
        if info is None or not info.is_required():
            return path, _LEAVE_OUT
        if placeholder := _PLACEHOLDERS.get(model, {}).get(str(path[-1])):
            # Names must differ, or they would be taken for duplicates.
            return path, f"{placeholder}-{number}" if path[-1] == "name" else placeholder
        path = path[:-1]
    return path, _LEAVE_OUT


def _repaired(
    value: Any, path: Path, repairs: Mapping[Path, Mapping[str | int, Any]], kept: dict[Path, Sequence[int]]
) -> Any:
    here = repairs.get(path, {})
    match value:
        case dict():
            sound = {
                key: _repaired(item, (*path, key), repairs, kept) for key, item in value.items() if key not in here
            }
            return sound | {key: item for key, item in here.items() if item is not _LEAVE_OUT}
        case list():
            places = [place for place in range(len(value)) if place not in here]
            if len(places) < len(value):
                kept[path] = places
            return [_repaired(value[place], (*path, place), repairs, kept) for place in places]
        case _:
            return value
