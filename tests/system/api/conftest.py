"""The API over a real store, with an orchestrator and a scripted worker beside it."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from httpx import Client

from matoolkit.api.auth import LocalOnly
from matoolkit.api.services import Services
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.ports import Piece
from matoolkit.store import Store
from tests.servers.api import serving
from tests.stage import SOURCE, Stage

PHASES = """\
init:
  - {name: prepare, worker_id: worker-01, function: Custom-Prepare}
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
DOCUMENT = f"name: wave\n{SOURCE}{PHASES}"


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


@pytest.fixture
def client(services: Services) -> Iterator[Client]:
    with serving(services) as address, Client(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
def published(client: Client) -> Any:
    done = client.post("/api/runbooks", json={"yamlContent": DOCUMENT})
    assert done.status_code == 201, done.text
    return done.json()


def csv_of(*keys: str) -> dict[str, Any]:
    """Return an upload with a row for each key."""
    text = "Email,Name,Start\r\n" + "".join(f"{key},{key.upper()},\r\n" for key in keys)
    return {"file": ("people.csv", text.encode(), "text/csv")}


def create(client: Client, *keys: str, **headers: str) -> Any:
    """Make a manual batch."""
    form = {"runbookName": "wave"}
    done = client.post("/api/batches", data=form, files=csv_of(*keys), headers=headers)
    assert done.status_code == 201, done.text
    return done.json()
