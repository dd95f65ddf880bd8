"""Publishing on a page: a document is checked, what it would do is shown, and only that is done."""

from typing import Any

import pytest
from httpx import Response
from playwright.sync_api import Page, expect

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject
from matoolkit.admin.publishing import publish
from matoolkit.admin.queries import latest_runbook
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import OverdueBehavior
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.automation import automation_of
from matoolkit.store.runbooks import RunbookRow, runbook_versions
from tests.documents import PHASES, document
from tests.stage import Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

STAGED = """\
phases:
  - name: first
    offset: T-5d
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
  - name: second
    offset: T-0
    steps:
      - {name: two, worker_id: worker-01, function: Custom-Two}
"""


@pytest.fixture
def wave(store: Store, clock: VirtualClock) -> None:
    publish(store, document(), by="anna", now=clock.now())


def versions(store: Store, name: str = "wave") -> list[RunbookRow]:
    with store.reading() as tx:
        return runbook_versions(tx, name)


def mark_in(page: str) -> str:
    return page.split('name="seen" value="')[1].split('"', 1)[0]


def sent(visitor: Visitor, text: str, address: str = "/publications", **fields: Any) -> Any:
    return visitor.send_form(address, "/publications/new", text=text, **fields)


@pytest.mark.usefixtures("wave")
def test_a_document_is_corrected_checked_and_published(tab: Page, store: Store) -> None:
    """Rule V1."""
    tab.goto("/runbooks/wave")
    tab.get_by_role("link", name="Publish…").click()
    text = tab.locator("textarea")
    expect(text).to_have_value(document())
    text.fill(document().replace("offset: T-0", "offste: T-0"))
    tab.get_by_role("button", name="Check").click()
    expect(tab.locator(".doc u.error", has_text="offste")).to_be_visible()
    expect(tab.locator(".find.fail", has_text="'offste'")).to_contain_text("RB101")
    expect(tab.get_by_text("It cannot be published")).to_be_visible()
    expect(tab.get_by_role("button", name="Publish")).to_have_count(0)
    text.fill(document({**PHASES, "cutover": "T+1h"}))
    tab.get_by_role("button", name="Check").click()
    expect(tab.get_by_text("phase cutover")).to_be_visible()
    expect(tab.get_by_text("from T-0 to T+1h")).to_be_visible()
    expect(tab.get_by_text("No batch is in flight")).to_be_visible()
    assert [row.version for row in versions(store)] == [1]
    tab.get_by_role("button", name="Publish v2").click()
    expect(tab.locator(".told")).to_have_text("published wave v2, 0 batches in flight")
    expect(tab.locator("h1 + .st")).to_have_text("v2 active")
    (new, _) = versions(store)
    assert (new.version, new.is_active, new.yaml_content) == (2, True, document({**PHASES, "cutover": "T+1h"}))
    with store.reading() as tx:
        (entry, _) = audit_page(tx, before=None, limit=2)
    assert (entry.action, entry.actor) == ("runbook.publish", "local")


@pytest.mark.usefixtures("wave")
def test_an_uploaded_file_becomes_the_text_of_the_form(tab: Page, store: Store) -> None:
    tab.goto("/publications/new?runbook=wave")
    given = document(remark="uploaded").encode()
    tab.locator("input[type=file]").set_input_files({"name": "w.yaml", "mimeType": "text/yaml", "buffer": given})
    tab.get_by_role("button", name="Check").click()
    expect(tab.locator("textarea")).to_have_value(given.decode())
    tab.get_by_role("button", name="Publish v2").click()
    expect(tab.locator(".told")).to_contain_text("published wave v2")
    assert versions(store)[0].yaml_content == given.decode()


@pytest.mark.usefixtures("wave")
def test_a_refused_document_stays_in_the_form(tab: Page) -> None:
    tab.goto("/publications/new?runbook=wave")
    tab.locator("textarea").fill(document(name="other"))
    tab.get_by_role("button", name="Check").click()
    expect(tab.locator("form .refused")).to_contain_text("PB422")
    expect(tab.locator("textarea")).to_have_value(document(name="other"))


