"""W(N,S) on DBOS: a workflow for each member, whose steps are recorded one after the other.

SQLite is put into WAL mode first, which is faster than what DBOS would use by itself, and just as durable.
"""

import os
import sqlite3
import sys

from dbos import DBOS, SetWorkflowID
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from bench.peers.meter import Meter, arguments, wait_for


@DBOS.step()
def step(number: int) -> dict[str, object]:
    return {"ok": True, "id": number}


@DBOS.workflow()
def migrate(member: int, steps: int) -> dict[str, object]:
    for number in range(steps):
        step(number)
    return {"ok": True, "id": member}


def start(first: int, members: int, steps: int) -> None:
    for member in range(first, first + members):
        with SetWorkflowID(f"member-{member}"):
            DBOS.start_workflow(migrate, member, steps)


def main() -> None:
    options = arguments(__doc__)
    url = make_url(options.url)
    is_sqlite = url.get_backend_name() == "sqlite"
    if is_sqlite:
        with sqlite3.connect(str(url.database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
    quiet = {"log_level": "ERROR", "run_admin_server": False, "enable_otlp": False}
    DBOS(config={"name": "bench", "system_database_url": options.url, **quiet})
    DBOS.launch()
    looking = create_engine(url if is_sqlite else url.set(drivername="postgresql+psycopg"))
    statuses = "workflow_status" if is_sqlite else "dbos.workflow_status"

    def succeeded() -> int:
        with looking.connect() as connection:
            return int(connection.scalar(text(f"SELECT count(*) FROM {statuses} WHERE status = 'SUCCESS'")) or 0)

    warm = 20
    start(0, warm, options.steps)
    wait_for("the warm-up", lambda: succeeded() == warm)
    with Meter(options.server_pid) as meter:
        start(warm, options.members, options.steps)
        wait_for("the workflows", lambda: succeeded() == warm + options.members)
    meter.report(options.members * options.steps)
    sys.stdout.flush()
    os._exit(0)  # its threads would look for more work


if __name__ == "__main__":
    main()
