"""What needs a person, on pages: dead letters, failed undo steps, workers, and what people decided about them."""

import csv
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.workforce import look_at_workers
from matoolkit.domain.states import DeadLetterStatus
from matoolkit.store.audit import audit_page
from matoolkit.store.deadletters import dead_letters_page
from matoolkit.store.undofailures import count_undo_failures, undo_causes, undo_steps_like
from matoolkit.web.differences import differences
from matoolkit.web.serving import Site
from tests.orchestrator.runbooks import ONE_STEP, WITH_ROLLBACK
from tests.stage import WORKER, Failing, Stage
from tests.web.conftest import Visitor
from tests.web.furnished import HOSTILE, Furnished, furnish

pytestmark = pytest.mark.on("sqlite")

PAGES = ("/dead-letters", "/dead-letters/1", "/undo-failures", "/workers", "/audit")


@pytest.fixture
def furnished(stage: Stage) -> Furnished:
    return furnish(stage)


def letters(stage: Stage, status: DeadLetterStatus = DeadLetterStatus.OPEN) -> list[int]:
    with stage.store.reading() as tx:
        return [letter.id for letter in dead_letters_page(tx, status=status)]


def rows(visitor: Visitor, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(visitor.get(path).text.splitlines()))


def test_m7_a_dead_letter_is_found_read_and_discarded(tab: Page, stage: Stage, furnished: Furnished) -> None:
    tab.goto("/dead-letters")
    expect(tab.locator("tbody tr")).to_have_count(2)
    tab.get_by_role("link", name="1", exact=True).click()
    expect(tab.get_by_label("Content")).to_contain_text('"JobId": "step-')
    tab.get_by_role("link", name="Discard it…").click()
    tab.get_by_label("Reason").fill("nonsense")
    tab.get_by_role("button", name="Discard it").click()
    expect(tab.get_by_role("status")).to_have_text("Dead letter 1 is discarded.")
    expect(tab.locator("tbody tr")).to_have_count(1)
    assert (letters(stage), letters(stage, DeadLetterStatus.DISCARDED)) == ([2], [1])


def test_m7_a_dead_job_is_tried_again_as_its_step(tab: Page, stage: Stage, furnished: Furnished) -> None:
    tab.goto("/dead-letters/1")
    tab.get_by_role("link", name="Try its work again…").click()
    tab.get_by_label("Reason").fill("the worker is well again")
    tab.get_by_role("button", name="Try its work again").click()
    expect(tab.get_by_role("status")).to_contain_text("Dead letter 1 was tried again: step-")
    assert letters(stage) == [2]
    stage.answers["Create"] = {"Id": "1"}
    stage.run()
    assert [step.status for step in stage.steps(furnished.buried)] == ["succeeded", "failed"]


def test_m7_a_letter_that_another_person_resolved_is_refused_and_the_form_stays(
    tab: Page, stage: Stage, furnished: Furnished, visitor: Visitor
) -> None:
    tab.goto("/dead-letters/1")
    tab.get_by_role("link", name="Discard it…").click()
    tab.get_by_label("Reason").fill("too late")
    visitor.send_form("/dead-letters/1/discard", reason="first")
    tab.get_by_role("button", name="Discard it").click()
    expect(tab.locator("form .refused")).to_contain_text("AD415")
    expect(tab.get_by_label("Reason")).to_have_value("too late")


def test_o9_undo_steps_are_tried_again_by_their_cause(tab: Page, stage: Stage, furnished: Furnished) -> None:
    tab.goto("/undo-failures")
    expect(tab.locator(".causes")).to_contain_text("<i>cannot</i>")
    tab.get_by_role("link", name="Retry 6…").click()
    expect(tab.locator("#retry")).to_contain_text("6 failed undo steps of batch")
    tab.get_by_label("Reason").fill("the licences are back")
    tab.get_by_role("button", name="Retry 6 undo steps").click()
    expect(tab.get_by_role("status")).to_contain_text("6 failed undo steps run again")
    expect(tab.locator("#main")).to_contain_text("No step that was to undo something has failed")
    with stage.store.reading() as tx:
        assert count_undo_failures(tx) == 0
        assert audit_page(tx, batch_id=furnished.undone.id)[0].reason == "the licences are back"


