"""What two versions of a runbook do differently, in words: steps, times, parameters, the query; not comments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from matoolkit.duration import format_duration
from matoolkit.runbook.model import (
    DataSource,
    MultiValuedColumn,
    Phase,
    Pilot,
    Poll,
    Retry,
    Rollout,
    Runbook,
    Safeguards,
    Step,
)
from matoolkit.runbook.presentable import presentable
from matoolkit.runbook.values import Allowance
from matoolkit.words import counted

_LONGEST = 60
_NOTHING = "nothing"
_STEP_FIELDS = {
    "worker_id": "worker",
    "function": "function",
    "allowed_functions": "allowed functions",
    "on_failure": "rollback",
    "poll": "poll",
    "timeout": "timeout",
}


class Kind(StrEnum):
    """How something differs."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    MOVED = "moved"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is different, and how."""

    kind: Kind
    subject: str
    told: str = ""


@dataclass(frozen=True, slots=True)
class Differences:
    """All that is different, in the order of the document, and what is the same."""

    found: Sequence[Difference]
    same: Sequence[str]


def differences(before: Runbook, after: Runbook) -> Differences:
    """Compare two versions of a runbook."""
    parts: list[tuple[str, list[Difference]]] = [
        ("the source", list(_source(before.data_source, after.data_source))),
        ("safeguards", list(_safeguards(before.safeguards, after.safeguards))),
        ("who goes first", list(_pilots(before.pilot, after.pilot))),
        ("retries", list(_field("retry", "of all steps without their own", before.retry, after.retry))),
        ("init", list(_init(before, after))),
        ("phases", list(_phases(before, after))),
        ("rollbacks", list(_rollbacks(before, after))),
        (
            "what a removal runs",
            list(_steps("on_member_removed", before.on_member_removed, after.on_member_removed, before, after)),
        ),
    ]
    found = [difference for _, differing in parts for difference in differing]
    return Differences(found, [name for name, differing in parts if not differing])


def _source(before: DataSource, after: DataSource) -> Iterator[Difference]:
    if before.query != after.query:
        is_same = before.query.split() == after.query.split()
        yield Difference(Kind.CHANGED, "query", "only its spaces" if is_same else "it may return other rows")
    for name in ("type", "connection", "file", "sheet", "warehouse_id", "primary_key", "batch_time_column"):
        yield from _field(name, "", getattr(before, name), getattr(after, name))
    for name in ("batch_time", "batch_time_zone", "cooldown"):
        yield from _field(name, "", getattr(before, name), getattr(after, name))
    columns = {column.name: column.format for column in before.multi_valued_columns}
    yield from _mapping("column", columns, _formats(after.multi_valued_columns))


def _formats(columns: Iterable[MultiValuedColumn]) -> Mapping[str, str]:
    return {column.name: column.format for column in columns}


def _safeguards(before: Safeguards | None, after: Safeguards | None) -> Iterator[Difference]:
    for name in ("max_removals", "late_joiners", "max_delay", "approval"):
        yield from _field(name, "", getattr(before, name, None), getattr(after, name, None))


def _pilots(before: Pilot | None, after: Pilot | None) -> Iterator[Difference]:
    for way in Pilot.model_fields:
        yield from _field(way, "of pilots", getattr(before, way, None), getattr(after, way, None))


def _rollout(subject: str, before: Rollout | None, after: Rollout | None) -> Iterator[Difference]:
    for key in Rollout.model_fields:
        yield from _field(key, f"of {subject}", getattr(before or Rollout(), key), getattr(after or Rollout(), key))


def _init(before: Runbook, after: Runbook) -> Iterator[Difference]:
    yield from _field("approval", "of init", before.init_approval, after.init_approval)
    yield from _steps("init", before.init, after.init, before, after)


def _phases(before: Runbook, after: Runbook) -> Iterator[Difference]:
    old = {phase.name.casefold(): phase for phase in before.phases}
    new = {phase.name.casefold(): phase for phase in after.phases}
    renamed = _renamed_phases(old, new)
    for fold, phase in new.items():
        was = old.get(fold) or renamed.get(fold)
        subject = f"phase {phase.name}"
        if was is None:
            yield Difference(Kind.ADDED, subject, f"at {phase.offset}: {', '.join(step.name for step in phase.steps)}")
            continue
        if fold in renamed:
            yield Difference(Kind.RENAMED, subject, f"was {was.name}; to batches in flight it is another phase")
        if was.offset != phase.offset:
            yield Difference(Kind.MOVED, subject, f"from {was.offset} to {phase.offset}")
        yield from _rollout(subject, was.rollout, phase.rollout)
        yield from _field("window", f"of {subject}", was.window, phase.window)
        yield from _field("approval", f"of {subject}", was.approval, phase.approval)
        yield from _steps(phase.name, was.steps, phase.steps, before, after)
    for fold, phase in old.items():
        if fold not in new and phase not in renamed.values():
            yield Difference(
                Kind.REMOVED, f"phase {phase.name}", f"at {phase.offset}, {counted(len(phase.steps), 'step')}"
            )
    stay = [fold for fold in old if fold in new]
    if stay != [fold for fold in new if fold in old]:
        yield Difference(Kind.MOVED, "order of phases", ", ".join(phase.name for phase in after.phases))


