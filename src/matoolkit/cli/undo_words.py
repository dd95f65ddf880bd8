"""What an undo or an exclusion would do or did, in words: what runs for whom, for whom nothing does, and why."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from matoolkit.admin.planwords import NOBODY_HAS_KEY, NOT_UNDONE, NOTHING_RUNS, ROLLED_BACK, STAYS
from matoolkit.cli import wording
from matoolkit.domain.retrying import VersionChoice
from matoolkit.words import counted

UndoVersion = Annotated[
    VersionChoice | None,
    typer.Option(help="`active`: the steps of the active version, not those of the version the batch follows."),
]

_MOST_NAMED = 5
# What a flag can do about it.
_ADVICE = {"no_steps": "; `--version active` takes those of the active one"}


def undo_in_words(plan: Mapping[str, Any]) -> str:
    """Say how many are to be undone, and what runs for how many of them."""
    idle = sum(len(group["members"]) for group in plan["nothingToRun"])
    parts = [f"{counted(len(plan['running']) + idle, 'member')} to undo"]
    if plan["running"]:
        steps = wording.text([step["name"] for step in plan["steps"]])
        parts.append(f"for {len(plan['running']):,} version {plan['version']} runs {steps}")
    if idle:
        parts.append(f"for {idle:,} nothing has to run")
    return "; ".join(parts)


def details_of_undo(plan: Mapping[str, Any]) -> Iterator[str]:
    """Say what runs for whom, for whom nothing does and why, and who is left out, a sentence each."""
    if plan["running"]:
        yield f"undone by version {plan['version']}{_other_version(plan)}: {named(plan['running'])}"
    for step in plan["steps"] if plan["running"] else ():
        yield f"  runs: {wording.text(step['name'])} ({wording.text(step['function'])})"
    for group in plan["nothingToRun"]:
        because = group["because"]
        told = f"{NOTHING_RUNS.get(because, because)}{_ADVICE.get(because, '')}"
        yield f"nothing to run: {named(group['members'])}: {told}"
    if plan["rolledBack"]:
        yield f"rolled back already: {named(plan['rolledBack'])}: {ROLLED_BACK}"
    for group in plan["leftOut"]:
        yield f"left out: {named(group['members'])}: {NOT_UNDONE.get(group['because'], group['because'])}"


def details_of_exclusion(plan: Mapping[str, Any]) -> Iterator[str]:
    """Say which batches somebody leaves, and what is undone for it, a sentence each."""
    if not plan["isKnown"]:
        yield f"{wording.text(plan['memberKey'])}: {NOBODY_HAS_KEY}"
    for batch in plan["leaves"]:
        yield f"leaves batch {batch}: {STAYS}"
    if plan["undo"]:
        yield f"undone in batch {plan['undo']['batchId']}"
        yield from details_of_undo(plan["undo"])


def named(keys: Sequence[str]) -> str:
    """Count members and name the first of them."""
    more = f" and {len(keys) - _MOST_NAMED:,} more" if len(keys) > _MOST_NAMED else ""
    return f"{counted(len(keys), 'member')} ({wording.text(list(keys[:_MOST_NAMED]))}{more})"


def _other_version(plan: Mapping[str, Any]) -> str:
    active = plan["activeVersion"]
    return "" if active in (None, plan["version"]) else f" (the active one is {active})"
