"""Who goes first, how many at once, and when too many have failed: keys that need or exclude each other (C1 to C5)."""

from collections.abc import Iterator

from matoolkit.runbook.model import Rollout
from matoolkit.runbook.rules.context import Check
from matoolkit.runbook.templates import Path
from matoolkit.runbook.values import Allowance

PILOT: Path = ("pilot",)
_WAYS = ("column", "count", "percent")


def pilots_are_told_in_one_way(check: Check) -> None:
    """Report a `pilot` that says twice, or not at all, who the pilots are (rule C1)."""
    written = [way for way in _WAYS if way in check.keys_at(PILOT)]
    if check.parts.pilot is None or len(written) == 1:
        return
    if written:
        message = f"'{written[0]}' and '{written[1]}' exclude each other"
        check.report("RB222", (*PILOT, written[1]), message, "keep one of them", key=True)
    else:
        hint = "add 'column: COLUMN', 'count: 20' or 'percent: 5'"
        check.report("RB222", PILOT, "'pilot' does not say who the pilots are", hint)


def a_pilot_column_is_in_the_query(check: Check) -> None:
    """Report a column of pilots that the query does not return, or that holds several values (rule C1)."""
    pilot, source, path = check.parts.pilot, check.parts.data_source, (*PILOT, "column")
    if pilot is None or pilot.column is None or not check.is_sound(path):
        return
    folded = pilot.column.casefold()
    if check.columns is not None and folded not in check.folded_columns:
        known = f"the query returns {', '.join(check.columns[:10])}"
        hint = check.suggestions.hint(pilot.column, check.columns) or known
        check.report("RB209", path, f"the query returns no column '{pilot.column}'", hint)
    if source and any(several.name.casefold() == folded for several in source.multi_valued_columns):
        message = f"column '{pilot.column}' has one value: it says who is a pilot"
        check.report("RB215", path, message, "remove it from 'multi_valued_columns'")


def pilot_first_needs_pilots(check: Check) -> None:
    """Report a phase whose pilots nobody names, and warn of pilots that go first nowhere (rule C2)."""
    first = [path for path, rollout in _rollouts(check) if rollout.pilot_first]
    if "pilot" not in check.keys_at(()):
        for path in first:
            hint = "add 'pilot:' at the top, such as 'pilot: {count: 20}'"
            check.report("RB222", (*path, "pilot_first"), "nothing says who the pilots are", hint)
    elif not first and check.parts.pilot is not None and not check.has_lost("phases", "rollout", "pilot_first"):
        _without_effect(check, PILOT, "no phase has 'pilot_first: true'", "add it to the 'rollout' of a phase")


def rollout_keys_have_an_effect(check: Check) -> None:
    """Warn of keys of a rollout that nothing beside them makes use of (rules C2 to C4)."""
    for path, rollout in _rollouts(check):
        if not check.is_sound(path):
            continue
        if rollout.soak is not None and not rollout.pilot_first:
            _without_effect(check, (*path, "soak"), "nobody goes first", "add 'pilot_first: true', or remove the key")
        if rollout.on_exceeded is not None and rollout.max_failures is None and not rollout.pilot_first:
            why, hint = "nothing limits failures", "add 'max_failures: 3%', or remove the key"
            _without_effect(check, (*path, "on_exceeded"), why, hint)
        if rollout.max_failures == Allowance(percent=100):
            _without_effect(check, (*path, "max_failures"), "more than all cannot fail", "write a smaller percentage")


def _rollouts(check: Check) -> Iterator[tuple[Path, Rollout]]:
    for path, phase in check.parts.items(("phases",), check.parts.phases):
        if phase.rollout is not None:
            yield (*path, "rollout"), phase.rollout


def _without_effect(check: Check, path: Path, why: str, hint: str) -> None:
    check.report("RB310", path, f"'{path[-1]}' has no effect: {why}", hint, key=True)


RULES = (
    pilots_are_told_in_one_way,
    a_pilot_column_is_in_the_query,
    pilot_first_needs_pilots,
    rollout_keys_have_an_effect,
)
