"""The members of a batch and one member: what it waits for, what was done for it, and what can be done about it."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.memberlook import look_at_member
from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import MemberState, MemberStatus
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchRow
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.web.serving import Site
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES
from tests.stage import WORKER, Failing, Silent, Stage
from tests.web.conftest import Visitor
from tests.web.scenery import HOSTILE

pytestmark = pytest.mark.on("sqlite")

_SHOWN = re.compile(r'name="shown" value="([^"]+)"')
RETRYING = ONE_STEP.replace("params:", "retry: {max_retries: 2, interval: 10m}, params:")
POLLING = ONE_STEP.replace("params:", "poll: {interval: 5m, timeout: 2h}, params:")
REMOVING = """
on_member_removed:
  - {name: tidy, worker_id: worker-01, function: Tidy, params: {Email: '{{Email}}'}}
"""


def failing_for(*keys: str) -> Callable[[WorkerJob], object]:
    return lambda job: Failing("over quota", "QuotaExceeded") if job.parameters["Email"] in keys else None


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    """A batch in whose cutover u0 has failed; u1 went through."""
    batch = stage.batch(stage.publish(TWO_PHASES + REMOVING), 2)
    stage.answers["Move"] = failing_for("u0")
    stage.due(batch, "prepare", "cutover")
    stage.run()
    return batch


def path_of(stage: Stage, batch: BatchRow, key: str = "u0") -> str:
    return f"/batches/{batch.id}/members/{stage.member(batch, key).id}"


def decided(visitor: Visitor, path: str, **fields: Any) -> Any:
    """Look at a preview, and send its form."""
    query = "&".join(f"{name}={value}" for name, value in fields.items() if name != "reason")
    (mark,) = _SHOWN.findall(visitor.get(f"{path}?{query}").text)
    return visitor.send_form(path, shown=mark, **fields)


def outlook(stage: Stage, batch: BatchRow, key: str = "u0") -> tuple[list[str], list[str]]:
    seen = look_at_member(stage.store, batch.id, stage.member(batch, key).id)
    return [why.sentence for why in seen.explained.whys], [one.text for one in seen.following]


def test_the_page_tells_why_a_member_stands_still_and_what_was_done(
    visitor: Visitor, stage: Stage, batch: BatchRow
) -> None:
    shown = visitor.get(path_of(stage, batch)).text
    assert "Why it stands still" in shown
    assert "cutover/move failed at the first attempt: over quota" in shown
    assert shown.index("create") < shown.index("QuotaExceeded")
    assert "Retry…" in shown


def test_what_it_waits_for_before_its_phase_is_due(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    assert outlook(stage, batch)[0][0].startswith("prepare is due")
    stage.due(batch, "prepare")
    stage.run()
    assert outlook(stage, batch) == (["cutover is not due"], ["cutover, due", "check, due"])


def test_a_job_that_is_out_is_what_it_waits_for(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.answers["Move"] = Silent()
    stage.due(batch, "prepare", "cutover")
    stage.run()
    waits, following = outlook(stage, batch)
    assert waits[0] == f"the job of cutover/move is out at {WORKER}"
    assert following[0] == "cutover: finish"


def test_a_retry_to_come_is_what_it_waits_for(stage: Stage) -> None:
    batch = stage.batch(stage.publish(RETRYING), 1)
    stage.answers["Create"] = Failing("no answer")
    stage.due(batch, "prepare")
    stage.run()
    (why,) = look_at_member(stage.store, batch.id, stage.member(batch).id).explained.whys
    assert (why.sentence, why.detail) == (
        "prepare/create did not succeed, and is tried again",
        "attempt 1: no answer",
    )
    assert why.until == stage.now + timedelta(minutes=10)


def test_a_poll_to_come_is_what_it_waits_for(stage: Stage) -> None:
    batch = stage.batch(stage.publish(POLLING), 1)
    stage.answers["Create"] = {"complete": False}
    stage.due(batch, "prepare")
    stage.run()
    waits, _ = outlook(stage, batch)
    assert waits == [f"prepare/create is not done; {WORKER} is asked again"]


def test_a_held_batch_is_what_it_waits_for(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.hold(batch)
    waits, _ = outlook(stage, batch)
    assert "held until a person approves: too many are gone" in waits


def test_one_that_is_done_waits_for_nothing(stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP), 1)
    stage.due(batch, "prepare")
    stage.run()
    assert outlook(stage, batch)[0] == ["the batch is completed"]


def test_one_that_left_says_so(stage: Stage, batch: BatchRow) -> None:
    stage.leave(batch, "u1")
    stage.run()
    assert "it has left: gone" in outlook(stage, batch, "u1")[0]


def test_a_member_moves_while_its_page_is_open_and_is_retried_there(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(path_of(stage, batch))
    tab.get_by_role("link", name="Retry…").click()
    tab.get_by_label("Reason").fill("quota raised")
    tab.get_by_role("button", name="Retry 1 member").click()
    expect(tab.locator(".told")).to_contain_text("1 member of batch")
    expect(tab.locator("h1")).to_have_text("u0")
    stage.answers["Move"] = None
    stage.run()
    expect(tab.locator("main")).to_contain_text("check, due")


def test_older_epochs_are_kept_folded(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    path = f"/batches/{batch.id}/retry"
    decided(visitor, path, member=stage.member(batch).id, begin_with="prepare", reason="from the start")
    stage.run()
    shown = visitor.get(path_of(stage, batch)).text
    assert "<summary>Epoch 1" in shown
    assert "epoch 2" in shown


def test_a_member_is_excluded_and_what_was_done_is_undone(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(path_of(stage, batch, "u1"))
    tab.get_by_role("link", name="Exclude…").click()
    form = tab.locator("form.decide")
    expect(form).to_contain_text(f"It leaves batch {batch.id}")
    form.get_by_label("undo what was done").check()
    expect(form).to_contain_text("version 1 runs tidy")
    form.get_by_label("Reason").fill("left the company")
    form.get_by_role("button", name="Exclude it and undo it").click()
    expect(tab.locator(".told")).to_contain_text("is excluded from wave")
    expect(tab.locator("main")).to_contain_text("left the company")
    stage.run()
    assert "Tidy" in stage.functions()


def test_a_member_is_undone(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    member = stage.member(batch, "u1")
    answer = decided(visitor, f"/batches/{batch.id}/undo", member=member.id, reason="wrong wave")
    assert (answer.status_code, answer.headers["location"]) == (303, path_of(stage, batch, "u1"))
    assert stage.member(batch, "u1").undone_at is not None
    with stage.store.reading() as tx:
        (entry,) = audit_page(tx, batch_id=batch.id)
    assert (entry.action, entry.actor, entry.reason) == ("batch.undo", "local", "wrong wave")


def test_a_member_of_a_manual_batch_is_removed(visitor: Visitor, stage: Stage) -> None:
    stage.publish(ONE_STEP + REMOVING)
    rows = [{"Email": "ada", "Name": "Ada"}, {"Email": "bob", "Name": "Bob"}]
    batch = create_manual_batch(stage.store, "wave", rows, by="anna").batch
    (ada, _) = stage.members(batch)
    answer = decided(visitor, f"/batches/{batch.id}/members/{ada.id}/remove", reason="not hers")
    assert answer.status_code == 303
    assert stage.member(batch, ada.member_key).status is MemberStatus.REMOVED


def test_an_unknown_member_is_refused_with_a_hint(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    for path in (f"/batches/{batch.id}/members/999", f"/batches/{batch.id}/members/999/exclude"):
        answer = visitor.get(path)
        assert (answer.status_code, "AD407" in answer.text) == (404, True)
        assert "look at the list of its members" in answer.text


def test_w8_secret_columns_are_masked(visitor: Visitor, stage: Stage) -> None:
    with stage.store.transaction() as tx:
        secret = '[{"name": "Email", "type": "str", "mandatory": true, "is_secret": true}]'
        announce_functions(tx, WORKER, [AnnouncedFunction("Create", secret)], stage.now)
    batch = stage.batch(stage.publish(ONE_STEP), ["ada"])
    stage.refresh(batch, "ada", {"Email": "hunter2", "Name": "Ada"})
    shown = visitor.get(path_of(stage, batch, "ada")).text
    assert "hunter2" not in shown
    assert "secret, never shown" in shown


def test_hostile_names_are_texts(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), list(HOSTILE))
    stage.answers["Move"] = Failing("<script>alert(1)</script>\x1b[31m\u202e")
    stage.due(batch, "prepare", "cutover")
    stage.run()
    paths = [f"/batches/{batch.id}/members", *(path_of(stage, batch, key) for key in HOSTILE)]
    for path in [*paths, f"{paths[1]}/exclude", f"/batches/{batch.id}/undo?who=everybody"]:
        answer = visitor.get(path)
        assert answer.status_code == 200
        assert not re.search("<script>alert|<b>bold|\x1b|\u202e", answer.text)


def test_the_list_is_filtered_over_everybody_and_cut_by_key(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    many = stage.batch(stage.publish(ONE_STEP, "many"), 120)
    first = visitor.get(f"/batches/{many.id}/members").text
    assert "120 of 120" in first
    assert "u49<" in first
    assert "u50<" not in first
    (following,) = re.findall(r'href="([^"]+)" rel="next"', first)
    assert "u50<" in visitor.get(following.replace("&amp;", "&")).text
    assert "11 of 120" in visitor.get(f"/batches/{many.id}/members?key=U11&state=waiting").text
    failed = visitor.get(f"/batches/{batch.id}/members?state={MemberState.FAILED}").text
    assert "1 of 2" in failed
    (like,) = re.findall(r'<option value="(\d+)"', failed)
    assert "1 of 2" in visitor.get(f"/batches/{batch.id}/members?like={like}").text


def test_the_list_is_a_file_too(visitor: Visitor, batch: BatchRow) -> None:
    lines = visitor.get(f"/batches/{batch.id}/members.csv?state=failed").text.splitlines()
    assert lines[0].startswith("id,member_key,status,epoch")
    assert [line.split(",")[1:3] for line in lines[1:]] == [["u0", "failed"]]


def test_pages_of_members_take_the_same_number_of_statements_for_few_and_for_many(
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counted = []
    for many in (10, 300):
        batch = stage.batch(stage.publish(TWO_PHASES, f"wave-{many}"), many)
        stage.due(batch, "prepare")
        stage.run()
        found = []
        for path in (f"/batches/{batch.id}/members", path_of(stage, batch), f"/batches/{batch.id}/undo?who=everybody"):
            visitor.get(path)
            site.looks.forget()
            statements()
            assert len(visitor.get(path).content) < 60_000
            found.append(len(statements()))
        counted.append(found)
    assert counted[0] == counted[1]
