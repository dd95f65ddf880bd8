"""A manual batch on pages: template, a file with row errors, what it would make, and phase by phase to its end."""

from collections.abc import Iterable

import pytest
from httpx import Response
from playwright.sync_api import Page, expect

from matoolkit.admin.manual import create_manual_batch
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import BatchFilter, BatchRow, batches_page
from matoolkit.store.exclusions import Exclusion, exclude
from tests.stage import Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

PHASES = """\
phases:
  - name: first
    offset: T-1d
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
  - name: second
    offset: T-0
    steps:
      - {name: two, worker_id: worker-01, function: Custom-Two}
"""
FORM = "/manual-batches/new?runbook=wave"


@pytest.fixture(autouse=True)
def _wave(stage: Stage) -> None:
    stage.publish(PHASES)


def csv(keys: Iterable[str]) -> bytes:
    return ("Email,Name,Start\n" + "".join(f"{key},N,\n" for key in keys)).encode()


def made(store: Store) -> list[BatchRow]:
    with store.reading() as tx:
        return batches_page(tx, BatchFilter(is_manual=True), before=None, limit=10)


def send(visitor: Visitor, path: str, content: bytes, **fields: str) -> Response:
    mark = visitor.get(FORM).text.split('name="csrf" value="')[1].split('"', 1)[0]
    data = {"csrf": mark, "runbook": "wave", **fields}
    return visitor.post(path, data=data, files={"file": ("people.csv", content)})


def mark_in(page: str) -> str:
    return page.split('name="seen" value="')[1].split('"', 1)[0]


def test_from_a_file_to_the_end_in_a_browser(tab: Page, store: Store, stage: Stage) -> None:
    """Rule O13."""
    tab.goto("/manual-batches/new")
    tab.get_by_label("runbook").select_option("wave")
    tab.get_by_role("button", name="Go on").click()
    expect(tab.get_by_label("The template")).to_contain_text("Email,Name,Start")
    file = tab.locator("input[type=file]")
    file.set_input_files({"name": "bad.csv", "mimeType": "text/csv", "buffer": csv(["ada", "", "ada"])})
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.get_by_role("row", name="row 3 'Email' holds no usable key")).to_be_visible()
    expect(tab.get_by_role("row", name="row 4 'ada' is in row 2 too")).to_be_visible()
    assert made(store) == []
    file.set_input_files({"name": "good.csv", "mimeType": "text/csv", "buffer": csv(["ada", "grace"])})
    tab.get_by_role("button", name="Check the rows").click()
    expect(tab.locator("#preview")).to_contain_text("2 members")
    assert made(store) == []
    tab.get_by_label("Reason").fill("pilot")
    tab.get_by_role("button", name="Make a batch of 2 members").click()
    expect(tab.locator(".told")).to_have_text("batch 1 has 2 members; phases: first, second")
    for phase in ("first", "second"):
        tab.get_by_role("link", name="Advance…").click()
        tab.get_by_label("Reason").fill("go")
        tab.get_by_role("button", name=f"Begin {phase} for 2 members").click()
        expect(tab.locator(".told")).to_contain_text(f"batch 1: phase '{phase}' has begun, 2 members, 2 steps")
        stage.run()
    (batch,) = made(store)
    assert batch.status is BatchStatus.COMPLETED
    with store.reading() as tx:
        log = audit_page(tx, limit=3)
    assert [(one.action, one.reason) for one in log] == [
        ("batch.advance", "go"),
        ("batch.advance", "go"),
        ("batch.create", "pilot"),
    ]


def test_who_is_left_out_is_told_with_the_reason(visitor: Visitor, store: Store, stage: Stage) -> None:
    with store.transaction() as tx:
        exclude(tx, Exclusion("wave", "alan", stage.now, "anna", "on leave"))
    create_manual_batch(store, "wave", [{"Email": "grace"}], by="anna")
    page = send(visitor, "/manual-batches/preview", csv(["ada", "grace", "alan"])).text
    assert "<b>1 member</b>" in page
    assert "excluded by a person" in page
    assert "in an unfinished batch of this runbook" in page
    nobody = send(visitor, "/manual-batches/preview", csv(["grace"])).text
    assert "Nobody in the file is free to join" in nobody
    assert "Make a batch" not in nobody.split('id="preview"')[1]


