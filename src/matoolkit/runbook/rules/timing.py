"""Offsets and durations that make sense beside each other."""

from itertools import pairwise

from matoolkit.duration import format_duration
from matoolkit.runbook.rules.context import Check


def phases_are_listed_in_time_order(check: Check) -> None:
    """Warn of a phase that is due before the one listed above it."""
    if check.has_lost("phases", "offset"):
        return
    phases = list(check.parts.items(("phases",), check.parts.phases))
    for (_, above), (path, phase) in pairwise(phases):
        if phase.offset.minutes > above.offset.minutes:
            message = (
                f"phase '{phase.name}' ({phase.offset}) runs before '{above.name}' ({above.offset}), listed above it"
            )
            check.report("RB301", (*path, "offset"), message, "list phases in the order of time")


def immediate_phases_do_not_wait_for_the_past(check: Check) -> None:
    """Warn of an offset before T where T is now."""
    source = check.parts.data_source
    if source is None or source.batch_time != "immediate":
        return
    for path, phase in check.parts.items(("phases",), check.parts.phases):
        if phase.offset.minutes > 0:
            message = f"in an immediate runbook T is now, so a phase at {phase.offset} is due at once"
            check.report("RB314", (*path, "offset"), message, "write T-0")


def polls_ask_before_they_give_up(check: Check) -> None:
    """Warn of a poll that waits longer between two questions than it may last."""
    for at in check.steps:
        poll = at.step.poll
        if poll and poll.interval > poll.timeout:
            message = (
                f"the poll of {at.label} waits {format_duration(poll.interval)} between two questions,"
                f" longer than its timeout of {format_duration(poll.timeout)}"
            )
            check.report("RB303", (*at.path, "poll", "interval"), message, "shorten the interval")


RULES = (
    phases_are_listed_in_time_order,
    immediate_phases_do_not_wait_for_the_past,
    polls_ask_before_they_give_up,
)
