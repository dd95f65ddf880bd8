"""What people signed, kept beside the system, and whether it lets something begin (rules S2 to S7).

Who joined and who signed comes in the order in which the database wrote it down. Whether enough people have signed what
begins is worked out from that alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from matoolkit.duration import parse_duration
from matoolkit.simulate.declared import SIGNERS, minutes_after
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry
from matoolkit.store.dialect.types import stored_text

About = Mapping[str, Any]
_VALID = timedelta(days=7)


@dataclass(slots=True)
class _Signature:
    """A sign-off: `place` says when it was given, `listed` who was in the batch then."""

    place: int
    subject: tuple[str, int, object]
    version: int
    start: str | None
    by: str
    is_signed_in: bool
    is_approval: bool
    at: datetime
    listed: str | None
    is_for_late_joiners: bool
    is_used: bool = False
    is_withdrawn: bool = False


class Signatures:
    """Everything that was signed, and when members joined."""

    def __init__(self) -> None:
        self._given: dict[int, _Signature] = {}
        self._joined: dict[int, int] = {}

    def see(self, entry: Entry, now: datetime) -> None:
        """Look at one thing that was committed."""
        about = entry.about
        if entry.what == "new_member" or (entry.what, entry.old, entry.new) == ("member", "removed", "active"):
            self._joined[entry.id] = entry.seq
        elif entry.what == "signed":
            self._see_signed(entry)
        elif entry.what == "withdrawn":
            one = self._given[entry.id]
            one.is_withdrawn = True
            if one.is_used:
                raise Violation(f"{entry}: what it is about has begun (rule S6)")
        elif entry.what == "phase_door" and "approval" in about["rules"]:
            if entry.old == "pending":
                self._begins(entry, _phase(about))
            else:
                # It is opened again, or for the first time for a few.
                self._use(_phase(about), {**about, "at": stored_text(now)})
        elif entry.what == "init_door" and "-attempt-" in about["job"]:
            self._begins(entry, ("init", about["batch"], None))
        elif entry.what == "hold_approved":
            self._begins(entry, ("hold", about["batch"], entry.new))

    def is_covered(self, about: About, member: int) -> bool:
        """Tell whether enough people signed for a member of a phase that has begun (rule S3)."""
        joined = self._joined.get(member, 0)
        mine = [one for one in self._about(_phase(about)) if one.is_approval and joined < one.place]
        return _is_quorum((one for one in mine if one.is_used or _counts(one, about)), about)

    def is_refused(self, about: About, member: int) -> bool:
        """Tell whether somebody said no to a member who joined a phase that has begun (rule S3)."""
        joined = self._joined.get(member, 0)
        nos = (one for one in self._about(_phase(about)) if not one.is_approval and one.is_for_late_joiners)
        is_covered = self.is_covered(about, member)
        return not is_covered and any(joined < one.place and _is_about_this(one, about) for one in nos)

    def init_waits(self, about: About) -> bool:
        """Tell whether an init waits for people."""
        return self._why_not(about, ("init", about["batch"], None)) is not None

    def _see_signed(self, entry: Entry) -> None:
        about = entry.about
        subject = (entry.old or "", about["batch"], about["hold"] if entry.old == "hold" else about["phase"])
        is_late = entry.old == "phase" and about["phase_status"] != "pending"
        one = _Signature(
            entry.seq,
            subject,
            about["version"],
            about["start"],
            about["by"],
            bool(about["signed_in"]),
            entry.new == "approve",
            _instant(about["at"]),
            about["listed"],
            is_late,
        )
        if (wrong := _why_refused(one, about)) is not None:
            raise Violation(f"{entry}, though {wrong}: {about}")
        self._given[entry.id] = one
        if is_late and one.is_approval:
            # Enough people may have signed for those who joined late, so that they begin.
            self._use(subject, about | about["declared"])

    def _use(self, subject: tuple[str, int, object], about: About) -> None:
        """Note that what enough people have signed begins; nothing voids that any more."""
        valid = [one for one in self._about(subject) if one.is_approval and _counts(one, about)]
        if _is_quorum(valid, about):
            for one in valid:
                one.is_used = True

    def _begins(self, entry: Entry, subject: tuple[str, int, object]) -> None:
        if (wrong := self._why_not(entry.about, subject)) is not None:
            raise Violation(f"{entry.what} {entry.id} went through a door, though {wrong}: {entry.about}")
        if subject[0] == "phase":
            self._use(subject, entry.about)

    def _why_not(self, about: About, subject: tuple[str, int, object]) -> str | None:
        given = self._about(subject)
        standing = [one for one in given if one.is_approval and _counts(one, about)]
        if not _is_quorum(standing, about):
            return f"only {[one.by for one in standing]} have signed it (rule S4)"
        nos = [one.by for one in given if not one.is_approval and _is_about_this(one, about)]
        if subject[0] != "hold" and nos:
            same = [one.by for one in given if not one.is_approval and _is_the_same(one, about)]
            return f"{same} rejected it (rule S6)" if same else None
        return None

    def _about(self, subject: tuple[str, int, object]) -> list[_Signature]:
        return [one for one in self._given.values() if one.subject == subject and not one.is_withdrawn]


def _phase(about: About) -> tuple[str, int, object]:
    return "phase", about["batch"], about["phase"]


def _is_about_this(one: _Signature, about: About) -> bool:
    return (one.version, one.start) == (about["version"], about["start"])


def _is_the_same(one: _Signature, about: About) -> bool:
    return _is_about_this(one, about) and one.listed == about["listed"]


def _counts(one: _Signature, about: About) -> bool:
    """Tell whether a sign-off is about this T and this version, and not too old (rule S5)."""
    valid = about["rules"]["approval"].get("valid")
    lasts = _VALID if valid is None else parse_duration(valid)
    return _is_about_this(one, about) and _instant(about["at"]) < one.at + lasts


def _is_quorum(signatures: Iterable[_Signature], about: About) -> bool:
    """Tell whether enough people are among them; where nobody can sign in, one is enough (rule S4)."""
    rule, people = about["rules"]["approval"], list(signatures)
    if any(not one.is_signed_in for one in people):
        return True
    may = {one.by for one in people if not (rule.get("not_publisher") and one.by == about["publisher"])}
    wanted: int = rule.get("count", 1)
    return len(may & _signers(rule)) >= wanted


def _signers(rule: About) -> set[str]:
    by = rule.get("by")
    return set(SIGNERS) if by is None or "role:Approver" in by else set(by)


def _why_refused(one: _Signature, about: About) -> str | None:
    """Say why a sign-off should not have been taken, if it should not."""
    if about["declared"] is None:
        return "nobody asked for it"
    rule = about["declared"]["rules"]["approval"]
    if one.is_signed_in and one.by not in _signers(rule):
        return f"{one.by} may not (rule S4)"
    if about["start"] != about["now_start"]:
        return "T is another one (rule S2)"
    if one.subject[0] != "phase" or about["manual"] or about["start"] is None:
        return None
    start = _instant(about["start"])
    begins, ends = rule.get("from"), rule.get("until")
    if begins is not None and one.at < start + timedelta(minutes=minutes_after(begins)):
        return "it is too early (rule S7)"
    is_limited = ends is not None and not one.is_for_late_joiners and not about["let_in"]
    if is_limited and one.at > start + timedelta(minutes=minutes_after(ends)):
        return "it is too late (rule S7)"
    return None


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