def test_a_file_is_made_a_batch_only_as_it_was_shown(visitor: Visitor, store: Store) -> None:
    mark = mark_in(send(visitor, "/manual-batches/preview", csv(["ada", "grace"])).text)
    other = send(visitor, "/manual-batches", csv(["ada", "alan"]), seen=mark, reason="x")
    assert (other.status_code, "WB409" in other.text) == (409, True)
    create_manual_batch(store, "wave", [{"Email": "grace"}], by="anna")
    taken = send(visitor, "/manual-batches", csv(["ada", "grace"]), seen=mark, reason="x")
    assert taken.status_code == 409
    assert len(made(store)) == 1


def test_without_scripts_a_file_is_sent_with_its_reason(visitor: Visitor, store: Store) -> None:
    refused = send(visitor, "/manual-batches", csv(["ada", ""]), reason="pilot")
    assert (refused.status_code, "AD400" in refused.text) == (400, True)
    assert 'value="pilot"' in refused.text
    assert send(visitor, "/manual-batches", csv(["ada"])).status_code == 422
    done = send(visitor, "/manual-batches", csv(["ada"]), reason="pilot")
    assert done.headers["location"] == f"/batches/{made(store)[0].id}"


def test_what_is_no_csv_is_refused_and_a_missing_file_too(visitor: Visitor) -> None:
    for content, told in ((b"PK\x03\x04....", "not CSV"), (b"Mail;Name\n", "separated by semicolons"), (b"", "empty")):
        page = send(visitor, "/manual-batches/preview", content)
        assert (page.status_code, told in page.text) == (400, True), page.text
    nothing = visitor.send_form("/manual-batches/preview", FORM, runbook="wave")
    assert (nothing.status_code, "WB422" in nothing.text) == (422, True)


def test_hostile_keys_and_columns_are_text(visitor: Visitor) -> None:
    content = b'Email,Name,"<i>Start"\n"<b>ada</b>\x1b[31m",N,\n'
    page = send(visitor, "/manual-batches/preview", content).text
    assert "&lt;b&gt;ada" in page
    for markup in ("<b>ada", "<i>Start", "\x1b"):
        assert markup not in page


def test_a_large_file_is_made_a_batch_in_parts(visitor: Visitor, store: Store) -> None:
    content = csv(f"member-{number}" for number in range(6000))
    seen = send(visitor, "/manual-batches/preview", content).text
    assert "6,000 members" in seen
    assert len(seen) < 60_000
    assert send(visitor, "/manual-batches", content, seen=mark_in(seen), reason="all").status_code == 303
    assert f"batch {made(store)[0].id} has 6,000 members" in visitor.get("/batches").text


def test_a_batch_is_not_advanced_before_its_phase_has_ended(visitor: Visitor, store: Store, stage: Stage) -> None:
    batch = create_manual_batch(store, "wave", [{"Email": "ada"}], by="anna").batch
    path = f"/batches/{batch.id}/advance"
    mark = mark_in(visitor.get(path).text)
    assert visitor.send_form(path, path, reason="go", seen=mark).status_code == 303
    refused = visitor.get(path)
    assert (refused.status_code, "AD411" in refused.text) == (409, True)
    assert "phase &#39;first&#39; has not ended" in refused.text
    stage.run()
    # The mark was for the first phase.
    late = visitor.send_form(path, path, reason="go", seen=mark)
    assert (late.status_code, "WB409" in late.text) == (409, True)
    assert "Phase <bdi>second</bdi> begins now" in visitor.get(path).text


def test_only_manual_batches_are_advanced(visitor: Visitor, stage: Stage) -> None:
    batch = stage.batch(stage.publish(PHASES), 1)
    refused = visitor.get(f"/batches/{batch.id}/advance")
    assert (refused.status_code, "AD410" in refused.text) == (400, True)
