"""Approvals that somebody can give, in time."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from matoolkit.duration import format_duration
from matoolkit.runbook.model import Approval
from matoolkit.runbook.offsets import Offset
from matoolkit.runbook.rules.context import Check
from matoolkit.runbook.templates import Path
from matoolkit.runbook.values import ROLE
from matoolkit.words import counted


@dataclass(frozen=True, slots=True)
class _ApprovalAt:
    """An approval, its path, what it is for, and the offset at which that is due."""

    approval: Approval
    path: Path
    subject: str
    due: Offset | None = None

    @property
    def people(self) -> int | None:
        """How many people may give it, if all are named."""
        by = self.approval.by
        if by is None or any(one.startswith(ROLE) for one in by):
            return None
        return len({one.casefold() for one in by})


def enough_people_may_sign_off(check: Check) -> None:
    """Report an approval that wants more people than it names, and warn of one that may lack its publisher."""
    for at in _approvals(check):
        people, count = at.people, at.approval.count
        if people is None:
            continue
        if people < count:
            said = f"{at.subject} wants {counted(count, 'sign-off')}, and only {people} may be given by those named"
            check.report("RB223", (*at.path, "count"), said, "name more people under 'by', or lower 'count'")
        elif people == count and at.approval.not_publisher:
            said = f"nobody can approve {at.subject} if one of those under 'by' publishes the runbook"
            hint = "name one person more under 'by', or a role"
            check.report("RB320", (*at.path, "not_publisher"), said, hint, key=True)


def there_is_time_to_sign_off(check: Check) -> None:
    """Report an approval whose time ends before it begins, or before the phase is due, or begins when that is late."""
    delay = check.parts.safeguards.max_delay if check.parts.safeguards else None
    for at in _approvals(check):
        begins, ends = at.approval.not_before, at.approval.until
        if begins is not None and at.due is not None and delay is not None:
            _report_late(check, at, begins, at.due, delay)
        if ends is None:
            continue
        path = (*at.path, "until")
        if begins is not None and begins.minutes <= ends.minutes:
            said = f"{at.subject} can be approved from {begins} until {ends}, which is never"
            check.report("RB223", path, said, "let 'until' be later than 'from'")
        elif at.due is not None and ends.minutes > at.due.minutes:
            said = f"the time to approve {at.subject} ends at {ends}, before it is due at {at.due}"
            check.report("RB223", path, said, f"write {at.due} or later")


def _report_late(check: Check, at: _ApprovalAt, begins: Offset, due: Offset, delay: timedelta) -> None:
    if timedelta(minutes=due.minutes - begins.minutes) > delay:
        said = (
            f"{at.subject} can be approved from {begins} on, and is late before: {format_duration(delay)} after {due}"
        )
        check.report("RB223", (*at.path, "from"), said, "let 'from' be earlier, or 'max_delay' longer")


def approvals_have_an_effect(check: Check) -> None:
    """Warn of an approval for an init that is not there, and of times at which a hold could be approved."""
    if check.parts.init_approval and not check.parts.init and not check.has_lost("init"):
        said = "'init_approval' has no effect: there is no init"
        check.report("RB310", ("init_approval",), said, "remove the key", key=True)
    safeguard = check.parts.safeguards.approval if check.parts.safeguards else None
    for key, value in (("from", safeguard.not_before), ("until", safeguard.until)) if safeguard else ():
        if value is not None:
            said = f"'{key}' has no effect: a hold can be approved as long as it stands"
            check.report("RB310", ("safeguards", "approval", key), said, "remove the key", key=True)


def _approvals(check: Check) -> Iterator[_ApprovalAt]:
    parts = check.parts
    if parts.safeguards and parts.safeguards.approval:
        safeguard = parts.safeguards.approval.model_copy(update={"not_before": None, "until": None})
        yield from _sound(check, _ApprovalAt(safeguard, ("safeguards", "approval"), "a hold"))
    if parts.init_approval:
        yield from _sound(check, _ApprovalAt(parts.init_approval, ("init_approval",), "init"))
    for path, phase in parts.items(("phases",), parts.phases):
        if phase.approval:
            due = phase.offset if check.is_sound((*path, "offset")) else None
            at = _ApprovalAt(phase.approval, (*path, "approval"), f"phase '{phase.name}'", due)
            yield from _sound(check, at)


def _sound(check: Check, at: _ApprovalAt) -> Iterator[_ApprovalAt]:
    if check.is_sound(at.path):
        yield at


RULES = (
    enough_people_may_sign_off,
    there_is_time_to_sign_off,
    approvals_have_an_effect,
)
