"""Sign-offs: what people have to approve before it begins, and whether enough of them have (rules S1 to S8).

A sign-off is about one batch with one T under one version, and about the members who had joined up to a number. It is
used when what it is about begins; until then another T, another version and its age void it. Afterwards it stands.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.domain.digests import is_same
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.states import SignOff, SignOffSubject
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.records import record
from matoolkit.runbook.values import ANY_APPROVER, ROLE
from matoolkit.words import minute_told

if TYPE_CHECKING:
    from matoolkit.runbook.model import Approval

VALID = timedelta(days=7)
NOBODY = -1


class Caller(StrEnum):
    """Who is behind a request: a person, an application, or nobody who signed in, because nobody can (rule S4).

    Nobody knows whether a person who is unnamed is the same as another one with a name.
    """

    PERSON = "person"
    UNNAMED = "unnamed"
    APPLICATION = "application"
    NOBODY = "nobody"


@record
class Signer:
    """Somebody who wants to sign off, with the roles of that person, and other names that the same person may have."""

    name: str
    roles: frozenset[str]
    caller: Caller
    other_names: frozenset[str] = frozenset()

    @property
    def person(self) -> str:
        """The name by which one person counts once."""
        return self.name.casefold()

    def is_called(self, name: str) -> bool:
        """Tell whether a name is one of this person's."""
        return name.casefold() in {self.person, *(other.casefold() for other in self.other_names)}

    def is_among(self, by: Iterable[str]) -> bool:
        """Tell whether an approval is for this person; where nobody signs in it is for everybody who is there."""
        if self.caller is Caller.NOBODY:
            return True
        mine = {f"{ROLE}{role}".casefold() for role in self.roles} | {self.person}
        return any(one.casefold() in mine for one in by)


@record
class NewSignature:
    """A sign-off that somebody gives.

    It covers members who joined after `covered_after`, if it says so, and up to `covered_no`.
    """

    batch_id: int
    subject: SignOffSubject
    phase_execution_id: int | None
    hold_key: str | None
    runbook_version: int
    batch_start_time: datetime | None
    digest: str
    covered_after: int | None
    covered_no: int
    members: int
    decision: SignOff
    signed_by: str
    roles: str
    is_signed_in: bool
    signed_at: datetime
    reason: str | None


@record
class Signature(NewSignature):
    """A sign-off as it is stored."""

    id: int
    withdrawn_at: datetime | None
    used_at: datetime | None

    @property
    def is_approval(self) -> bool:
        """Whether it says yes, and nobody has taken that back."""
        return self.decision is SignOff.APPROVE and self.withdrawn_at is None

    @property
    def person(self) -> str:
        """Who signed, so that one person counts once."""
        return self.signed_by.casefold()


@record
class SignOffs:
    """What must be signed off before something begins, and what was signed so far.

    `used_no` is the number up to which those who joined were covered when sign-offs were used. `digest` is that of what
    is asked now; it is known only if somebody has rejected. `has_begun` is set when a phase has begun: then only those
    wait who joined too late for the sign-offs that were used.
    """

    batch_id: int
    subject: SignOffSubject
    phase_execution_id: int | None
    title: str
    count: int
    by: tuple[str, ...]
    valid: timedelta
    version: int
    start: datetime | None
    at: datetime
    opens_at: datetime | None = None
    ends_at: datetime | None = None
    has_begun: bool = False
    digest: str | None = None
    given: Sequence[Signature] = ()
    # Asked for each member, and so worked out once.
    used_no: int = NOBODY

    def voided(self, signature: Signature) -> str | None:
        """Say why a sign-off does not count, if another T, another version or its age voids it (rule S5)."""
        if signature.used_at is not None:
            return None
        if signature.batch_start_time != self.start:
            return "T is another one since"
        if signature.runbook_version != self.version:
            return f"it was given for version {signature.runbook_version}"
        return "it is too old" if signature.signed_at + self.valid <= self.at else None

    @property
    def standing(self) -> list[Signature]:
        """The approvals that count."""
        return [one for one in self.given if one.is_approval and self.voided(one) is None]

    @property
    def rejection(self) -> Signature | None:
        """The latest rejection of exactly what is asked now (rule S6)."""
        asked = self.digest or ""
        found = [one for one in self.given if self._rejects(one) and is_same(one.digest, asked)]
        return max(found, key=lambda one: one.id) if found else None

    @property
    def covered_no(self) -> int | None:
        """Up to which number those who joined are covered by enough people; none if nobody is."""
        return covered_by(self.standing, self.count)

    @property
    def asked_after(self) -> int | None:
        """Which number those have passed who are asked about now: in a phase that has begun only late joiners."""
        return self.used_no if self.has_begun else None

    @property
    def current(self) -> list[Signature]:
        """The approvals that count for what is asked now: for late joiners those that are about them."""
        after = self.asked_after
        return [one for one in self.standing if after is None or one.covered_no > after]

    @property
    def is_met(self) -> bool:
        """Whether enough people have signed off what is asked now, and none has rejected it."""
        covered, after = self.covered_no, self.asked_after
        return self.rejection is None and covered is not None and (after is None or covered > after)

    @property
    def is_over(self) -> bool:
        """Whether the time for it has ended (rule S7)."""
        return self.ends_at is not None and self.ends_at < self.at

    @property
    def is_early(self) -> bool:
        """Whether the time for it has not come (rule S7)."""
        return self.opens_at is not None and self.at < self.opens_at

    def refusal(self, joined_no: int) -> Signature | None:
        """Return who rejected somebody who joined a phase that has begun, if anybody did (rule S3)."""
        if not self.has_begun or joined_no <= self.used_no:
            return None
        about = (one for one in self.given if one.covered_after is not None and one.covered_no >= joined_no)
        return next((one for one in about if self._rejects(one) and (one.covered_after or 0) < joined_no), None)

    def command(self, act: str) -> str:
        """Return the command with which people do something about it."""
        what = {SignOffSubject.PHASE: f" {self.title}", SignOffSubject.INIT: " --init"}
        return f"matoolkit approval {act} {self.batch_id}{what.get(self.subject, '')}"

    def progress(self) -> str:
        """Say how many have signed: `1 of 2 given (jmarin 20:31 UTC)`."""
        latest = {one.person: one for one in self.current}.values()
        given = self.count if any(not one.is_signed_in for one in latest) else min(len(latest), self.count)
        names = ", ".join(f"{one.signed_by} {_moment(one.signed_at, self.at)}" for one in latest)
        return f"{given} of {self.count} given" + (f" ({names})" if names else "")

    def _rejects(self, one: Signature) -> bool:
        is_about_this = (one.batch_start_time, one.runbook_version) == (self.start, self.version)
        return one.decision is SignOff.REJECT and one.withdrawn_at is None and is_about_this


