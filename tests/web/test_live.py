"""Pages that are looked at stay true: what changes is sent, once for all who watch."""

import pytest
from playwright.sync_api import Page, expect

from matoolkit.store.batches import BatchRow
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")

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


def test_a_batch_moves_while_the_page_is_open(tab: Page, stage: Stage, batch: BatchRow) -> None:
    tab.goto(f"/batches/{batch.id}")
    expect(tab.locator("[data-figure=waiting]")).to_have_text("3")
    stage.due(batch, "first", "second")
    stage.run()
    expect(tab.locator("[data-figure=done]")).to_have_text("3")
    expect(tab.locator("#live")).to_contain_text("live")
