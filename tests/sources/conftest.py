"""Servers that play services which sources ask."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from tests.servers.databricks import Workspace
from tests.servers.http import served
from tests.sources.lists import Lists, a_day_later


@pytest.fixture
def workspace(clock: VirtualClock, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace that takes and gives nothing that Databricks' own client does not know (tests/calls)."""
    workspace = Workspace(clock)
    with served(workspace) as workspace.address:
        yield workspace
    if request.node.get_closest_marker("off_contract") is None:
        assert not workspace.problems


@pytest.fixture
def lists(tmp_path: Path) -> Lists:
    """An empty folder of lists, below another folder."""
    folder = tmp_path / "lists"
    folder.mkdir()
    return Lists(folder, a_day_later())