def used_by(given: Iterable[Signature], count: int) -> int:
    """Return up to which number those who joined were covered when their sign-offs were used."""
    covered = covered_by([one for one in given if one.is_approval and one.used_at is not None], count)
    return NOBODY if covered is None else covered


def covered_by(approvals: Iterable[Signature], count: int) -> int | None:
    """Return up to which number those who joined are covered by so many different people (rules S3 and S4).

    Sign-offs of late joiners go on from where the ones before end. If nobody can sign in, one is as good as all.
    """
    known, reached = list(approvals), NOBODY
    while (level := _level(known, count, reached)) > reached:
        reached = level
    return None if reached == NOBODY else reached


def _level(approvals: Iterable[Signature], count: int, reached: int) -> int:
    best: dict[str, Signature] = {}
    for one in approvals:
        goes_on = one.covered_after is None or one.covered_after <= reached
        if goes_on and (one.person not in best or one.covered_no > best[one.person].covered_no):
            best[one.person] = one
    people = 0
    for one in sorted(best.values(), key=lambda one: -one.covered_no):
        people += 1 if one.is_signed_in else count
        if people >= count:
            return one.covered_no
    return NOBODY


def awaits(asked: SignOffs) -> Why | None:
    """Say why a phase or an init does not begin, if it waits for people (rules S1, S4 and S6)."""
    if asked.is_met:
        return None
    if (rejection := asked.rejection) is not None:
        said = f": {rejection.reason}" if rejection.reason else ""
        when = _moment(rejection.signed_at, asked.at)
        return _why(asked, f"{rejection.signed_by} rejected it at {when}{said}", since=rejection.signed_at)
    told = f"waits for approval: {asked.progress()}"
    if asked.is_over:
        told = f"was not approved in time: {asked.progress()}"
    elif asked.is_early:
        told = f"waits for approval, which can be given from {minute_told(asked.opens_at)} on"
    elif asked.has_begun:
        told = f"who joined after the approval waits for another: {asked.progress()}"
    return _why(asked, told)


def lets_in(asked: SignOffs, joined_no: int) -> Why | None:
    """Say why a member does not begin a phase that has begun: it joined after what was signed off (rule S3)."""
    if joined_no <= asked.used_no:
        return None
    return _why(asked, f"joined after the approval and waits for another: {asked.progress()}")


def will_wait(asked: SignOffs, joined_no: int) -> Why | None:
    """Say of a phase that may begin that a member is not among those who were signed off for it (rule S3)."""
    if asked.has_begun or not asked.is_met or joined_no <= (asked.covered_no or 0):
        return None
    return _why(asked, "joined after the approval, and waits in the phase for another unless it is given before")


def approval(door: Door, work: Work, phase: PhaseDoor) -> Why | None:
    """Say whether a phase, or a member who joined it late, waits for people; one that has begun does not."""
    asked = phase.sign_offs
    if asked is None or door is not Door.START:
        return None
    if work.member_key is not None:
        return lets_in(asked, work.joined_no)
    return None if asked.has_begun else awaits(asked)


def _why(asked: SignOffs, told: str, *, since: datetime | None = None) -> Why:
    return Why(
        WhyKind.APPROVAL,
        told,
        since,
        asked.ends_at,
        EndedBy.PERSON,
        ", ".join(asked.by),
        asked.command("show"),
    )


def times_of(
    approval: "Approval", start: datetime | None, *, is_manual: bool
) -> tuple[datetime | None, datetime | None]:
    """Return from when on and until when sign-offs are taken; a manual batch has no T to count from (rule S7)."""
    if start is None or is_manual:
        return None, None
    begins, ends = approval.not_before, approval.until
    return begins.due_at(start) if begins else None, ends.due_at(start) if ends else None


def who_may(approval: "Approval") -> tuple[str, ...]:
    """Return who may sign off."""
    return approval.by or (ANY_APPROVER,)


def _moment(at: datetime, now: datetime) -> str:
    return f"{at:%H:%M} UTC" if at.date() == now.date() else minute_told(at)
