"""The least that W(N,S) could cost: messages and steps in tables like ours, moved in piles by the bare driver.

Jobs and results travel through a table, every move is guarded, each pile is a commit that is on the disk. There are no
members, phases, templates, retries or sweeps, and nothing is told apart: the ceiling for an embedded system.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import orjson
from sqlalchemy.engine import make_url

from matoolkit.store import Store

PILE = 500
_PARAMETERS = {"UserPrincipalName": "a" * 30, "DisplayName": "b" * 30, "x": "y" * 200}
_TABLES = """
CREATE TABLE bare_steps (id NUMBERED, phase integer, member integer, idx integer, status text, job_id text,
    params text, result text, dispatched_at text, completed_at text, attempt integer DEFAULT 1);
CREATE INDEX bare_steps_member ON bare_steps (member, idx);
CREATE INDEX bare_steps_phase ON bare_steps (phase, status);
CREATE TABLE bare_messages (id NUMBERED, topic text, sub text, mid text, body text, due text, locked_until text,
    n integer DEFAULT 0, UNIQUE (topic, mid));
CREATE INDEX bare_messages_due ON bare_messages (topic, sub, locked_until, due)
"""
_NUMBERED = {"sqlite": "integer PRIMARY KEY", "postgresql": "bigserial PRIMARY KEY"}
_CLAIM = """
UPDATE bare_messages SET locked_until = 'z', n = n + 1 WHERE id IN (
    SELECT id FROM bare_messages WHERE topic = ? AND sub = 'x' AND locked_until IS NULL AND due <= '2026'
    ORDER BY id LIMIT ?)
RETURNING id, mid, body
"""


@contextmanager
def loop_in(store: Store, members: int, steps: int) -> Iterator["BareLoop"]:
    """Make a loop on a connection of a store, with the settings that ours has."""
    with closing(store.engine.raw_connection()) as connection:
        driver: Any = connection.driver_connection
        if store.dialect.name == "postgresql":
            driver.autocommit = True
        else:
            driver.execute("PRAGMA query_only = 0")  # the last user may have left the connection read-only
        loop = BareLoop(driver, store.dialect.name, members, steps)
        try:
            yield loop
        finally:
            loop.drop_tables()
            if store.dialect.name == "postgresql":
                driver.autocommit = False


@contextmanager
def plain_loop(url: str, synchronous: str, members: int, steps: int) -> Iterator["BareLoop"]:
    """Make a loop on SQLite with none of our settings but a log, and commits on the disk or left to the system."""
    with closing(sqlite3.connect(make_url(url).database or "", isolation_level=None)) as driver:
        driver.execute("PRAGMA journal_mode = WAL")
        driver.execute(f"PRAGMA synchronous = {synchronous}")
        yield BareLoop(driver, "sqlite", members, steps)


class BareLoop:
    """W(N,S) with nothing but the driver."""

    def __init__(self, driver: Any, dialect: str, members: int, steps: int) -> None:
        self._cursor, self._dialect = driver.cursor(), dialect
        self._members, self._steps = members, steps

    def prepare(self) -> None:
        """Make the tables, the steps and the first jobs."""
        self.drop_tables()
        for statement in _TABLES.replace("NUMBERED", _NUMBERED[self._dialect]).split(";"):
            self._cursor.execute(statement)
        rows = [(member, index) for member in range(self._members) for index in range(self._steps)]
        self._begin()
        self._many("INSERT INTO bare_steps (phase, member, idx, status) VALUES (1, ?, ?, 'pending')", rows)
        self._dispatch([row[0] for row in self._ask("SELECT id FROM bare_steps WHERE idx = 0")])
        self._commit()

    def drop_tables(self) -> None:
        """Leave nothing behind."""
        for table in ("bare_steps", "bare_messages"):
            self._cursor.execute(f"DROP TABLE IF EXISTS {table}")

    def run(self) -> int:
        """Let worker and orchestrator take turns until nothing is left, and say how many steps were done."""
        done = 0
        while self._work():
            done += self._coordinate()
        return done

    def _work(self) -> bool:
        self._begin()
        jobs = self._ask(_CLAIM, ("jobs", PILE))
        self._commit()
        results = []
        for _, mid, body in jobs:
            step = orjson.loads(body)["Step"]
            results.append((mid, _text({"JobId": mid, "Status": "Success", "Result": {"ok": True}, "Step": step})))
        self._begin()
        self._send("results", results)
        self._many("DELETE FROM bare_messages WHERE id = ?", [(job[0],) for job in jobs])
        self._commit()
        return bool(jobs)

    def _coordinate(self) -> int:
        self._begin()
        results = self._ask(_CLAIM, ("results", PILE))
        ids = ",".join(str(orjson.loads(body)["Step"]) for _, _, body in results)
        found = self._ask(f"SELECT id, member, idx, status, job_id FROM bare_steps WHERE id IN ({ids})")
        open_steps = [row for row in found if row[3] == "dispatched"]
        self._many(
            "UPDATE bare_steps SET status = 'succeeded', result = ?, completed_at = '2026'"
            " WHERE id = ? AND status = 'dispatched'",
            [('{"ok":true}', row[0]) for row in open_steps],
        )
        members = ",".join(str(row[1]) for row in open_steps)
        waiting = self._ask(
            f"SELECT member, idx, id FROM bare_steps WHERE member IN ({members}) AND status = 'pending'"
        )
        first: dict[int, tuple[int, int]] = {}
        for member, index, number in waiting:
            first[member] = min((index, number), first.get(member, (index, number)))
        self._dispatch([number for _, number in first.values()])
        self._many("DELETE FROM bare_messages WHERE id = ?", [(row[0],) for row in results])
        self._commit()
        return len(open_steps)

    def _dispatch(self, ids: Sequence[int]) -> None:
        parameters = _text(_PARAMETERS)
        jobs = [(f"step-{number}-attempt-1", number) for number in ids]
        self._many(
            "UPDATE bare_steps SET status = 'dispatched', job_id = ?, params = ?, dispatched_at = '2026'"
            " WHERE id = ? AND status = 'pending'",
            [(job, parameters, number) for job, number in jobs],
        )
        self._send("jobs", [(job, _text({"JobId": job, "Step": number, "P": parameters})) for job, number in jobs])

    def _send(self, topic: str, messages: Sequence[tuple[str, str]]) -> None:
        statement = "INSERT INTO bare_messages (topic, sub, mid, body, due) VALUES (?, 'x', ?, ?, '2026')"
        self._many(statement, [(topic, *message) for message in messages])

    def _ask(self, statement: str, given: Sequence[object] = ()) -> list[Any]:
        rows: list[Any] = self._cursor.execute(self._marked(statement), given).fetchall()
        return rows

    def _many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        if rows:
            self._cursor.executemany(self._marked(statement), rows)

    def _marked(self, statement: str) -> str:
        return statement if self._dialect == "sqlite" else statement.replace("?", "%s")

    def _begin(self) -> None:
        self._cursor.execute("BEGIN IMMEDIATE" if self._dialect == "sqlite" else "BEGIN")

    def _commit(self) -> None:
        self._cursor.execute("COMMIT")


def _text(value: object) -> str:
    return orjson.dumps(value).decode()
