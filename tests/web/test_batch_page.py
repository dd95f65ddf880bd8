"""The page of a batch: its phases, what failed in it, and trying a group of failures again."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.gating import Subject, pause
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Chosen
from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.failures import failures_by_error
from matoolkit.web.serving import Site
from tests.orchestrator.runbooks import TWO_PHASES, WITH_INIT
from tests.signing import Signers
from tests.stage import Failing, Silent, Stage
from tests.web.conftest import Visitor
from tests.web.scenery import HOSTILE

pytestmark = pytest.mark.on("sqlite")

_SHOWN = re.compile(r'name="shown" value="([^"]+)"')
REMOVING = """
on_member_removed:
  - {name: tidy, worker_id: worker-01, function: Tidy, params: {Email: '{{Email}}'}}
"""
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


def audit_reasons(stage: Stage, batch: BatchRow) -> list[str | None]:
    with stage.store.reading() as tx:
        return [entry.reason for entry in audit_page(tx, batch_id=batch.id)]


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


def test_a_command_holds_no_other_command(visitor: Visitor, batch: BatchRow) -> None:
    """People copy commands from pages, and anybody can write an address."""
    page = visitor.get(f"/batches/{batch.id}/retry", params={"begin_with": "x; rm -r ."}).text
    assert f"matoolkit batch retry {batch.id} --from &#39;x; rm -r .&#39; --dry-run" in page


def test_what_a_key_opened_is_gone_on_with_by_the_next_key(tab: Page, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    opener = tab.get_by_role("link", name="Cancel batch…")
    opener.press("Enter")
    expect(tab.locator("#decision")).to_be_focused()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Reason")).to_be_focused()
    tab.locator("#decision").get_by_role("link", name="Close").press("Enter")
    expect(opener).to_be_focused()


def test_two_clicks_on_a_button_send_one_form(tab: Page, stage: Stage, batch: BatchRow) -> None:
    sent: list[str] = []
    tab.on("request", lambda one: sent.append(one.url) if one.method == "POST" else None)
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Retry", exact=False).first.click()
    tab.get_by_label("Reason").fill("once")
    tab.locator("form.decide button.do").dblclick()
    expect(tab.get_by_role("status")).to_contain_text("retried")
    assert len(sent) == 1


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
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counted, site.looks.dear.patience = [], 60
    for many in (10, 300):
        batch = stage.batch(stage.publish(TWO_PHASES, f"wave-{many}"), many)
        stage.answers["Move"] = failing_for("u0", "u1", "u2")
        stage.due(batch, "prepare", "cutover")
        stage.run()
        visitor.get(f"/batches/{batch.id}")
        site.looks.forget()
        statements()
        answer = visitor.get(f"/batches/{batch.id}")
        counted.append(len(statements()))
        assert len(answer.content) < 60_000
    assert counted[0] == counted[1] > 0


def test_failures_are_a_file_too(visitor: Visitor, batch: BatchRow) -> None:
    lines = visitor.get(f"/batches/{batch.id}/failures.csv").text.splitlines()
    assert lines[0].startswith("phase_name,step_name,error_type,error")
    assert lines[1].startswith("cutover,move,QuotaExceeded,the mailbox is over its quota")


def test_o12_a_batch_is_cancelled(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 3)
    stage.answers["Move"] = Silent()
    stage.due(batch, "prepare", "cutover")
    stage.run()
    tab.goto(f"/batches/{batch.id}")
    tab.get_by_role("link", name="Cancel batch…").click()
    form = tab.locator("form.decide")
    expect(form).to_contain_text("2 phases are dropped (cutover, check), and 3 steps that wait are not sent")
    expect(form).to_contain_text("3 steps are under way")
    form.get_by_label("Reason").fill("wrong list")
    form.get_by_role("button", name=f"Cancel batch {batch.id}").click()
    expect(tab.locator(".told")).to_contain_text("3 jobs in flight cannot be recalled")
    expect(tab.get_by_role("link", name="Cancel batch…")).to_have_count(0)
    assert stage.reload(batch).status is BatchStatus.CANCELLED


def test_o12_a_batch_that_has_ended_is_not_cancelled(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    path = f"/batches/{batch.id}/cancel"
    mark = shown_at(visitor, path)
    cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    answer = visitor.send_form(path, shown=mark, reason="wrong list")
    assert (answer.status_code, "AD" in answer.text) == (409, True)
    assert "wrong list" not in audit_reasons(stage, batch)


def test_u2_members_of_a_batch_are_undone_as_shown(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES + REMOVING), 3)
    stage.due(batch, "prepare")
    stage.run()
    path = f"/batches/{batch.id}/undo"
    shown = visitor.get(f"{path}?keys=u0%0D%0AU1").text
    assert "2 members</b> (<bdi>u0</bdi>, <bdi>u1</bdi>): version 1 runs" in shown.replace("\n", "")
    (mark,) = _SHOWN.findall(shown)
    refused = visitor.send_form(path, shown=mark, who="everybody", reason="wrong wave")
    assert (refused.status_code, "WB409" in refused.text) == (409, True), "everybody was not what was shown"
    nobody = visitor.send_form(path, shown=mark, reason="wrong wave")
    assert (nobody.status_code, "nobody is chosen" in nobody.text) == (422, True)
    answer = visitor.send_form(path, shown=mark, keys="u0\r\nU1", reason="wrong wave")
    assert answer.status_code == 303
    stage.run()
    assert stage.functions().count("Tidy") == 2
    assert audit_reasons(stage, batch) == ["wrong wave"]


def test_u2_a_key_that_nobody_has_is_refused_and_stays_in_the_form(visitor: Visitor, batch: BatchRow) -> None:
    shown = visitor.get(f"/batches/{batch.id}/undo?keys=u0%0D%0Anobody").text
    assert "nobody" in shown
    assert re.search(r"<code>[A-Z]{2}\d{3}</code>", shown)
    assert "Undo 1 member" not in shown


def test_o14_a_failed_init_is_shown_with_its_error_and_runs_again(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    stage.answers["Group"] = Failing("the group exists already", "Conflict")
    stage.run()
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("main")).to_contain_text("The init failed: the group exists already")
    tab.get_by_role("link", name="Retry init…").click()
    tab.get_by_label("Reason").fill("group deleted")
    tab.get_by_role("button", name="Run the init of version 1 again").click()
    expect(tab.locator(".told")).to_contain_text("the init of version 1 runs again")
    stage.answers["Group"] = None
    stage.run()
    assert stage.reload(batch).status is BatchStatus.ACTIVE
    assert audit_reasons(stage, batch) == ["group deleted"]


def test_o14_an_init_that_has_not_failed_is_not_run_again(visitor: Visitor, batch: BatchRow) -> None:
    shown = visitor.get(f"/batches/{batch.id}/init/retry").text
    assert "only an init that failed can be retried" in shown
    assert "again</button>" not in shown


def test_s1_the_page_says_what_people_have_to_sign_off_and_how_far_that_is(tab: Page, stage: Stage) -> None:
    asking = TWO_PHASES.replace("offset: T-0", "offset: T-0\n    approval: {count: 2}", 1)
    batch = stage.batch(stage.publish(asking), ["u0", "u1"])
    tab.goto(f"/batches/{batch.id}")
    wanted = tab.locator(".note", has_text="What people sign off")
    expect(wanted).to_contain_text("phase 'cutover': waits for approval: 0 of 2 given")
    expect(wanted).to_contain_text(f"matoolkit approval show {batch.id} cutover")
    for name in ("ann", "bob"):
        Signers(stage).approve(batch, name)
    tab.reload()
    expect(wanted).to_contain_text("phase 'cutover': approved")
    stage.join(batch, HOSTILE[0])
    tab.reload()
    expect(wanted).to_contain_text("approved; 1 member joined since, and waits in the phase for another approval")


def test_g5_the_page_says_which_gates_keep_a_batch(tab: Page, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    tab.goto(f"/batches/{batch.id}")
    expect(tab.get_by_text("Gates that are shut")).to_have_count(0)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="<b>legal hold</b>")
    tab.reload()
    shut = tab.locator(".note", has_text="Gates that are shut")
    expect(shut).to_contain_text("paused by kwu")
    expect(shut).to_contain_text("<b>legal hold</b>")


def test_g2_the_page_says_whom_a_pause_of_one_person_or_worker_keeps(tab: Page, stage: Stage) -> None:
    version = stage.publish(TWO_PHASES)
    batch = stage.batch(version, 2)
    stage.batch_at(version, ["elsewhere"], days=9)
    for subject in (
        Subject(runbook_name="wave", member_key="U1"),
        Subject(runbook_name="wave", member_key="elsewhere"),
        Subject(worker_id="worker-01"),
    ):
        pause(stage.store, stage.bus, subject, by="kwu", reason="legal hold")
    tab.goto(f"/batches/{batch.id}")
    shut = tab.locator(".note", has_text="Gates that are shut").get_by_role("listitem")
    expect(shut).to_have_text([re.compile("^member u1: paused by kwu"), re.compile("^worker worker-01: paused by kwu")])
