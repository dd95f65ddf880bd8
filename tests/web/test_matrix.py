"""The matrix of a batch: what the server answers, and what a person sees and does in a browser."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from struct import unpack_from
from typing import Any, Literal

import orjson
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Locator, Page, expect

from matoolkit.domain.matrix import CellState
from matoolkit.store.batches import BatchRow
from matoolkit.web.serving import Site
from tests.servers.pages import serving_pages
from tests.stage import Failing, Stage
from tests.waiting import until
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

PHASES = """\
phases:
  - name: first
    offset: T-1d
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
      - {name: two, worker_id: worker-01, function: Custom-Two}
  - name: second
    offset: T-0
    steps:
      - {name: three, worker_id: worker-01, function: Custom-Three}
"""
HOSTILE = "<img src=x>\x1b[31m\u202eevil"
FAILS = {"u7", "u30"}
# Looks are rarer where they take longer, as on a machine that has much else to do.
PATIENCE = 30_000


def oops(job: Any) -> Any:
    return Failing("it <b>broke</b>", "Oops") if job.facts.member_key in FAILS else None


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    """Forty people, two of them failed, and one more with a hostile key."""
    stage.answers = {"Custom-Two": oops}
    batch = stage.batch(stage.publish(PHASES), [*(f"u{n}" for n in range(40)), HOSTILE])
    stage.due(batch, "first")
    stage.run()
    return batch


# What the server answers


def answered(visitor: Visitor, batch: BatchRow, **query: str) -> tuple[dict[str, Any], bytes]:
    answer = visitor.get(f"/batches/{batch.id}/matrix/cells", params=query)
    assert answer.status_code == 200
    length = int.from_bytes(answer.content[:4], "little")
    return orjson.loads(answer.content[4 : 4 + length]), answer.content[4 + length :]


def test_all_cells_come_with_a_head_a_byte_for_each(visitor: Visitor, batch: BatchRow) -> None:
    head, cells = answered(visitor, batch)
    assert (head["members"], len(cells)) == (41, 3 * 41)
    assert [one["step"] for one in head["columns"]] == ["one", "two", "three"]
    assert [cells[41 + place] & 15 for place in (6, 7)] == [CellState.SUCCEEDED, CellState.FAILED]


def test_cells_are_sent_packed_to_those_who_can_unpack(visitor: Visitor, batch: BatchRow) -> None:
    path = f"/batches/{batch.id}/matrix/cells"
    packed, plain = (visitor.get(path, headers={"accept-encoding": how}) for how in ("gzip", "identity"))
    assert (packed.headers.get("content-encoding"), plain.headers.get("content-encoding")) == ("gzip", None)
    assert packed.content == plain.content
    assert len(gzip.compress(plain.content)) < len(plain.content)


def test_only_what_changed_is_sent_since_a_version(
    visitor: Visitor, stage: Stage, batch: BatchRow, statements: Callable[[], list[str]]
) -> None:
    head, _ = answered(visitor, batch)
    seen_at = head["version"]
    stage.leave(batch, "u3")

    def changes() -> list[tuple[int, int]]:
        head, body = answered(visitor, batch, since=seen_at)
        found = unpack_from(f"<{head['changes']}I", body)
        return [(one >> 8, one & 255) for one in found]

    until(changes)
    assert changes() == [(2 * 41 + 3, CellState.NOT_CONCERNED)]
    assert answered(visitor, batch, since="another-1")[0]["members"] == 41


def test_who_joins_makes_all_cells_come_again(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    seen_at = answered(visitor, batch)[0]["version"]
    stage.join(batch, "joan")
    until(lambda: answered(visitor, batch, since=seen_at)[0].get("members") == 42)


def test_many_who_watch_share_one_look(
    visitor: Visitor, site: Site, batch: BatchRow, statements: Callable[[], list[str]]
) -> None:
    answered(visitor, batch)
    object.__setattr__(site.matrices, "_fresh_seconds", 3600.0)
    statements()
    versions = {answered(visitor, batch)[0]["version"] for _ in range(20)}
    assert len(versions) == 1
    assert not any("packed" in one for one in statements())


def test_a_version_is_never_given_twice(
    visitor: Visitor, stage: Stage, batch: BatchRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.web.matrices._MOST_KEPT", 1)
    other = stage.batch(stage.publish(PHASES, "another"), ["ada"])
    seen_at = answered(visitor, batch)[0]["version"]
    answered(visitor, other)
    stage.leave(batch, "u3")
    head, cells = answered(visitor, batch, since=seen_at)
    assert (head.get("members"), cells[2 * 41 + 3] & 15) == (41, CellState.NOT_CONCERNED)


def test_keys_are_cut_and_made_visible(visitor: Visitor, stage: Stage, batch: BatchRow) -> None:
    stage.join(batch, "l" * 350)
    answered(visitor, batch)
    until(lambda: answered(visitor, batch)[0]["members"] == 42)
    found = visitor.get(f"/batches/{batch.id}/matrix/members?places=1,40,41,99").json()["members"]
    keys = {one["place"]: one["key"] for one in found}
    assert keys[1] == "u1"
    assert keys[40] == "<img src=x>\\x1b[31m\\u202eevil"
    assert len(keys[41]) == 100
    assert sorted(keys) == [1, 40, 41]


def test_keys_are_found_over_all_members(visitor: Visitor, batch: BatchRow) -> None:
    found = visitor.get(f"/batches/{batch.id}/matrix/find?key=U3").json()
    assert found == {"count": 11, "places": [3, *range(30, 40)]}


def test_the_story_of_a_cell_escapes_what_comes_from_elsewhere(visitor: Visitor, batch: BatchRow) -> None:
    told = visitor.get(f"/batches/{batch.id}/matrix/story?place=7&column=1").text
    assert "it &lt;b&gt;broke&lt;/b&gt;" in told
    assert "worker-01" in told
    told = visitor.get(f"/batches/{batch.id}/matrix/story?place=7&column=2").text
    assert "when the phase ran" in told


@pytest.mark.parametrize(
    "path",
    ["story?place=9999&column=0", "story?place=0&column=3", "members?places=1,x", f"members?places={'1,' * 200}1"],
)
def test_what_there_is_not_is_refused(visitor: Visitor, batch: BatchRow, path: str) -> None:
    answer = visitor.get(f"/batches/{batch.id}/matrix/{path}", headers={"hx-request": "true"})
    assert (answer.status_code, "<html" in answer.text) == (422, False)


def test_no_matrix_of_no_batch(visitor: Visitor) -> None:
    assert visitor.get("/batches/99/matrix/cells").status_code == 404


# What a person sees and does


@pytest.fixture
def matrix(tab: Page, batch: BatchRow) -> Locator:
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#mx-found")).to_have_text("41 of 41 members")
    expect(tab.locator("#mx-say")).to_contain_text("u7")
    return tab.locator("#mx-window")


def test_it_opens_at_the_first_failure_and_tells_its_story(tab: Page, matrix: Locator) -> None:
    expect(tab.locator("#mx-say")).to_contain_text("u7 · first / two · ✖")
    expect(tab.locator("#mx-say")).to_contain_text("failed, attempt 1 · row 8")
    expect(tab.locator("#mx-story")).to_contain_text("Oops: it <b>broke</b>")
    expect(matrix).to_be_visible()


def test_by_keyboard_one_goes_everywhere_and_opens_a_member(tab: Page, matrix: Locator, batch: BatchRow) -> None:
    said = tab.locator("#mx-say")
    matrix.focus()
    for keys, told in (
        ("ArrowLeft", "u7 · first / one"),
        ("ArrowDown", "u8 · first / one"),
        ("n", "u30 · first / two"),
        ("n", "u7 · first / two"),
        ("ArrowUp", "u6 · first / two"),
        ("Home", "u0 · first / two"),
        ("PageDown", "row 20"),
        ("End", "\\u202eevil · first / two"),
        ("ArrowRight", "second / three · "),
    ):
        matrix.press(keys)
        expect(said).to_contain_text(told)
    matrix.press("Home")
    matrix.press("Enter")
    tab.wait_for_url(f"**/batches/{batch.id}/members/1")


def test_a_pointer_tells_the_cell_below_it(tab: Page, matrix: Locator) -> None:
    size = matrix.bounding_box()
    assert size
    third = 250 + (size["width"] - 250) * 5 / 6
    matrix.hover(position={"x": third, "y": 44 + 20 * 2 + 10})
    expect(tab.locator("#mx-say")).to_contain_text("second / three")
    expect(tab.locator("#mx-story")).to_contain_text("not come to this member yet")


def test_filter_search_and_order_choose_the_rows(tab: Page, matrix: Locator) -> None:
    found, said = tab.locator("#mx-found"), tab.locator("#mx-say")
    tab.locator("#mx-only").select_option("failed")
    expect(found).to_have_text("2 of 41 members")
    tab.locator("#mx-search").fill("u30")
    expect(found).to_have_text("1 of 41 members")
    expect(said).to_contain_text("u30 · ")
    tab.locator("#mx-search").fill("nobody")
    expect(found).to_have_text("0 of 41 members")
    expect(said).to_have_text("Nobody matches. Clear the filter to see all.")
    tab.locator("#mx-search").fill("")
    tab.locator("#mx-only").select_option("anything")
    tab.locator("#mx-order").select_option("failed first")
    expect(found).to_have_text("41 of 41 members")
    matrix.press("Home")
    expect(said).to_contain_text("u7 · ")
    matrix.press("ArrowDown")
    expect(said).to_contain_text("u30 · ")
    tab.locator("#mx-order").select_option("by progress")
    matrix.press("Home")
    expect(said).to_contain_text("u0 · ")
    matrix.press("End")
    expect(said).to_contain_text("u30 · ")


def test_a_cell_changes_while_one_looks_at_it(tab: Page, matrix: Locator, stage: Stage, batch: BatchRow) -> None:
    said = tab.locator("#mx-say")
    matrix.press("Home")
    matrix.press("ArrowRight")
    expect(said).to_contain_text("u0 · second / three · ")
    expect(said).to_contain_text("not begun")
    stage.due(batch, "second")
    stage.handle()
    expect(said).to_contain_text("dispatched", timeout=PATIENCE)
    stage.run()
    expect(said).to_contain_text("succeeded", timeout=PATIENCE)


def test_who_joins_is_in_the_picture(tab: Page, matrix: Locator, stage: Stage, batch: BatchRow) -> None:
    stage.join(batch, "joan")
    expect(tab.locator("#mx-found")).to_have_text("42 of 42 members", timeout=PATIENCE)
    matrix.press("End")
    expect(tab.locator("#mx-say")).to_contain_text("joan")


def colour(tab: Page, x: int, y: int) -> list[int]:
    copied = """([x, y]) => {
        const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        pen.drawImage(document.getElementById("mx-cells"), x, y, 1, 1, 0, 0, 1, 1);
        return Array.from(pen.getImageData(0, 0, 1, 1).data);
    }"""
    found: list[int] = tab.evaluate(copied, [x, y])
    return found[:3]


def test_colours_follow_the_theme(tab: Page, matrix: Locator) -> None:
    matrix.press("Home")
    failed = [0xB5, 0x27, 0x1C]
    tab.wait_for_function("() => performance.getEntriesByName('matrix-drawn').length > 0")
    size = matrix.bounding_box()
    assert size
    # The row of u7, the column of its failure: near the left edge of the cell, where no glyph is.
    x, y = round(250 + (size["width"] - 250) / 3 + 6), 44 + 7 * 20 + 10
    until(lambda: colour(tab, x, y) == failed)
    tab.emulate_media(color_scheme="dark")
    until(lambda: colour(tab, x, y) == [0xFF, 0x8A, 0x76])
    tab.evaluate("() => { document.documentElement.dataset.theme = 'light' }")
    until(lambda: colour(tab, x, y) == failed)


def test_where_answers_cannot_be_streamed_it_asks_again(
    browser: Browser, site: Site, stage: Stage, batch: BatchRow
) -> None:
    with serving_pages(replace(site, streams=False)) as address:
        context = browser.new_context(base_url=address)
        tab = context.new_page()
        tab.clock.install()
        tab.goto(f"/batches/{batch.id}")
        expect(tab.locator("#mx-found")).to_have_text("41 of 41 members")
        stage.join(batch, "joan")

        def asks() -> bool:
            tab.clock.run_for(5_100)
            return tab.locator("#mx-found").text_content() == "42 of 42 members"

        until(asks, pause=0.5)
        context.close()


def test_without_a_script_there_is_a_sentence_and_the_list(browser: Browser, address: str, batch: BatchRow) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"/batches/{batch.id}")
    expect(tab.get_by_text("needs JavaScript")).to_be_visible()
    expect(tab.locator("#mx-window")).to_be_hidden()
    tab.get_by_role("link", name="The list of members").click()
    expect(tab.get_by_text("u7", exact=True)).to_be_visible()
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_the_matrix(tab: Page, matrix: Locator, theme: Literal["light", "dark"]) -> None:
    tab.emulate_media(color_scheme=theme)
    found = Axe().run(tab, context="#matrix")
    assert found.response["violations"] == []


def test_a_key_of_another_script_turns_nothing_around_it(tab: Page, batch: BatchRow, stage: Stage) -> None:
    stage.join(batch, "\u05d3\u05d5\u05d3@contoso.com")
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#mx-found")).to_contain_text("42 of 42", timeout=PATIENCE)
    tab.locator("#mx-window").press("End")
    expect(tab.locator("#mx-say")).to_contain_text("\u2068\u05d3\u05d5\u05d3@contoso.com\u2069 · first")


def test_nothing_moves_as_the_cells_come(tab: Page, batch: BatchRow) -> None:
    tab.add_init_script(
        "window.moved = [];"
        "const whole = () => document.getElementById('matrix');"
        # The whole of it moves with what is above it.
        "const ours = ({ node }) => node !== whole() && whole().contains(node);"
        "const moved = (shift) => shift.sources.filter(ours).map(({ node }) => node.outerHTML);"
        "const add = (list) => { window.moved.push(...list.getEntries().flatMap(moved)) };"
        "new PerformanceObserver(add).observe({ type: 'layout-shift', buffered: true })"
    )
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("#mx-story")).to_contain_text("Oops")
    assert tab.evaluate("window.moved") == []


def test_on_a_phone_nothing_scrolls_sideways(tab: Page, matrix: Locator) -> None:
    tab.set_viewport_size({"width": 390, "height": 844})
    matrix.press("n")
    expect(tab.locator("#mx-say")).to_contain_text("u30")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
