"""What tests of the whole share: a stage on each database, and the services of an API beside it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from matoolkit.api.auth import LocalOnly
from matoolkit.api.services import Services
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.ports import Piece
from matoolkit.store import Store
from tests.stage import Stage


class Rows:
    """A source with rows of its own."""

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.rows = rows

    def pieces(self, _: str, /) -> Iterator[Piece]:
        yield Piece(("Email", "Name", "Start"), self.rows)


@pytest.fixture
def stage(store: Store, clock: VirtualClock) -> Stage:
    return Stage(store, clock)


@pytest.fixture
def source() -> Rows:
    return Rows([])


@pytest.fixture
def services(stage: Stage, clock: VirtualClock, source: Rows) -> Services:
    return Services(stage.store, stage.bus, decode, lambda _: source, clock, LocalOnly())
