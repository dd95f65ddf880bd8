"""The command line in a home of its own, and against an API that is served over a real store.

Beside the API there are an orchestrator and a scripted worker.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from matoolkit.cli.program import run
from matoolkit.clock import VirtualClock
from matoolkit.doors.services import Services
from tests.api.conftest import DOCUMENT
from tests.servers.api import serving


@dataclass
class Moving:
    """A clock on which the world goes on while somebody waits."""

    clock: VirtualClock
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    slept: int = 0

    def now(self) -> datetime:
        return self.clock.now()

    def monotonic(self) -> float:
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.slept += 1
        assert self.slept < 500, "it waits for ever"
        if self.meanwhile:
            self.meanwhile.pop(0)()


@dataclass
class Cli:
    """The command line, and what it said last."""

    capsys: pytest.CaptureFixture[str]
    clock: Moving
    folder: Path
    routes: set[tuple[str, str]]
    out: str = ""
    err: str = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self.capsys.readouterr()
        ended = run(arguments, self.clock)
        self.out, self.err = self.capsys.readouterr()
        assert ended == code, f"{arguments}: {ended}\n{self.out}\n{self.err}"
        assert "Traceback" not in self.err
        return self.out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return orjson.loads(self(*arguments, "--json", code=code))

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def people(self, *keys: str) -> str:
        rows = "".join(f"{key},{key.upper()},\r\n" for key in keys)
        return self.file("people.csv", f"Email,Name,Start\r\n{rows}")

    def published(self) -> None:
        self("runbook", "publish", self.file("wave.yaml", DOCUMENT))

    def created(self, *keys: str) -> str:
        return str(self.json("batch", "create", "wave", self.people(*keys))["batchId"])


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with nothing in it, and an environment that says nothing."""
    folder = tmp_path / "home"
    monkeypatch.setenv("HOME", str(folder))
    for name in list(os.environ):
        if name.startswith("MATOOLKIT_") and not name.startswith("MATOOLKIT_TEST_"):
            monkeypatch.delenv(name)
    return folder


@pytest.fixture
def cli(
    services: Services,
    clock: VirtualClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Cli]:
    routes: set[tuple[str, str]] = set()
    with serving(services, lambda method, path: routes.add((method, path))) as address:
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("MATOOLKIT_API_URL", address)
        yield Cli(capsys, Moving(clock), tmp_path, routes)