def _renamed_phases(old: Mapping[str, Phase], new: Mapping[str, Phase]) -> dict[str, Phase]:
    """Return what phases with new names were called before, by their new folded names."""
    gone = [phase for fold, phase in old.items() if fold not in new]
    found: dict[str, Phase] = {}
    for fold, phase in new.items():
        same = [was for was in gone if was.steps == phase.steps and was not in found.values()]
        if fold not in old and same:
            found[fold] = same[0]
    return found


def _rollbacks(before: Runbook, after: Runbook) -> Iterator[Difference]:
    old = {name.casefold(): (name, steps) for name, steps in before.rollbacks.items()}
    new = {name.casefold(): (name, steps) for name, steps in after.rollbacks.items()}
    for fold, (name, steps) in new.items():
        if fold in old:
            yield from _steps(f"rollback {name}", old[fold][1], steps, before, after)
        else:
            yield Difference(Kind.ADDED, f"rollback {name}", ", ".join(step.name for step in steps))
    yield from (Difference(Kind.REMOVED, f"rollback {name}") for fold, (name, _) in old.items() if fold not in new)


def _steps(
    place: str, old: Sequence[Step], new: Sequence[Step], before: Runbook, after: Runbook
) -> Iterator[Difference]:
    known = {step.name.casefold(): step for step in old}
    there = {step.name.casefold(): step for step in new}
    gone = {fold: step for fold, step in known.items() if fold not in there}
    for fold, step in there.items():
        subject = f"{place}: {step.name}"
        if fold in known:
            yield from _step(subject, known[fold], step, before, after)
            continue
        same = next((was for was in gone.values() if was.model_copy(update={"name": step.name}) == step), None)
        if same is None:
            yield Difference(Kind.ADDED, subject, f"calls {_told(step.function)}")
        else:
            del gone[same.name.casefold()]
            yield Difference(Kind.RENAMED, subject, f"was {same.name}")
    yield from (
        Difference(Kind.REMOVED, f"{place}: {step.name}", f"called {_told(step.function)}") for step in gone.values()
    )
    if [fold for fold in known if fold in there] != [fold for fold in there if fold in known]:
        yield Difference(Kind.MOVED, f"{place}: order of steps", ", ".join(step.name for step in new))


def _step(subject: str, old: Step, new: Step, before: Runbook, after: Runbook) -> Iterator[Difference]:
    told = [
        f"{word} {_change(getattr(old, name), getattr(new, name))}"
        for name, word in _STEP_FIELDS.items()
        if getattr(old, name) != getattr(new, name)
    ]
    # What changes for all steps is told once.
    if (old.retry, before.retry_of(old)) != (new.retry, after.retry_of(new)) and (old.retry or new.retry):
        told.append(f"retries {_change(before.retry_of(old), after.retry_of(new))}")
    told += [each.told for each in _mapping("", old.params, new.params, of="parameter")]
    told += [each.told for each in _mapping("", old.output_params, new.output_params, of="output")]
    if told:
        yield Difference(Kind.CHANGED, subject, "; ".join(told))


def _field(name: str, what: str, before: object, after: object) -> Iterator[Difference]:
    if before != after:
        yield Difference(Kind.CHANGED, f"{name} {what}".strip(), _change(before, after))


def _mapping(
    subject: str, before: Mapping[str, Any], after: Mapping[str, Any], *, of: str = ""
) -> Iterator[Difference]:
    for name in dict.fromkeys((*before, *after)):
        if name not in before:
            kind, told = Kind.ADDED, f"new: {_told(after[name])}"
        elif name not in after:
            kind, told = Kind.REMOVED, "gone"
        elif before[name] != after[name]:
            kind, told = Kind.CHANGED, _change(before[name], after[name])
        else:
            continue
        yield Difference(kind, f"{subject} {name}".strip(), f"{of} {name} {told}" if of else told)


def _change(before: object, after: object) -> str:
    old, new = _told(before), _told(after)
    return f"from {old} to {new}" if old != new else f"changes near {old}"


def _told(value: object) -> str:
    match value:
        case None:
            told = _NOTHING
        case timedelta():
            told = format_duration(value)
        case Retry():
            told = f"{value.max_retries}, every {format_duration(value.interval) if value.interval else '5m'}"
        case Poll():
            told = f"every {format_duration(value.interval)} for {format_duration(value.timeout)}"
        case bool():
            told = "true" if value else "false"
        case Allowance():
            told = f"{value.percent} %" if value.count is None else str(value.count)
        case tuple():
            told = ", ".join(map(str, value))
        case _:
            told = str(value)
    safe = presentable(told)
    return safe if len(safe) <= _LONGEST else f"{safe[: _LONGEST - 1]}…"
