"""The roles of `matoolkit db roles` on a SQL Server.

Users there are those of Entra. Here they are logins with a password, made before, which the script leaves alone.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ProgrammingError

from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.errors import StoreError
from matoolkit.store import Store, open_store
from matoolkit.store.roles import roles_script
from tests.databases import Database
from tests.scheduler.calendar import Calendar
from tests.sqlserver import SqlServerUnderTest
from tests.stage import Stage
from tests.waiting import until

pytestmark = pytest.mark.on("mssql")

PARTS = ("orchestrator", "api", "worker")
PASSWORD = "Secret-1234"
# Babelfish has no rights to create or alter, and no roles for all tables. So no scheduler can be granted what it needs.
UNKNOWN_TO_BABELFISH = ("GRANT CREATE TABLE", "GRANT ALTER,", "DECLARE @old", "SELECT @old", "FROM", "WHERE", "EXEC")

Opening = Callable[[str], Store]


@pytest.fixture
def opened(database: Database, sql_server: SqlServerUnderTest, store: Store, clock: VirtualClock) -> Iterator[Opening]:
    """What opens the database as one of the parts."""
    url = make_url(database.url)
    names = {part: f"{url.database}_{part}" for part in PARTS}
    script = roles_script(store.dialect, names, str(url.database))
    if sql_server.is_babelfish:
        lines = (line for line in script.splitlines() if not line.strip().startswith(UNKNOWN_TO_BABELFISH))
        script = "\n".join(
            line.partition("CREATE USER")[0] + "SELECT 1;" if "EXTERNAL" in line else line for line in lines
        )
    with store.engine.connect() as connection:
        for name in names.values():
            connection.exec_driver_sql(f"CREATE LOGIN [{name}] WITH PASSWORD = '{PASSWORD}'")
            connection.exec_driver_sql(f"CREATE USER [{name}] FOR LOGIN [{name}]")
        connection.exec_driver_sql(script)
        connection.commit()
    stores: list[Store] = []

    def open_as(part: str) -> Store:
        asked = url.set(username=names[part], password=PASSWORD).render_as_string(hide_password=False)
        stores.append(open_store(asked, clock=clock))
        return stores[-1]

    yield open_as
    for one in stores:
        one.close()
    for name in names.values():
        # The server may take a moment to see that a connection is closed, and keeps the login until then.
        until(partial(_dropped, store, name))


def _dropped(store: Store, name: str) -> bool:
    with store.engine.connect() as connection:
        try:
            connection.exec_driver_sql(f"DROP USER IF EXISTS [{name}]")
            connection.exec_driver_sql(f"DROP LOGIN [{name}]")
        except ProgrammingError as error:
            if "currently logged in" not in str(error):
                raise
            return False
        connection.commit()
        return True


def test_a_wave_works_with_what_the_roles_may_do(opened: Opening, store: Store, clock: VirtualClock) -> None:
    people, calendar = Calendar(opened("api"), clock), Calendar(store, clock)
    stage, worker = Stage(opened("orchestrator"), clock), Stage(opened("worker"), clock)
    calendar.people = people.people
    people.publish()
    people.in_source("ann", "bob")
    for _ in range(4):
        calendar.tick(timedelta(days=3))
        calendar.scheduler.sweep()
        while stage.handle() + worker.work():
            stage.orchestrator.sweep()
    assert people.batch().status is BatchStatus.COMPLETED
    assert people.sql("SELECT count(*) FROM matoolkit_data.runbook_wave_v1") == [(2,)]


REFUSED = (
    ("api", "DELETE FROM audit_log"),
    ("api", "DELETE FROM batch_members"),
    ("api", "CREATE TABLE mine (id INT)"),
    ("api", "CREATE TABLE matoolkit_data.mine (id INT)"),
    ("orchestrator", "UPDATE alembic_version SET version_num = '0001'"),
    ("orchestrator", "ALTER TABLE batches ADD mine INT"),
    ("worker", "SELECT * FROM batch_members"),
)


def test_what_a_role_was_not_granted_is_refused(opened: Opening) -> None:
    stores = {part: opened(part) for part in PARTS}
    for part, statement in REFUSED:
        with pytest.raises(StoreError, match=r"denied|must be owner"), stores[part].transaction() as tx:
            tx.execute(text(statement))
