"""A worker on SQLite, with a virtual clock."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.store import open_store
from tests.workshop import Workshop


@pytest.fixture
def workshop(migrated_file: Path, tmp_path: Path, clock: VirtualClock) -> Iterator[Workshop]:
    shutil.copy(migrated_file, tmp_path / "state.db")
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}", clock=clock)
    yield Workshop(store, clock)
    store.close()
