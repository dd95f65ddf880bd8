"""Automation on and off, and a version that is put out of use: what begins or stops is shown first."""

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.publishing import publish, set_automation
from matoolkit.admin.queries import latest_runbook, runbook_status
from matoolkit.clock import VirtualClock
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from tests.documents import document
from tests.stage import Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

PHASES = """\
phases:
  - name: first
    offset: T-0
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
"""


@pytest.fixture
def wave(store: Store, clock: VirtualClock) -> None:
    publish(store, document(), by="anna", now=clock.now())


def mark_in(page: str) -> str:
    return page.split('name="seen" value="')[1].split('"', 1)[0]


def is_on(store: Store) -> bool:
    return runbook_status(store, "wave").automation.automation_enabled


@pytest.mark.usefixtures("wave")
def test_automation_is_turned_on_and_off_in_a_browser(tab: Page, store: Store) -> None:
    """Rule T1."""
    tab.goto("/runbooks/wave")
    tab.get_by_role("link", name="Turn automation on…").click()
    expect(tab.get_by_text("No tick has asked it before")).to_be_visible()
    assert not is_on(store)
    tab.get_by_role("button", name="Turn automation on").click()
    expect(tab.locator(".told")).to_have_text("automation of wave is on")
    assert is_on(store)
    tab.get_by_role("link", name="Turn automation off…").click()
    expect(tab.get_by_text("nobody joins, moves or leaves")).to_be_visible()
    tab.get_by_role("link", name="Not now").click()
    expect(tab.locator("#decision")).to_be_empty()
    tab.get_by_role("link", name="Turn automation off…").click()
    tab.get_by_role("button", name="Turn automation off").click()
    expect(tab.locator(".told")).to_have_text("automation of wave is off")
    assert not is_on(store)
    with store.reading() as tx:
        (off, on) = audit_page(tx, limit=2)
    assert [(one.action, one.actor) for one in (on, off)] == [
        ("automation.enable", "local"),
        ("automation.disable", "local"),
    ]


@pytest.mark.usefixtures("wave")
def test_a_switch_that_is_no_longer_as_shown_is_refused(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    mark = mark_in(visitor.get("/runbooks/wave/automation").text)
    publish(store, document(remark="another"), by="ben", now=clock.now())
    path = "/runbooks/wave/automation"
    refused = visitor.send_form(path, path, on="true", seen=mark)
    assert (refused.status_code, "WB409" in refused.text) == (409, True)
    set_automation(store, "wave", enabled=True, by="ben", now=clock.now())
    assert visitor.send_form(path, path, on="true", seen=mark).status_code == 409
    # What was shown for turning it on says nothing about turning it off.
    assert visitor.send_form(path, path, on="false", seen=mark).status_code == 409
    assert is_on(store)


def test_turning_it_off_says_what_goes_on_and_what_waits(visitor: Visitor, stage: Stage, store: Store) -> None:
    runbook = stage.publish(PHASES)
    stage.hold(stage.batch(runbook, 3))
    stage.batch_at(runbook, ["x"], days=9)
    set_automation(store, "wave", enabled=True, by="anna", now=stage.now)
    page = visitor.get("/runbooks/wave/automation").text
    assert "2 unfinished batches go on" in page
    assert "1 held batch waits: an approval is acted on when automation is on again" in page


@pytest.mark.usefixtures("wave")
def test_a_version_is_put_out_of_use_with_a_reason(visitor: Visitor, store: Store) -> None:
    """Rule V7."""
    path = "/runbooks/wave/versions/1/deactivate"
    assert "no new members are found" in visitor.get(path).text
    assert visitor.send_form(path, path).status_code == 422
    done = visitor.send_form(path, path, reason="wrong query")
    assert done.headers["location"] == "/runbooks/wave"
    page = visitor.get("/runbooks/wave").text
    assert "wave v1 is out of use; batches in flight go on" in page
    assert "no version is active" in page
    with store.reading() as tx:
        assert not latest_runbook(tx, "wave").is_active
        assert audit_page(tx, limit=1)[0].reason == "wrong query"
    again = visitor.send_form(path, "/preferences", reason="again")
    assert (again.status_code, "PB411" in again.text) == (409, True)
    refused = visitor.get("/runbooks/wave/automation")
    assert (refused.status_code, "PB412" in refused.text) == (409, True)
