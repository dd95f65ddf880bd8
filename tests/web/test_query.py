"""What a query returns, looked at on a page: masked, cut, and with the source's errors."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from matoolkit.admin.publishing import publish
from matoolkit.clock import VirtualClock
from matoolkit.errors import SourceFailed
from matoolkit.store import Store
from tests.conftest import Rows
from tests.stage import SOURCE
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

SECRET = """\
phases:
  - name: first
    offset: T-0
    steps:
      - {name: one, worker_id: worker-01, function: New-EntraUser, params: {Password: '{{Name}}', UserPrincipalName: x}}
"""
HOSTILE = "<b>bold</b>\x1b[31m"


@pytest.fixture(autouse=True)
def _wave(store: Store, clock: VirtualClock, source: Rows) -> None:
    publish(store, f"name: wave\n{SOURCE}{SECRET}", by="anna", now=clock.now())
    source.rows = [
        ["ada@x", "hunter2", "2030-01-31T18:00:00Z"],
        [HOSTILE, "hunter3", "2030-01-31T18:00:00Z"],
        ["alan@x", "hunter4", "some evening"],
    ]


def run(visitor: Visitor, **fields: Any) -> Any:
    return visitor.send_form("/runbooks/wave/query", "/runbooks/wave/query", **fields)


def test_a_query_is_looked_at_in_a_browser(tab: Page) -> None:
    tab.goto("/runbooks/wave")
    tab.get_by_role("link", name="Query preview…").click()
    expect(tab.get_by_label("The query")).to_contain_text("SELECT Email, Name, Start FROM people")
    tab.get_by_role("button", name="Run the query").click()
    expect(tab.get_by_text("3 rows, 1 set aside; nothing was changed.")).to_be_visible()
    expect(tab.get_by_role("cell", name="ada@x")).to_be_visible()


def test_secrets_are_masked_and_texts_are_texts(visitor: Visitor) -> None:
    """Rule W8."""
    page = run(visitor).text
    assert "ada@x" in page
    assert "hunter" not in page
    assert "***" in page
    assert "<b>bold" not in page
    assert "\x1b" not in page
    assert "bad batch time" in page


def test_only_so_many_rows_are_shown(visitor: Visitor, source: Rows) -> None:
    source.rows = [[f"m{number}@x", "x" * 9000, "2030-01-31T18:00:00Z"] for number in range(5000)]
    page = run(visitor, limit=25).text
    assert page.count('<td class="s"><bdi>m') == 25
    assert "the first 25 of 5,000" in page
    assert len(page) < 60_000
    assert run(visitor, limit=1000).status_code == 422


def test_errors_of_the_source_are_shown(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: Rows, _query: str) -> Any:
        raise SourceFailed("the database does not answer")

    monkeypatch.setattr(Rows, "pieces", refuse)
    failed = run(visitor)
    assert "SC502" in failed.text
    assert "the database does not answer" in failed.text
    assert "SELECT Email" in failed.text
    assert failed.status_code == SourceFailed.http_status
