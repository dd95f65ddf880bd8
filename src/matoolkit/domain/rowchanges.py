"""What is different about a member's row, and which steps that concerns (rule O14)."""

from collections.abc import Mapping

import orjson

from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import SPECIAL_VARIABLES, Json, uses


def changed_columns(before: Mapping[str, Json], now: Mapping[str, Json]) -> list[str]:
    """Return the columns whose value changed, came or went, in order; another type is another value."""
    return sorted(
        column
        for column in before.keys() | now.keys()
        if column not in before
        or column not in now
        or orjson.dumps(before[column], option=orjson.OPT_SORT_KEYS)
        != orjson.dumps(now[column], option=orjson.OPT_SORT_KEYS)
    )


def variables_of(step: Step) -> frozenset[str]:
    """Return the variables that a step takes from outputs or the row, folded as a template finds them (rule R6)."""
    found = {use.variable.casefold() for value in (step.function, step.params) for use in uses(value)}
    return frozenset(found.difference(SPECIAL_VARIABLES))