def test_o9_what_failed_for_another_cause_is_not_tried_again(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), ["ada", "grace", "alan"])
    stage.answers.update(Create={"Id": "1"}, License=Failing())
    stage.answers["Unlicense"] = lambda job: Failing("away" if "ada" in str(job) else "forbidden")
    stage.due(batch, "prepare")
    stage.run()
    with stage.store.reading() as tx:
        causes = undo_causes(tx)
        assert [(cause.error, cause.steps, cause.members) for cause in causes] == [("forbidden", 2, 2), ("away", 1, 1)]
        alone = undo_steps_like(tx, causes[1].example_id)
    assert alone == [causes[1].example_id]
    seen = f"/undo-failures/retry?batch={batch.id}&like={alone[0]}"
    shown_as = visitor.get(seen).text.split('name="shown_as" value="')[1].split('"')[0]
    sent: dict[str, Any] = {"batch": batch.id, "like": alone[0], "reason": "it is back", "shown_as": shown_as}
    assert "WB409" in visitor.send_form("/undo-failures/retry", **{**sent, "like": ""}).text
    assert visitor.send_form("/undo-failures/retry", **sent).status_code == 303
    assert len(rows(visitor, f"/undo-failures.csv?batch={batch.id}")) == 2
    assert "WB409" in visitor.send_form("/undo-failures/retry", **{**sent, "like": causes[0].example_id}).text


def test_w6_workers_say_what_they_can_do_and_what_is_missing(visitor: Visitor, stage: Stage) -> None:
    furnish(stage)
    batch = stage.batch(stage.publish(ONE_STEP, "busy"), 2)
    stage.due(batch, "prepare")
    stage.handle()
    page = visitor.get("/workers").text
    assert "License" in page
    assert ", secret" in page
    missing = {(one.runbook_name, one.worker_id): one.function_names for one in look_at_workers(stage.store).missing}
    assert missing[("moving", WORKER)] == ["Move", "Finish", "Test"]
    assert ("busy", WORKER) not in missing
    (worker,) = look_at_workers(stage.store).workers
    assert worker.out is not None
    assert (worker.id, worker.out.jobs, worker.silent) == (WORKER, 2, None)
    assert [(row["function"], row["secret"]) for row in rows(visitor, "/workers.csv")] == [
        ("Create", "no"),
        ("License", "yes"),
    ]
    stage.clock.advance(timedelta(minutes=10))
    assert [worker.silent is not None for worker in look_at_workers(stage.store).workers] == [True]
    stage.work()
    stage.handle()
    assert look_at_workers(stage.store).workers[0].out is None


def test_a5_what_people_decided_is_listed_with_filters_and_reasons(
    visitor: Visitor, stage: Stage, furnished: Furnished
) -> None:
    visitor.send_form("/dead-letters/1/discard", reason="<b>nonsense</b>")
    key = stage.reload(furnished.held).hold_key
    visitor.send_form(f"/holds/{furnished.held.id}/cancel", key=key, reason="called off")
    page = visitor.get("/audit").text
    assert "&lt;b&gt;nonsense&lt;/b&gt;" in page
    assert "<del><bdi>active</bdi></del> → <ins><bdi>cancelled</bdi></ins>" in page
    assert [row["reason"] for row in rows(visitor, "/audit.csv")] == ["called off", "<b>nonsense</b>"]
    for query, reasons in {
        "subject_type=dead_letter": ["<b>nonsense</b>"],
        f"batch={furnished.held.id}": ["called off"],
        "who=local": ["called off", "<b>nonsense</b>"],
        "who=nobody": [],
        "runbook=waves&subject_type=": ["called off"],
    }.items():
        assert [row["reason"] for row in rows(visitor, f"/audit.csv?{query}")] == reasons
    assert "matoolkit audit list --runbook waves --who local" in visitor.get("/audit?runbook=waves&who=local").text


def test_differences_are_the_values_that_changed() -> None:
    found = differences('{"status": "active", "same": 1, "gone": null}', '{"status": "cancelled", "same": 1, "n": [2]}')
    assert [(one.name, one.before, one.after) for one in found.shown] == [
        ("status", "active", "cancelled"),
        ("gone", "null", None),
        ("n", None, "[2]"),
    ]
    assert differences(None, None).shown == []


def test_lists_are_cut_and_their_cost_does_not_grow(
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counts = []
    for members in (1, 130):
        stage.answers.update(Create={"Id": "1"}, License=Failing(), Unlicense=Failing("cannot"))
        batch = stage.batch(
            stage.publish(WITH_ROLLBACK, f"undone-{members}"), [f"x{members}-{n}" for n in range(members)]
        )
        stage.due(batch, "prepare")
        stage.run()
        for path in ("/undo-failures", "/dead-letters", "/workers", "/audit"):
            visitor.get(path)
            site.looks.forget()
            statements()
            answer = visitor.get(path)
            counts.append((path, len(statements())))
            assert len(answer.content) < 60_000
    assert counts[:4] == counts[4:]
    first = visitor.get("/undo-failures").text
    following = first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    assert visitor.get(following).status_code == 200
    assert len(rows(visitor, "/undo-failures.csv")) == 131


@pytest.mark.parametrize("path", PAGES)
def test_hostile_names_are_text(visitor: Visitor, furnished: Furnished, path: str) -> None:
    visitor.send_form("/dead-letters/2/discard", reason=HOSTILE[0])
    page = visitor.get(path).text
    assert "<script>document" not in page
    assert "<b>worker</b>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
