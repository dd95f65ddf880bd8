"""Who does W(N,S), where, and how; and by how much ours must be better than others."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.servers import VENVS, Server, empty_database

SQLITE, POSTGRESQL, REDIS, SQL_SERVER = "SQLite", "PostgreSQL", "Redis", "SQL Server"
_HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Costs:
    """What one run cost, and how many cores others used meanwhile."""

    steps_per_s: float
    cpu_s_per_1000: float
    peak_mib: float
    others_cores: float


@dataclass(frozen=True)
class Contestant:
    """A way of doing the work: a module, the database it uses, and the virtual environment if it is not ours."""

    name: str
    database: str
    module: str = "ours"
    options: tuple[str, ...] = ()
    venv: str | None = None

    def run(self, servers: dict[str, Server], members: int, steps: int) -> Costs:
        """Do the work in processes of its own, in a database that is empty."""
        python = str(VENVS / self.venv / "bin" / "python") if self.venv else sys.executable
        sizes = ["--members", str(members), "--steps", str(steps)]
        with self._place(servers.get(self.database)) as place:
            command = [python, "-m", f"bench.{self.module}", *place, *sizes, *self.options]
            paths = os.pathsep.join([str(_HERE), os.environ.get("PYTHONPATH", "")])
            environment = {**os.environ, "PYTHONPATH": paths}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr}")
        return Costs(**json.loads(done.stdout.splitlines()[-1]))

    @contextmanager
    def _place(self, server: Server | None) -> Iterator[list[str]]:
        if server is None:
            with tempfile.TemporaryDirectory(prefix="bench") as folder:
                yield ["--url", f"sqlite:///{folder}/state.db"]
            return
        process = ["--server-pid", str(server.pid)] if server.pid else []
        if self.database == REDIS:
            yield ["--url", server.url, *process]
            return
        with empty_database(server) as url:
            yield ["--url", url, *process]


FULL = Contestant("ours, SQLite FULL", SQLITE)
NORMAL = Contestant("ours, SQLite NORMAL", SQLITE, options=("--synchronous", "NORMAL"))
THREADS = Contestant("ours, SQLite FULL, threads of `matoolkit up`", SQLITE, options=("--as", "threads"))
TURNS = Contestant("ours, PostgreSQL, embedded", POSTGRESQL)
ONE = Contestant("ours, PostgreSQL, one orchestrator", POSTGRESQL, options=("--as", "processes"))
TWO = Contestant(
    "ours, PostgreSQL, two orchestrators", POSTGRESQL, options=("--as", "processes", "--orchestrators", "2")
)
PLAIN_FULL = Contestant("plain bare loop, SQLite FULL", SQLITE, options=("--as", "plain"))
PLAIN_NORMAL = Contestant(
    "plain bare loop, SQLite NORMAL", SQLITE, options=("--as", "plain", "--synchronous", "NORMAL")
)
BARE_FULL = Contestant("bare loop, SQLite FULL, our settings", SQLITE, options=("--as", "bare"))
BARE_POSTGRESQL = Contestant("bare loop, PostgreSQL", POSTGRESQL, options=("--as", "bare"))
DBOS_SQLITE = Contestant("DBOS, SQLite WAL", SQLITE, "peers.dbos_work", venv="dbos")
DBOS_POSTGRESQL = Contestant("DBOS, PostgreSQL", POSTGRESQL, "peers.dbos_work", venv="dbos")
PROCRASTINATE = Contestant("Procrastinate, PostgreSQL", POSTGRESQL, "peers.procrastinate_work", venv="procrastinate")
DRAMATIQ = Contestant("Dramatiq, Redis", REDIS, "peers.dramatiq_work", venv="dramatiq")

CONTESTANTS = (
    *(FULL, PLAIN_FULL, BARE_FULL, DBOS_SQLITE, NORMAL, PLAIN_NORMAL, THREADS, DRAMATIQ),
    *(TURNS, BARE_POSTGRESQL, DBOS_POSTGRESQL, ONE, PROCRASTINATE, TWO),
)


@dataclass(frozen=True)
class Bar:
    """How a figure of ours must compare with another's."""

    ours: Contestant
    other: Contestant
    least: float
    figure: str = "steps_per_s"

    @property
    def what(self) -> str:
        """Say which figures are compared."""
        if self.figure == "steps_per_s":
            return f"steps/s: {self.ours.name} ÷ {self.other.name}"
        return f"CPU per step: {self.other.name} ÷ {self.ours.name}"

    def ratio(self, ours: Costs, other: Costs) -> float:
        """Return how many times better ours is."""
        mine, theirs = getattr(ours, self.figure), getattr(other, self.figure)
        return float(mine / theirs if self.figure == "steps_per_s" else theirs / mine)


BARS = (
    Bar(FULL, DBOS_SQLITE, 20),
    Bar(FULL, DRAMATIQ, 3),
    *(Bar(ours, DBOS_POSTGRESQL, 10) for ours in (TURNS, ONE, TWO)),
    *(Bar(ours, PROCRASTINATE, 5) for ours in (TURNS, ONE, TWO)),
    Bar(FULL, DBOS_SQLITE, 10, "cpu_s_per_1000"),
    *(Bar(ours, DBOS_POSTGRESQL, 10, "cpu_s_per_1000") for ours in (TURNS, ONE, TWO)),
    Bar(FULL, PLAIN_FULL, 1 / 3),
    Bar(TURNS, BARE_POSTGRESQL, 1 / 3),
)
