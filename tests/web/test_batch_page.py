"""The page of a batch: its phases, what failed in it, and trying a group of failures again."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Chosen
from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import MemberStatus
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.failures import failures_by_error
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Failing, Stage
from tests.web.conftest import Visitor
from tests.web.scenery import HOSTILE

pytestmark = pytest.mark.on("sqlite")

_SHOWN = re.compile(r'name="shown" value="([^"]+)"')
QUOTA = Failing("the mailbox is over its quota", "QuotaExceeded")


def failing_for(*keys: str) -> Callable[[WorkerJob], object]:
    return lambda job: QUOTA if job.parameters["Email"] in keys else None


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    """A batch in whose cutover two of four have failed in the same way."""
    batch = stage.batch(stage.publish(TWO_PHASES), 4)
    stage.answers["Move"] = failing_for("u0", "u1")
    stage.due(batch, "prepare", "cutover")
    stage.run()
    return batch


def like(stage: Stage, batch: BatchRow) -> int:
    """Return the number by which the group of failures is known."""
    with stage.store.reading() as tx:
        (group,) = failures_by_error(tx, batch.id)
    return group.example_step_id


def shown_at(visitor: Visitor, path: str) -> str:
    """Return the mark of what a preview shows."""
    (mark,) = _SHOWN.findall(visitor.get(path).text)
    return str(mark)


def another_retries(stage: Stage, batch: BatchRow, key: str) -> None:
    """Let somebody else retry a member while a preview is open."""
    retry_members(stage.store, stage.bus, batch.id, Chosen([stage.member(batch, key).id]), by="anna")


def failed(stage: Stage, batch: BatchRow) -> int:
    return sum(member.status is MemberStatus.FAILED for member in stage.members(batch))


def test_the_page_says_first_what_needs_a_person_then_phases_and_failures(visitor: Visitor, batch: BatchRow) -> None:
    shown = visitor.get(f"/batches/{batch.id}").text
    places = [
        shown.index(word) for word in ("2 failed", "next phase", "<h2>Phases", "Failures by error", "over its quota")
    ]
    assert places == sorted(places)
    assert "✖ 2 failed · Batch" in shown
    assert '<b data-figure="done-1">4</b>' in shown, "prepare is done for all of them"
    assert "Retry 2…" in shown


def test_a_group_of_failures_is_tried_again_in_place(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Retry 2…").click()
    form = tab.locator("form.decide")
    expect(form).to_contain_text("2 members (u0, u1): go on from the step that failed")
    form.get_by_label("Reason").fill("quota raised, ticket 88213")
    form.get_by_role("button", name="Retry 2 members").click()
    expect(tab.locator(".told")).to_have_text(f"2 members of batch {batch.id} retried.")
    expect(tab.locator("main")).to_contain_text("ticket 88213")
    assert failed(stage, batch) == 0
    stage.answers["Move"] = None
    stage.run()
    expect(tab.locator("[data-figure=under_way]")).to_have_count(0)
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx, batch_id=batch.id)
    assert (entry.action, entry.actor, entry.reason) == ("batch.retry_members", "local", "quota raised, ticket 88213")


def test_a_refused_retry_leaves_the_form_with_its_text_and_says_code_and_hint(
    tab: Page, stage: Stage, batch: BatchRow
) -> None:
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Retry 2…").click()
    form = tab.locator("form.decide")
    form.get_by_label("Reason").fill("quota raised")
    another_retries(stage, batch, "u1")
    form.get_by_role("button").first.click()
    expect(form.locator(".refused")).to_contain_text("WB409")
    expect(form.locator(".refused")).to_contain_text("decide again")
    expect(form.locator(".refused")).to_be_focused()
    expect(form.get_by_label("Reason")).to_have_value("quota raised")
    expect(form.get_by_role("button", name="Retry 1 member")).to_be_visible()
    assert failed(stage, batch) == 1, "nothing was changed"
    form.get_by_role("button", name="Retry 1 member").click()
    expect(tab.locator(".told")).to_contain_text("1 member of batch")


def test_the_terms_of_a_retry_change_the_preview_and_keep_the_reason(tab: Page, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Retry 2…").click()
    form = tab.locator("form.decide")
    form.get_by_label("Reason").fill("once more")
    form.get_by_text("Other terms").click()
    form.get_by_label("begin again").select_option("prepare")
    expect(form).to_contain_text("begin again from prepare")
    expect(form.get_by_label("Reason")).to_have_value("once more")
    expect(form).to_contain_text("--from prepare --dry-run")
    form.get_by_role("link", name="Close").click()
    expect(form).to_have_count(0)


def test_a_preview_that_is_no_longer_true_is_refused(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    path, group = f"/batches/{batch.id}/retry", like(stage, batch)
    mark = shown_at(visitor, f"{path}?like={group}")
    another_retries(stage, batch, "u1")
    answer = visitor.send_form(path, like=group, shown=mark, reason="once more")
    assert (answer.status_code, "WB409" in answer.text) == (409, True)
    assert failed(stage, batch) == 1


def test_a_mark_of_other_terms_is_no_mark_of_these(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    path, group = f"/batches/{batch.id}/retry", like(stage, batch)
    mark = shown_at(visitor, f"{path}?like={group}")
    answer = visitor.send_form(path, like=group, shown=mark, reason="once more", keep_done="true")
    assert answer.status_code == 409
    assert failed(stage, batch) == 2


def test_a_retry_without_a_reason_is_refused(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    path, group = f"/batches/{batch.id}/retry", like(stage, batch)
    answer = visitor.send_form(path, like=group, shown=shown_at(visitor, f"{path}?like={group}"), reason=" ")
    assert (answer.status_code, "WB422" in answer.text) == (422, True)
    assert failed(stage, batch) == 2


def test_steps_done_with_old_values_have_to_be_decided_about(visitor: Visitor, stage: Stage) -> None:
    runbook = stage.publish(TWO_PHASES)
    batch = stage.batch(runbook, 1)
    stage.answers["Move"] = QUOTA
    stage.due(batch, "prepare", "cutover")
    stage.run()
    stage.correct(runbook, batch, {"u0": {"Email": "other@contoso.com", "Name": "U0"}})
    path = f"/batches/{batch.id}/retry?like={like(stage, batch)}"
    undecided = visitor.get(path).text
    assert "prepare/create was done with the old" in undecided
    assert "Say whether these steps are repeated" in undecided
    assert "Retry 1 member</button>" not in undecided
    for decided in ("keep_done=true", "begin_with=prepare", "data=kept"):
        assert "Retry 1 member</button>" in visitor.get(f"{path}&{decided}").text


def test_a_held_batch_says_so_and_leads_to_its_hold(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    stage.hold(batch)
    shown = visitor.get(f"/batches/{batch.id}").text
    assert f'<a href="/holds/{batch.id}">' in shown
    assert "too many are gone" in shown


def test_hostile_texts_are_texts(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), list(HOSTILE))
    stage.answers["Move"] = Failing("<script>alert(1)</script>\x1b[31m\u202e", "<i>Type</i>")
    stage.due(batch, "prepare", "cutover")
    stage.run()
    for path in (f"/batches/{batch.id}", f"/batches/{batch.id}/retry?like={like(stage, batch)}"):
        shown = visitor.get(path).text
        assert not re.search("<script>alert|<i>Type|<b>bold|\x1b|\u202e", shown)
    assert "&lt;script&gt;" in visitor.get(f"/batches/{batch.id}").text


def test_a_page_takes_the_same_number_of_statements_for_few_and_for_many(
    visitor: Visitor, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counted = []
    for many in (10, 300):
        batch = stage.batch(stage.publish(TWO_PHASES, f"wave-{many}"), many)
        stage.answers["Move"] = failing_for("u0", "u1", "u2")
        stage.due(batch, "prepare", "cutover")
        stage.run()
        visitor.get("/preferences")
        statements()
        answer = visitor.get(f"/batches/{batch.id}")
        counted.append(len(statements()))
        assert len(answer.content) < 60_000
    assert counted[0] >= counted[1] > 0


def test_failures_are_a_file_too(visitor: Visitor, batch: BatchRow) -> None:
    lines = visitor.get(f"/batches/{batch.id}/failures.csv").text.splitlines()
    assert lines[0].startswith("phase_name,step_name,error_type,error")
    assert lines[1].startswith("cutover,move,QuotaExceeded,the mailbox is over its quota")
