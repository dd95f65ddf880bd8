"""A failing seed made short: fewer faults, fewer people, fewer events, as long as it still fails."""

from collections.abc import Iterator
from dataclasses import replace

from matoolkit.simulate.faults import Fault
from matoolkit.simulate.many_seeds import play
from matoolkit.simulate.plans import Outcome, Plan

# Enough to remove most of the noise in less than a minute.
_MOST_TRIES = 60


def shortest(failing: Outcome, tries: int = _MOST_TRIES) -> Outcome:
    """Return the failing run with the shortest history that is found."""
    best = failing
    while tries > 0:
        for plan in _smaller(best):
            tries -= 1
            found = play(plan)
            if found.violation is not None and found.events < best.events:
                best = found
                break
            if tries == 0:
                break
        else:
            return best
    return best


def _smaller(outcome: Outcome) -> Iterator[Plan]:
    plan = outcome.plan
    yield replace(plan, events=plan.events // 2)
    yield replace(plan, events=min(plan.events - 1, outcome.events))
    for kind in sorted(outcome.faults):
        yield replace(plan, disabled=(*plan.disabled, kind))
    for members in (1, 2, 3):
        if plan.members is None or members < plan.members:
            yield replace(plan, members=members)
    yield replace(plan, events=plan.events * 3 // 4)


def replay_command(plan: Plan) -> str:
    """Return the command that plays exactly this again."""
    parts = [f"matoolkit simulate --seeds {plan.seed} --events {plan.events}"]
    parts += [f"--members {plan.members}"] if plan.members is not None else []
    parts += [f"--without {slug(kind)}" for kind in plan.disabled]
    parts += ["--apart"] if plan.is_apart else []
    return " ".join(parts)


def slug(kind: Fault) -> str:
    """Return the name of a kind of fault as it is written on the command line."""
    return kind.name.lower().replace("_", "-")
