"""Rules S1 to S7: whether enough people have signed off, and what voids what they signed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from matoolkit.domain.digests import Changed, is_same, parsed_digest, shown
from matoolkit.domain.signoff import (
    VALID,
    Signature,
    SignOffs,
    awaits,
    covered_by,
    lets_in,
    times_of,
    used_by,
)
from matoolkit.domain.states import SignOff, SignOffSubject
from matoolkit.runbook.model import Approval

NOW = datetime(2026, 11, 20, 21, 0, tzinfo=UTC)
START = datetime(2026, 11, 21, 22, 0, tzinfo=UTC)
LIST = shown(42, "cutover", 3, START, 0, [(1, 1), (2, 1)])
OTHER = shown(42, "cutover", 3, START, 1, [(1, 1), (2, 1), (3, 1)])
GIVEN = Signature(
    id=1,
    batch_id=42,
    subject=SignOffSubject.PHASE,
    phase_execution_id=7,
    hold_key=None,
    runbook_version=3,
    batch_start_time=START,
    digest=str(LIST),
    covered_after=None,
    covered_no=0,
    members=2,
    decision=SignOff.APPROVE,
    signed_by="jmarin",
    roles="Approver",
    is_signed_in=True,
    signed_at=NOW - timedelta(minutes=29),
    reason=None,
    withdrawn_at=None,
    used_at=None,
)
ASKED = SignOffs(
    batch_id=42,
    subject=SignOffSubject.PHASE,
    title="cutover",
    phase_execution_id=7,
    count=2,
    by=("role:Approver",),
    valid=VALID,
    version=3,
    start=START,
    at=NOW,
)


def by(name: str, number: int = 0, **changes: object) -> Signature:
    """Return a sign-off by somebody, up to a number."""
    return replace(GIVEN, id=GIVEN.id + len(name), signed_by=name, covered_no=number, **changes)  # type: ignore[arg-type]


def asked(*given: Signature, **changes: object) -> SignOffs:
    return replace(ASKED, given=given, used_no=used_by(given, ASKED.count), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "count", "covered"),
    [
        ([], 1, None),
        ([by("ann")], 1, 0),
        ([by("ann")], 2, None),
        ([by("ann"), by("ANN", 3)], 2, None),
        ([by("ann", 5), by("bob", 3)], 2, 3),
        ([by("ann", 5), by("bob", 3), by("cleo", 4)], 2, 4),
        ([by("ann", 3), by("ann", 9), by("bob", 7)], 2, 7),
        ([by("local", 4, is_signed_in=False)], 3, 4),
        ([by("ann", 3), by("bob", 3), by("ann", 5, covered_after=3), by("cleo", 5, covered_after=3)], 2, 5),
        ([by("ann", 3), by("ann", 5, covered_after=3), by("cleo", 5, covered_after=3)], 2, None),
        ([by("ann", 3), by("bob", 3), by("ann", 5, covered_after=4), by("cleo", 5, covered_after=4)], 2, 3),
    ],
    ids=["none", "one", "one of two", "twice the same", "lower", "middle", "best", "local", "late", "hole", "gap"],
)
def test_s3_s4_members_are_covered_by_so_many_different_people(
    given: Sequence[Signature], count: int, covered: int | None
) -> None:
    assert covered_by(given, count) == covered


def test_s4_a_phase_begins_when_the_last_has_signed() -> None:
    why = awaits(asked(by("jmarin")))
    assert why is not None
    assert why.sentence == "waits for approval: 1 of 2 given (jmarin 20:31 UTC)"
    assert (why.who, why.command) == ("role:Approver", "matoolkit approval show 42 cutover")
    assert awaits(asked(by("jmarin"), by("kwu"))) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"start": START + timedelta(hours=1)},
        {"start": None},
        {"version": 4},
        {"at": NOW + VALID},
        {"valid": timedelta(minutes=29)},
    ],
    ids=str,
)
def test_s5_another_time_another_version_and_age_void_it(changes: dict[str, object]) -> None:
    both = (by("jmarin"), by("kwu"))
    assert awaits(asked(*both)) is None
    assert awaits(asked(*both, **changes)) is not None
    assert asked(*both, **changes).voided(both[0]) is not None


def test_s5_what_was_used_is_not_voided_any_more() -> None:
    used = [by("jmarin", used_at=NOW), by("kwu", used_at=NOW)]
    late = asked(*used, start=START + timedelta(days=1), at=NOW + VALID * 2, has_begun=True)
    assert lets_in(late, 0) is None
    assert late.standing == used


def test_s3_who_joins_later_waits_alone_and_for_sign_offs_of_those_only() -> None:
    used = [by("ann", 3, used_at=NOW), by("bob", 3, used_at=NOW)]
    late = asked(*used, has_begun=True)
    assert (lets_in(late, 0), lets_in(late, 3)) == (None, None)
    why = lets_in(late, 4)
    assert why is not None
    assert why.sentence == "joined after the approval and waits for another: 0 of 2 given"
    assert not late.is_met
    more = asked(*used, by("cleo", 4, covered_after=3), by("ann", 4, covered_after=3), has_begun=True)
    assert more.is_met
    assert lets_in(more, 4) is not None, "it counts when it is used"


def test_s3_a_sign_off_before_the_phase_begins_covers_no_joiner() -> None:
    one = asked(by("ann", 3), by("bob", 4))
    assert (one.covered_no, one.is_met) == (3, True)


def test_s3_who_was_rejected_is_so_among_the_late_only() -> None:
    no = by("kwu", 5, decision=SignOff.REJECT, covered_after=3)
    found = [asked(no, has_begun=True).refusal(number) for number in (3, 4, 5, 6)]
    assert found == [None, no, no, None]
    assert asked(replace(no, withdrawn_at=NOW), has_begun=True).refusal(4) is None
    assert asked(replace(no, covered_after=None), has_begun=True).refusal(4) is None
    assert asked(no).refusal(4) is None


def test_s6_a_rejection_outweighs_approvals_until_it_is_withdrawn_or_the_list_changes() -> None:
    no = by("kwu", decision=SignOff.REJECT, reason="payroll runs that night", signed_at=NOW)
    both = (by("jmarin"), by("ann"), no)
    why = awaits(asked(*both, digest=str(LIST)))
    assert why is not None
    assert why.sentence == "kwu rejected it at 21:00 UTC: payroll runs that night"
    assert awaits(asked(*both, digest=str(OTHER))) is None
    assert awaits(asked(by("jmarin"), by("ann"), replace(no, withdrawn_at=NOW), digest=str(LIST))) is None


def test_s6_an_approval_that_was_withdrawn_does_not_count() -> None:
    assert awaits(asked(by("jmarin"), by("ann", withdrawn_at=NOW))) is not None


def test_s7_too_early_and_too_late_are_told_and_time_approves_nothing() -> None:
    early, over = asked(opens_at=NOW + timedelta(hours=1)), asked(ends_at=NOW - timedelta(hours=1))
    assert (early.is_early, early.is_over, over.is_early, over.is_over) == (True, False, False, True)
    told = [why.sentence for why in (awaits(early), awaits(over)) if why is not None]
    assert told == [
        "waits for approval, which can be given from 2026-11-20 22:00 UTC on",
        "was not approved in time: 0 of 2 given",
    ]


def test_s7_offsets_count_from_t_and_not_in_manual_batches() -> None:
    approval = Approval.model_validate({"from": "T-2d", "until": "T+4h"})
    assert times_of(approval, START, is_manual=False) == (START - timedelta(days=2), START + timedelta(hours=4))
    assert times_of(approval, START, is_manual=True) == (None, None)
    assert times_of(approval, None, is_manual=False) == (None, None)


@pytest.mark.parametrize(
    "other",
    [
        shown(43, "cutover", 3, START, 0, [(1, 1), (2, 1)]),
        shown(42, "cleanup", 3, START, 0, [(1, 1), (2, 1)]),
        shown(42, "cutover", 4, START, 0, [(1, 1), (2, 1)]),
        shown(42, "cutover", 3, None, 0, [(1, 1), (2, 1)]),
        shown(42, "cutover", 3, START, 0, [(1, 1)]),
        shown(42, "cutover", 3, START, 0, [(1, 1), (2, 2)]),
    ],
    ids=["batch", "phase", "version", "T", "member", "epoch"],
)
def test_s2_the_digest_is_of_exactly_what_was_shown(other: object) -> None:
    assert not is_same(str(LIST), str(other))


def test_s2_the_order_of_members_and_who_joined_and_left_again_do_not_matter() -> None:
    assert is_same(str(LIST), str(shown(42, "cutover", 3, START, 5, [(2, 1), (1, 1)])))
    assert not is_same("", "")


@pytest.mark.parametrize("start", [START, None])
def test_s2_a_digest_says_what_it_was_made_of(start: datetime | None) -> None:
    digest = shown(42, "cutover", 3, start, 5, [(1, 1)])
    assert parsed_digest(str(digest)) == digest


@pytest.mark.parametrize("text", ["", "v3", "v3-never-0-2-abc", "vx-manual-0-2-abc", "v3-manual-0-2-abc-d", "é" * 9])
def test_s2_what_is_no_digest_is_not_read_as_one(text: str) -> None:
    assert parsed_digest(text) is None


def test_s2_what_changed_is_told_with_counts_and_some_names() -> None:
    changed = Changed(3, ["u5", "u6"], 1, ["u0"], (START, None), (3, 4))
    assert str(changed) == (
        "version 3 was shown, and it is version 4; T was 2026-11-21 22:00 UTC, and is no time;"
        " 3 members joined (u5, u6 and 1 more); 1 member left (u0)"
    )
    assert str(Changed()) == "it is about something else"
