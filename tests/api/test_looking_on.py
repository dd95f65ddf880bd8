"""Those who look on see no error and pay the same, whatever runs and however large it is."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Any

import pytest
from httpx import Client, HTTPError, Limits

from matoolkit.store.runbooks import active_runbook
from tests.stage import Stage

READERS = 100
AT_LEAST = 3
MEMBERS = 500
# What people look at, of a batch.
QUESTIONS = (
    "/api/batches",
    "/api/batches/{batch}",
    "/api/batches/{batch}/phases",
    "/api/batches/{batch}/members?limit=10",
    "/api/batches/{batch}/members?limit=10&status=failed",
    "/api/batches/{batch}/members?limit=10&keyContains=u1",
    "/api/batches/{batch}/steps?limit=10",
    "/api/batches/{batch}/steps?limit=10&status=succeeded&phase=first",
    "/api/batches/{batch}/failures",
    "/api/holds",
    "/api/dead-letters",
    "/api/runbooks/wave/status",
    "/metrics",
)


def batch_of(stage: Stage, members: int, *, days: int) -> Any:
    with stage.store.reading() as tx:
        row = active_runbook(tx, "wave")
    assert row
    return stage.batch_at(row, members, days=days)


def test_a_hundred_who_look_on_while_a_batch_runs_see_no_error(client: Client, stage: Stage, published: Any) -> None:
    batch = batch_of(stage, MEMBERS, days=5)
    stage.run()
    stage.due(batch, "first", "second")
    paths = [question.format(batch=batch.id) for question in QUESTIONS]
    seen: Counter[object] = Counter()
    over = threading.Event()
    limits = Limits(max_connections=READERS, max_keepalive_connections=READERS)

    def look(number: int) -> None:
        for count, path in enumerate(islice(cycle(paths), number, None)):
            if over.is_set() and count >= AT_LEAST:
                return
            try:
                seen[own.get(path).status_code] += 1
            except HTTPError as error:
                seen[repr(error)] += 1

    with Client(base_url=client.base_url, timeout=120, limits=limits) as own, ThreadPoolExecutor(READERS) as readers:
        for number in range(READERS):
            readers.submit(look, number)
        stage.run()
        over.set()
    assert set(seen) == {200}, seen
    assert seen[200] >= READERS * AT_LEAST
    assert client.get(f"/api/batches/{batch.id}").json()["status"] == "completed"


@pytest.fixture
def asked(stage: Stage) -> Iterator[list[tuple[str, Any]]]:
    """All that was asked of the database, with the parameters."""
    sent: list[tuple[str, Any]] = []

    def note(statement: str, parameters: Any) -> None:
        if statement.startswith(("SELECT", "WITH")):
            sent.append((statement, parameters))

    stage.store.watchers.append(note)
    yield sent
    stage.store.watchers.remove(note)


@pytest.mark.on("sqlite")
def test_what_people_look_at_takes_as_many_statements_for_five_hundred_as_for_ten_each_by_an_index(
    client: Client, stage: Stage, published: Any, asked: list[tuple[str, Any]]
) -> None:
    batches = [batch_of(stage, members, days=members) for members in (10, MEMBERS)]
    stage.run()
    for batch in batches:
        stage.due(batch, "first")
    stage.run()
    for question in QUESTIONS:
        costs = []
        for batch in batches:
            asked.clear()
            assert client.get(question.format(batch=batch.id)).status_code == 200
            costs.append(len(asked))
            assert not [plan for statement in asked for plan in scans(stage, *statement)], question
        assert costs[0] == costs[1] <= 9, question


def scans(stage: Stage, statement: str, parameters: Any) -> list[str]:
    """Return where a statement reads all that any batch has."""
    with stage.store.engine.connect() as connection:
        plan = [str(row[3]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    large = ("batch_members", "step_executions", "phase_executions")
    return [line for line in plan if line.startswith(tuple(f"SCAN {table}" for table in large))]
