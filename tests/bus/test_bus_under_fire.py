"""Rules M1 to M3 with real processes and kill -9: nothing lost, nothing twice."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from matoolkit.store import open_store
from matoolkit.store.upgrade import upgrade
from tests.databases import SQL_SERVER, Database

ROOT = Path(__file__).parents[2]


def fight(database: Database, *urls: str) -> dict[str, Any]:
    # On a SQL Server each process begins with a slow connection.
    rounds = 20 if database.kind == SQL_SERVER else 100
    command = [sys.executable, "-m", "tests.bus.bus_under_fire", str(rounds), "1", database.url, *urls]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    assert outcome["deaths"].pop("error", 0) == 0, done.stderr
    assert sum(outcome["deaths"].values()) >= rounds
    assert min(outcome["deaths"].values()) >= rounds // 20, outcome["deaths"]
    assert len(outcome["published"]) > rounds
    return outcome


def check(outcome: dict[str, Any]) -> None:
    assert (outcome["waiting"], outcome["queued"]) == (0, 0)
    ended = Counter(outcome["applied"]) + Counter(outcome["aside"])
    assert ended == Counter(outcome["published"]), "each message exactly once"
    # Under such fire a message may be delivered ten times to processes that all die.
    assert len(outcome["aside"]) < len(outcome["published"]) / 50


def test_m1_processes_killed_at_every_point_of_a_bus_in_the_states_database(database: Database) -> None:
    outcome = fight(database)
    assert set(outcome["deaths"]) == {"store.before_commit", "store.after_commit", "bus.received", "consumer.handled"}
    check(outcome)


def test_m1_processes_killed_at_every_point_of_outbox_relay_and_a_bus_apart(database: Database, tmp_path: Path) -> None:
    far = f"sqlite:///{tmp_path / 'far.db'}"
    store = open_store(far)
    upgrade(store)
    store.close()
    outcome = fight(database, far)
    assert set(outcome["deaths"]) >= {"relay.before_send", "relay.after_send", "bus.received", "bus.settled"}
    check(outcome)
