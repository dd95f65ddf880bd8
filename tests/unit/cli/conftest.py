"""A home of one's own for every test of the command line."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it, and an environment that says nothing."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    for name in list(os.environ):
        if name.startswith("MATOOLKIT_") and not name.startswith("MATOOLKIT_TEST_"):
            monkeypatch.delenv(name)
    return folder
