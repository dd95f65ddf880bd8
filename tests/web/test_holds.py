"""Holds on pages: exactly who is concerned, and a decision that counts for exactly what was shown (rules T5 and T6)."""

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.approving import approve
from matoolkit.admin.holding import look_at_hold
from matoolkit.admin.late_batches import LateBatches, approve_late
from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.signoff import Caller, Signer
from matoolkit.domain.states import BatchStatus
from matoolkit.ports import Publisher
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.web.serving import Site
from tests.orchestrator.runbooks import TWO_PHASES
from tests.signing import person
from tests.stage import Stage
from tests.web.conftest import Visitor
from tests.web.furnished import HOSTILE

pytestmark = pytest.mark.on("sqlite")


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    """A batch of which half is gone."""
    return held(stage, 10)


def held(stage: Stage, members: int, name: str = "wave") -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES, name), [*HOSTILE, *(f"u{n}" for n in range(members - len(HOSTILE)))])
    hold(stage, batch, members // 2)
    return batch


def hold(stage: Stage, batch: BatchRow, gone: int) -> None:
    ids = [member.id for member in stage.members(batch)][:gone]
    reason = f"the source no longer returns {gone} of its members"
    stage.hold_for(batch, HoldKind.REMOVALS, f"key-{gone}", reason, memberIds=ids)


def late(stage: Stage, days: int, name: str = "wave") -> BatchRow:
    batch = stage.batch_at(stage.publish(TWO_PHASES, name), ["ada"], days=-days)
    start = stage.now - timedelta(days=days)
    stage.hold_for(batch, HoldKind.LATE, f"late-{days}", "T had passed", start=start.isoformat())
    return batch


def approved_by(stage: Stage, batch: BatchRow) -> str | None:
    return stage.reload(batch).approved_hold_by


def test_t6_a_hold_is_found_read_and_approved(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto("/holds")
    tab.get_by_role("link", name=str(batch.id), exact=True).click()
    expect(tab.get_by_role("heading", level=1)).to_have_text(f"5 of 10 members would leave batch {batch.id}")
    expect(tab.locator(".key")).to_have_count(5)
    tab.get_by_role("link", name="Approve…").click()
    tab.get_by_label("Reason").fill("they stay where they are")
    tab.get_by_role("button", name="Approve: 5 members leave").click()
    expect(tab.get_by_role("status")).to_contain_text("approved; it waits, automation of wave is off: enable it")
    assert approved_by(stage, batch) == "local"
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx, batch_id=batch.id)
    assert (entry.action, entry.reason) == ("batch.approve_hold", "they stay where they are")


def test_t6_a_hold_that_changed_is_refused_with_what_changed(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/holds/{batch.id}")
    tab.get_by_role("link", name="Approve…").click()
    tab.get_by_label("Reason").fill("as agreed")
    hold(stage, batch, 8)
    tab.get_by_role("button", name="Approve: 5 members leave").click()
    refused = tab.locator("form .refused")
    expect(refused).to_contain_text("AD414")
    expect(refused).to_contain_text("you saw5 of 10 members would leave")
    expect(refused).to_contain_text("it is now8 of 10 members would leave")
    expect(tab.get_by_label("Reason")).to_have_value("as agreed")
    assert approved_by(stage, batch) is None


def test_t6_a_hold_that_ends_while_it_is_looked_at_says_so(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/holds/{batch.id}")
    expect(tab.locator("#live")).to_contain_text("live")
    stage.release(batch)
    expect(tab.get_by_role("heading", level=1)).to_have_text(f"Batch {batch.id} is not held")
    expect(tab.get_by_role("link", name="Approve…")).to_have_count(0)


def test_a3_all_members_of_a_hold_are_in_the_file_and_on_its_pages(visitor: Visitor, stage: Stage) -> None:
    batch = held(stage, 160)
    first = visitor.get(f"/holds/{batch.id}").text
    assert "&lt;script&gt;document" in first
    assert "<script>document" not in first
    assert "\x1b" not in first
    last = look_at_hold(stage.store, batch.id, limit=50).members[-1].id
    assert f"/holds/{batch.id}?after={last}" in first
    assert visitor.get(f"/holds/{batch.id}?after={last}").text.count('class="key"') == 30
    assert 'rel="next"' not in visitor.get(f"/holds/{held(stage, 100, 'fifty').id}").text
    rows = list(csv.reader(visitor.get(f"/holds/{batch.id}/members.csv").text.splitlines()))
    assert len(rows) == 81
    assert rows[1][2] == "waiting"


def test_an_approval_without_a_reason_is_refused(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    answer = visitor.send_form(f"/holds/{batch.id}/approve", key="key-5", reason=" ")
    assert answer.status_code == 422
    assert "AP422" in answer.text
    assert approved_by(stage, batch) is None


def test_a_held_batch_is_cancelled_for_good(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    seen = f"/holds/{batch.id}/cancel"
    assert "its work stops for good" in visitor.get(seen).text
    answer = visitor.send_form(seen, seen_at=seen, key="key-5", reason="called off")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/batches/{batch.id}")
    assert stage.reload(batch).status is BatchStatus.CANCELLED
    assert f"Batch {batch.id} is not held" in visitor.get(f"/holds/{batch.id}").text


def test_t6_a_batch_that_is_now_held_for_something_else_is_not_cancelled(tab: Page, stage: Stage) -> None:
    batch = late(stage, 3)
    tab.goto(f"/holds/{batch.id}")
    tab.get_by_role("link", name="cancel the batch…").click()
    tab.get_by_label("Reason").fill("nothing of it has begun")
    stage.hold_for(batch, HoldKind.REMOVALS, "key-1", memberIds=[stage.members(batch)[0].id])
    tab.get_by_role("button", name=f"Cancel batch {batch.id}").click()
    expect(tab.locator("form .refused")).to_contain_text("WB409")
    expect(tab.get_by_label("Reason")).to_have_value("nothing of it has begun")
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_t5_late_batches_are_cancelled_together_once_they_were_shown(tab: Page, stage: Stage) -> None:
    batches = [late(stage, days) for days in (3, 4, 30)]
    recent = late(stage, 1)
    tab.goto("/holds")
    tab.get_by_label("T before").fill(f"{stage.now - timedelta(days=2):%Y-%m-%d}")
    tab.get_by_role("button", name="Cancel them…").click()
    expect(tab.locator("#late")).to_contain_text("3 late batches with 3 members")
    tab.get_by_label("Reason").fill("history")
    tab.get_by_role("button", name="Cancel 3 batches").click()
    expect(tab.get_by_role("status")).to_contain_text("3 late batches with 3 members: cancelled")
    assert {stage.reload(batch).status for batch in batches} == {BatchStatus.CANCELLED}
    assert stage.reload(recent).status is BatchStatus.ACTIVE


def test_t5_one_more_late_batch_than_was_shown_is_not_decided(visitor: Visitor, stage: Stage) -> None:
    first = late(stage, 3)
    seen = f"/holds/late?what=approve&before={stage.now:%Y-%m-%d}"
    page = visitor.get(seen).text
    shown_as = page.split('name="shown_as" value="')[1].split('"')[0]
    before = f"{stage.now:%Y-%m-%d}T00:00:00+00:00"
    second = late(stage, 2)
    answer = visitor.send_form("/holds/late/approve", before=before, shown_as=shown_as, reason="all of them")
    assert (answer.status_code, "WB409" in answer.text) == (409, True)
    assert (approved_by(stage, first), approved_by(stage, second)) == (None, None)


def test_t5_a_late_batch_that_comes_while_they_are_decided_is_not_decided(
    visitor: Visitor, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = late(stage, 3), stage.batch_at(stage.publish(TWO_PHASES, "wave"), ["grace"], days=-2)
    seen = f"/holds/late?what=approve&before={stage.now:%Y-%m-%d}"
    shown_as = visitor.get(seen).text.split('name="shown_as" value="')[1].split('"')[0]

    def approved(store: Store, publisher: Publisher, before: datetime, *of: str | None, **why: Any) -> LateBatches:
        with store.transaction() as tx:
            hold_batches(tx, [Hold(second.id, GateKind.LATE, "T had passed", "late-2", '{"kind": "late"}')], stage.now)
        return approve_late(store, publisher, before, *of, **why)

    monkeypatch.setattr("matoolkit.web.pages.late.approve_late", approved)
    before = f"{stage.now:%Y-%m-%d}T00:00:00+00:00"
    answer = visitor.send_form("/holds/late/approve", before=before, shown_as=shown_as, reason="all of them")
    assert (answer.status_code, "WB409" in answer.text) == (409, True)
    assert (approved_by(stage, first), approved_by(stage, second)) == (None, None)


def test_the_cost_of_holds_does_not_grow(
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counts = []
    for members in (10, 400):
        batch = held(stage, members, f"wave-{members}")
        for path in ("/holds", f"/holds/{batch.id}"):
            visitor.get(path)
            site.looks.forget()
            statements()
            answer = visitor.get(path)
            counts.append(len(statements()))
            assert len(answer.content) < 60_000
    assert counts[:2] == counts[2:]


def test_t5_a_late_hold_shows_what_would_begin_at_once(visitor: Visitor, stage: Stage) -> None:
    batch = late(stage, 3)
    page = visitor.get(f"/holds/{batch.id}").text
    assert page.count("past due: begins at once") == 3
    assert "<b>the batch begins</b>" in page


def test_t5_all_who_are_active_in_a_late_batch_are_concerned(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 130, days=-3)
    stage.hold_for(batch, HoldKind.LATE, "late", "T had passed")
    stage.leave(batch, "u0")
    page = visitor.get(f"/holds/{batch.id}").text
    assert '<span data-figure="concerned">129</span> of 129' in page
    following = page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    assert ">u51<" in visitor.get(following).text
    keys = [
        row["member_key"] for row in csv.DictReader(visitor.get(f"/holds/{batch.id}/members.csv").text.splitlines())
    ]
    assert keys == [f"u{number}" for number in range(1, 130)]


SAFE = TWO_PHASES + "safeguards: {approval: {count: 2}}\n"


def test_s1_a_hold_that_several_people_sign_off_says_how_many_have(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(SAFE), ["ada", "grace", "joan"])
    hold(stage, batch, 1)
    approve(stage.store, stage.bus, batch.id, "key-1", by="ann", signer=person("ann"))
    tab.goto(f"/holds/{batch.id}")
    expect(tab.get_by_text("Several people have to sign this off")).to_contain_text("1 of 2 given (ann")
    expect(tab.get_by_text("When the last of them has signed, at the next tick:")).to_be_visible()
    assert approved_by(stage, batch) is None


def test_s1_late_batches_that_want_sign_offs_are_approved_together_on_the_page(visitor: Visitor, stage: Stage) -> None:
    first = stage.batch_at(stage.publish(SAFE, "safe"), ["ada"], days=-3)
    stage.hold_for(first, HoldKind.LATE, "late-3", "T had passed")
    page = visitor.get(f"/holds/late?what=approve&before={stage.now:%Y-%m-%d}").text
    shown_as = page.split('name="shown_as" value="')[1].split('"')[0]
    before = f"{stage.now:%Y-%m-%d}T00:00:00+00:00"
    answer = visitor.send_form("/holds/late/approve", before=before, shown_as=shown_as, reason="all of them")
    assert answer.status_code == 303, answer.text
    # Nobody signs in here, so that one sign-off is as good as all.
    assert approved_by(stage, first) == "local"


def test_s4_the_page_says_why_late_batches_cannot_be_signed_off(visitor: Visitor, stage: Stage) -> None:
    first = stage.batch_at(stage.publish(SAFE, "safe"), ["ada"], days=-3)
    stage.hold_for(first, HoldKind.LATE, "late-3", "T had passed")
    seen = f"/holds/late?what=approve&before={stage.now:%Y-%m-%d}"
    shown_as = visitor.get(seen).text.split('name="shown_as" value="')[1].split('"')[0]
    local = Signer("local", frozenset({"Approver"}), Caller.PERSON)
    approve(stage.store, stage.bus, first.id, "late-3", by="local", signer=local)
    before = f"{stage.now:%Y-%m-%d}T00:00:00+00:00"
    answer = visitor.send_form("/holds/late/approve", before=before, shown_as=shown_as, reason="all of them")
    assert (answer.status_code, "SO410" in answer.text) == (409, True)
    assert approved_by(stage, first) is None
