"""What a retry of failed members would do or did, in words: who is in, who is not and why, and what changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from matoolkit.admin.planwords import NOT_RETRIED
from matoolkit.cli import wording
from matoolkit.cli.undo_words import named

# What a flag can do about it.
_ADVICE = {
    "excluded": "; `matoolkit member include` ends that",
    "no_row": "; `--data kept` keeps the old one",
    "set_aside": "; `matoolkit runbook status` says why",
    "another_time": "; `--data kept` keeps the old ones",
}


def retry_in_words(plan: Mapping[str, Any]) -> str:
    """Say which version runs, and who takes up what."""
    parts = [f"version {plan['version']} runs{_other_version(plan)}"]
    if plan["goingOn"]:
        parts.append(f"from the step that failed: {named(plan['goingOn'])}")
    parts += [f"{_where(group['phaseName'])}: {named(group['members'])}" for group in plan["beginnings"]]
    return "; ".join(parts)


def details_of(plan: Mapping[str, Any]) -> Iterator[str]:
    """Say which rows members take, what that changes, and who is left out, a sentence each."""
    match plan["data"]:
        case "last_reading":
            yield f"rows: as the source had them at {wording.moment(plan['readAt'])}"
        case "refreshed":
            yield "rows: as the source has them now"
        case "file":
            yield "rows: those of the file"
        case _:
            yield "rows: members keep theirs"
    for column in plan["changedColumns"]:
        yield f"changes: {wording.text(column['name'])} for {named(column['members'])}"
    for group in plan["leftOutBecause"]:
        because = group["because"]
        yield f"left out: {named(group['members'])}: {NOT_RETRIED.get(because, because)}{_ADVICE.get(because, '')}"
    for done in plan["doneBefore"]:
        columns = wording.text(done["columns"])
        step = f"{done['phaseName']}/{done['stepName']}"
        yield f"done with the old {columns}: {step} for {named(done['members'])}; `--from PHASE` or `--keep-done`"


def is_undecided(plan: Mapping[str, Any], begin_with: str | None, *, keep_done: bool) -> bool:
    """Tell whether a person still has to decide about finished steps that used old values."""
    return bool(plan["doneBefore"]) and begin_with is None and not keep_done


def _other_version(plan: Mapping[str, Any]) -> str:
    active = plan["activeVersion"]
    return "" if active in (None, plan["version"]) else f" (the active one is {active})"


def _where(phase: str | None) -> str:
    return "nothing left to do" if phase is None else f"again from {phase}"
