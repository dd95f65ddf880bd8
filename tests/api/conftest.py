"""The API over a real store, with an orchestrator and a scripted worker beside it."""

from collections.abc import Iterator
from typing import Any

import pytest
from httpx import Client

from matoolkit.doors.services import Services
from tests.servers.api import serving
from tests.stage import SOURCE

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
