"""Pages that are looked at stay true: what changes is sent, once for all who watch."""

import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from matoolkit.admin.looking import BatchLook
from matoolkit.errors import StoreUnavailable
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.store.batches import BatchRow
from matoolkit.web.looking import Looks
from matoolkit.web.serving import Site
from tests.servers.pages import serving_pages
from tests.stage import Stage
from tests.waiting import until
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

WATCHERS = 30
TWO_PHASES = """\
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


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    return stage.batch(stage.publish(TWO_PHASES), ["ada", "grace", "alan"])


def finish(stage: Stage, batch: BatchRow) -> None:
    stage.due(batch, "first", "second")
    stage.run()


def test_a_batch_moves_while_the_page_is_open(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("[data-figure=waiting]")).to_have_text("3")
    expect(tab.locator("#live")).to_contain_text("live")
    finish(stage, batch)
    expect(tab.locator("[data-figure=done]")).to_have_text("3")


def test_a_paused_page_stands_still_and_goes_on(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#live")).to_contain_text("live")
    tab.get_by_role("button", name="pause").click()
    expect(tab.locator("#live")).to_contain_text("paused")
    finish(stage, batch)
    expect(tab.locator("[data-figure=waiting]")).to_have_text("3")
    tab.get_by_role("button", name="go on").click()
    expect(tab.locator("[data-figure=done]")).to_have_text("3")


def test_a_dropped_connection_is_said_and_made_again(
    tab: Page, context: BrowserContext, stage: Stage, batch: BatchRow
) -> None:
    tab.clock.install()
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#live")).to_contain_text("live")
    context.route("**/live/**", lambda route: route.abort())
    tab.evaluate("window.matoolkitEvents.close()")
    tab.clock.run_for(35_000)
    expect(tab.locator("#live")).to_contain_text("no answer for 35 s")
    tab.clock.run_for(30_000)
    expect(tab.get_by_role("status")).to_contain_text("The server has not answered for a minute")
    finish(stage, batch)
    context.unroute("**/live/**")
    tab.evaluate("window.matoolkitEvents.open()")
    expect(tab.locator("[data-figure=done]")).to_have_text("3")
    expect(tab.get_by_role("status")).to_have_count(0)


def test_a_stream_that_ends_is_opened_again_by_the_page(
    browser: Any, site: Site, stage: Stage, batch: BatchRow
) -> None:
    with listening("127.0.0.1", 0) as place:
        port = port_of(place)
    context = browser.new_context()
    with ExitStack() as first:
        first.enter_context(serving_pages(site, port))
        tab = context.new_page()
        tab.goto(f"http://127.0.0.1:{port}/batches/{batch.id}")
        expect(tab.locator("#live")).to_contain_text("live")
    finish(stage, batch)
    with serving_pages(site, port):
        expect(tab.locator("[data-figure=done]")).to_have_text("3", timeout=15_000)
        context.close()


def test_what_somebody_is_at_work_in_is_not_replaced(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#live")).to_contain_text("live")
    tab.locator(".legend a").first.focus()
    finish(stage, batch)
    expect(tab.get_by_role("button", name="1 change, show")).to_be_visible()
    expect(tab.locator("[data-figure=waiting]")).to_have_text("3")
    tab.get_by_role("button", name="1 change, show").click()
    expect(tab.locator("[data-figure=done]")).to_have_text("3")


def test_where_answers_cannot_be_streamed_a_page_asks_again(
    browser: Any, site: Site, stage: Stage, batch: BatchRow
) -> None:
    with serving_pages(replace(site, streams=False)) as address:
        context = browser.new_context(base_url=address)
        tab = context.new_page()
        tab.clock.install()
        tab.goto(f"/batches/{batch.id}")
        expect(tab.locator("#live")).to_contain_text("as of")
        finish(stage, batch)
        tab.clock.run_for(5_100)
        expect(tab.locator("[data-figure=done]")).to_have_text("3")
        context.close()


class Reader(threading.Thread):
    """Somebody who watches, and keeps what was sent."""

    def __init__(self, address: str, path: str) -> None:
        super().__init__(daemon=True)
        self._url = f"{address}{path}"
        self.sent = ""
        self.has_ended = False

    def run(self) -> None:
        with httpx.stream("GET", self._url, timeout=30) as answer:
            for piece in answer.iter_text():
                self.sent += piece
        self.has_ended = True


@pytest.fixture
def readers(address: str, batch: BatchRow) -> list[Reader]:
    found = [Reader(address, f"/live/batch/{batch.id}") for _ in range(WATCHERS)]
    for reader in found:
        reader.start()
    until(lambda: all(reader.sent for reader in found))
    return found


def test_all_who_watch_a_batch_cost_one_look(
    readers: list[Reader], stage: Stage, batch: BatchRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    look = Looks.batch

    def counted(self: Looks, number: int) -> BatchLook:
        looks.append(number)
        return look(self, number)

    monkeypatch.setattr(Looks, "batch", counted)
    finish(stage, batch)
    until(lambda: all('data-figure="done">3' in reader.sent for reader in readers))
    taken = len(looks)
    until(lambda: len(looks) > taken + 2)
    assert len({reader.sent.count("event: head") for reader in readers}) <= 3
    assert len(looks) < WATCHERS


def test_a_database_that_is_away_makes_pages_old_and_ends_no_stream(
    readers: list[Reader], stage: Stage, batch: BatchRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    def away(_: Looks, number: int) -> Any:
        failed.append(number)
        raise StoreUnavailable("the database cannot be reached")

    with monkeypatch.context() as outage:
        outage.setattr(Looks, "batch", away)
        until(lambda: len(failed) > 2)
    finish(stage, batch)
    until(lambda: all('data-figure="done">3' in reader.sent for reader in readers))


def test_a_bug_in_a_look_is_logged_once_and_ends_no_stream(
    readers: list[Reader],
    stage: Stage,
    batch: BatchRow,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failed: list[int] = []

    def broken(_: Looks, number: int) -> Any:
        failed.append(number)
        raise KeyError("a bug")

    with monkeypatch.context() as fault:
        fault.setattr(Looks, "batch", broken)
        until(lambda: len(failed) > 2)
    finish(stage, batch)
    until(lambda: all('data-figure="done">3' in reader.sent for reader in readers))
    told = [one.message for one in caplog.records if one.name == "matoolkit.web.live"]
    assert told == [f"looking at batch/{batch.id} for those who watch it failed"]


def test_others_are_served_while_a_topic_is_looked_up(
    visitor: Visitor, address: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that takes its time holds up the one who asked, and nobody else."""
    stage.publish(TWO_PHASES, "wave")
    entered, leave = threading.Event(), threading.Event()

    def slow(*_: Any) -> Any:
        entered.set()
        leave.wait(20)
        raise StoreUnavailable("the database cannot be reached")

    monkeypatch.setattr("matoolkit.web.pages.runbook.latest_runbook", slow)
    reader = Reader(address, "/live/runbook/wave")
    reader.start()
    assert entered.wait(20)
    try:
        assert visitor.get("/preferences", timeout=10).status_code == 200
    finally:
        leave.set()
    reader.join(20)
    assert reader.has_ended


def test_a_server_that_stops_ends_its_streams(site: Site, batch: BatchRow) -> None:
    with serving_pages(site) as address:
        reader = Reader(address, f"/live/batch/{batch.id}")
        reader.start()
        until(lambda: "event: head" in reader.sent)
    reader.join(10)
    assert reader.has_ended


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/live/batch/77", 404),
        ("/live/batch/x", 422),
        (f"/live/batch/{'9' * 5000}", 422),
        (f"/live/member/1-{'9' * 5000}", 422),
        (f"/live/now/{'9' * 5000}", 422),
        ("/live/nothing/1", 404),
        ("/live/batch/1?part=nothing", 404),
    ],
    ids=lambda given: str(given)[:20],
)
def test_what_is_not_there_cannot_be_watched(visitor: Visitor, batch: BatchRow, path: str, status: int) -> None:
    assert visitor.get(path, headers={"HX-Request": "true"}).status_code == status


def test_no_mark_of_a_form_is_in_what_many_people_get(visitor: Visitor, readers: list[Reader]) -> None:
    assert 'name="csrf"' in visitor.get("/preferences").text
    assert all('name="csrf"' not in reader.sent for reader in readers)
