"""Servers that play services which sources ask."""

from collections.abc import Iterator

import pytest

from matoolkit.clock import VirtualClock
from tests.servers.databricks import Workspace
from tests.servers.http import served


@pytest.fixture
def workspace(clock: VirtualClock, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """A workspace that takes and gives nothing that Databricks' own client does not know (tests/calls)."""
    workspace = Workspace(clock)
    with served(workspace) as workspace.address:
        yield workspace
    if request.node.get_closest_marker("off_contract") is None:
        assert not workspace.problems