@pytest.mark.usefixtures("wave")
def test_what_was_not_shown_is_not_published(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    mark = mark_in(sent(visitor, document(remark="shown"), "/publications/check", runbook="wave").text)
    for text, options in (
        (document(remark="another"), {}),
        (document(remark="shown"), {"overdue": "ignore"}),
        (document(remark="shown"), {"enable": "true"}),
    ):
        refused = sent(visitor, text, runbook="wave", seen=mark, **options)
        assert (refused.status_code, "WB409" in refused.text) == (409, True)
        assert "another" in refused.text or "shown" in refused.text
    assert len(versions(store)) == 1
    publish(store, document(remark="meanwhile"), by="ben", now=clock.now())
    assert sent(visitor, document(remark="shown"), runbook="wave", seen=mark).status_code == 409
    assert len(versions(store)) == 2


def test_the_dry_run_says_what_happens_to_each_batch(visitor: Visitor, stage: Stage, store: Store) -> None:
    """Rules V2 and V4."""
    first = stage.publish(STAGED)
    batch = stage.batch(first, 3)
    stage.due(batch, "first")
    stage.run()
    text = first.yaml_content.replace("Custom-Two", "Custom-Three")
    seen = sent(visitor, text, "/publications/check", runbook="wave").text
    assert "first would run again in batch 1" in seen
    assert "run again: first" in seen
    assert "Publish v2, and run them again" in seen
    ignoring = sent(visitor, text, "/publications/check", runbook="wave", overdue="ignore").text
    assert "would run again" not in ignoring
    done = sent(visitor, text, runbook="wave", overdue="ignore", seen=mark_in(ignoring))
    assert done.status_code == 303
    assert versions(store)[0].overdue_behavior is OverdueBehavior.IGNORE


def test_k6_the_dry_run_says_what_a_freeze_keeps_for_ever(visitor: Visitor, stage: Stage) -> None:
    phases = "".join(
        f"  - {{name: p{n}, offset: T-0, steps: [{{name: s, worker_id: w, function: C}}]}}\n" for n in range(12)
    )
    first = stage.publish(f"phases:\n{phases}")
    stage.batch(first, 3)
    shut_freeze(stage.store, Subject(), by="anna", reason="<b>for good</b>")
    seen = sent(visitor, first.yaml_content + "# another\n", "/publications/check", runbook="wave").text
    assert seen.count("would never begin: freeze 1: &lt;b&gt;for good&lt;/b&gt;") == 10
    assert "and 2 phases more that freezes and windows keep too long" in seen


def test_a_new_runbook_is_published_and_switched_on(visitor: Visitor, store: Store) -> None:
    seen = sent(visitor, document(name="fresh"), "/publications/check", enable="true").text
    assert "A new runbook" in seen
    done = sent(visitor, document(name="fresh"), enable="true", seen=mark_in(seen))
    assert done.headers["location"] == "/runbooks/fresh"
    with store.reading() as tx:
        automation = automation_of(tx, "fresh")
        assert latest_runbook(tx, "fresh").version == 1
    assert automation is not None
    assert automation.automation_enabled


@pytest.mark.usefixtures("wave")
def test_strictly_a_warning_refuses_a_document(visitor: Visitor, store: Store) -> None:
    text = document().replace("{{email}}", "{{emial}}", 1)
    seen = sent(visitor, text, "/publications/check").text
    assert "Publish v2" in seen
    assert '<u class="warning">' in seen
    strict = sent(visitor, text, "/publications/check", strict="true").text
    assert "It cannot be published" in strict
    assert "Publish v2" not in strict
    assert sent(visitor, text, strict="true", seen=mark_in(seen)).status_code == 409
    assert len(versions(store)) == 1


@pytest.mark.usefixtures("wave")
def test_hostile_text_in_a_draft_is_text(visitor: Visitor) -> None:
    comment = "# <img src=x onerror=alert(1)></textarea><script>alert(1)</script>"
    text = f"{comment}\n{document(remark='<b>x</b>')}\nodd<i>: 1\n"
    for body in (text, text.replace("\nodd<i>: 1\n", "")):
        page = sent(visitor, body, "/publications/check").text
        for markup in ("<img", "<script>alert", "<b>x", "<i>"):
            assert markup not in page


def uploaded(visitor: Visitor, name: str, content: bytes, text: str = "") -> Response:
    mark = visitor.get("/publications/new").text.split('name="csrf" value="')[1].split('"', 1)[0]
    fields = {"csrf": mark, "text": text}
    return visitor.post("/publications/check", data=fields, files={"file": (name, content)})


def test_a_text_that_is_too_long_is_refused_clearly(visitor: Visitor) -> None:
    refused = uploaded(visitor, "", b"", "# x" * MAX_BYTES)
    assert (refused.status_code, "AP413" in refused.text) == (413, True)
    assert "1,048,576 bytes" in refused.text
    assert "RB003" in uploaded(visitor, "big.yaml", b"# x\n" * MAX_BYTES).text


@pytest.mark.usefixtures("wave")
def test_a_file_that_is_not_text_keeps_what_was_typed(visitor: Visitor) -> None:
    page = uploaded(visitor, "w.yaml", b"name: \xff\n", "typed: 1").text
    assert "RB001" in page
    assert "typed: 1</textarea>" in page


@pytest.mark.usefixtures("wave")
def test_versions_are_compared_in_words_and_line_by_line(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    phases = {"prepare": "T-5d", "cutover": "T+1h", "tidy": "T+3d"}
    publish(store, document(phases, init=True), by="ben", now=clock.now())
    page = visitor.get("/runbooks/wave/versions/2/changes?since=1").text
    for subject, told in (
        ("init: announce", "calls Set-EntraUserEnabled"),
        ("phase cutover", "from T-0 to T+1h"),
        ("phase tidy", "was verify; to batches in flight it is another phase"),
        ("phase tidy", "from T+2h to T+3d"),
    ):
        assert f"<b><bdi>{subject}</bdi></b> <bdi>{told}</bdi>" in page
    assert '<li class="new" value="' in page
    assert "offset: T+3d</ins>" in page
    assert visitor.get("/runbooks/wave/versions/2/changes?since=9").status_code == 404
