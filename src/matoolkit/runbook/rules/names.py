"""Names are unique where they must be, and refer to something."""

from collections.abc import Iterable

from matoolkit.runbook.rules.context import Check, Place
from matoolkit.runbook.templates import Path


def phase_names_are_unique(check: Check) -> None:
    """Report phases with the same name (rule R2)."""
    named = ((phase.name, (*path, "name")) for path, phase in check.parts.items(("phases",), check.parts.phases))
    _report_repeated(check, "RB201", "phase", named)


def step_names_are_unique_in_their_sequence(check: Check) -> None:
    """Report steps with the same name in one phase, rollback, init or removal (rule R2)."""
    sequences: dict[Path, list[tuple[str, Path]]] = {}
    for at in check.steps:
        sequences.setdefault(at.path[:-1], []).append((at.step.name, (*at.path, "name")))
    for named in sequences.values():
        _report_repeated(check, "RB202", "step", named)


def rollback_names_are_unique(check: Check) -> None:
    """Report rollbacks whose names differ only by case; equal ones are duplicate keys already (rule R2)."""
    named = ((name, ("rollbacks", name)) for name in check.keys_at(("rollbacks",)))
    _report_repeated(check, "RB203", "rollback", named)


def on_failure_names_a_rollback(check: Check) -> None:
    """Report references to rollbacks that do not exist, and references that never take effect."""
    written = check.keys_at(("rollbacks",))
    known = [name for name in written if not name.startswith("x-")]
    folded = {name.casefold() for name in known}
    for at in check.steps:
        name, path = at.step.on_failure, (*at.path, "on_failure")
        if name is None:
            continue
        if name.casefold() not in folded:
            is_note = name in written
            hint = "names that begin with x- are notes" if is_note else check.suggestions.hint(name, known)
            check.report("RB204", path, f"there is no rollback '{name}'", hint or "add it under 'rollbacks:'")
        elif at.place in {Place.ROLLBACK, Place.REMOVAL}:
            message = "'on_failure' has no effect here: when such a step fails, the next one still runs"
            check.report("RB310", path, message, "remove the key", key=True)


def every_rollback_is_used(check: Check) -> None:
    """Warn of rollbacks that nothing refers to."""
    if check.has_lost("init", "on_failure") or check.has_lost("phases", "steps", "on_failure"):
        return
    for name in check.parts.rollbacks:
        if name.casefold() not in check.rollback_users:
            check.report("RB302", ("rollbacks", name), f"nothing uses rollback '{name}'", key=True)


def _report_repeated(check: Check, code: str, what: str, named: Iterable[tuple[str, Path]]) -> None:
    first: dict[str, str] = {}
    for name, path in named:
        if (before := first.setdefault(name.casefold(), name)) is not name:
            spelled = f" (as '{before}')" if before != name else ""
            check.report(
                code,
                path,
                f"there is a {what} '{name}' already{spelled}",
                "give it another name",
                key=what == "rollback",
            )


RULES = (
    phase_names_are_unique,
    step_names_are_unique_in_their_sequence,
    rollback_names_are_unique,
    on_failure_names_a_rollback,
    every_rollback_is_used,
)
