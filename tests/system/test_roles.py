"""Least privilege: each part of the system signs in as its own role, and may do what it needs and nothing else."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Terms
from matoolkit.clock import VirtualClock
from matoolkit.domain.retrying import DataChoice
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.errors import StoreReadOnly
from matoolkit.store import Store
from matoolkit.store.checkup import Outcome
from matoolkit.store.checkup.statements import check_statements
from matoolkit.store.roles import PARTS, roles_script
from matoolkit.store.upgrade import require_current_schema, upgrade
from tests.databases import Database
from tests.scheduler.calendar import Calendar, runbook
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("postgresql")

DAY = timedelta(days=1)


class Parts:
    """A database, its superuser, and for each part what opens a store as its role."""

    def __init__(self, database: Database, clock: VirtualClock) -> None:
        self._database = database
        self._clock = clock
        self._url = make_url(database.url)
        self.names = {part: f"{self._url.database}_{part}" for part in PARTS}
        self.owner = database.open(clock)

    def grant(self) -> None:
        """Run what the command prints."""
        with self.owner.engine.begin() as connection:
            script = roles_script(self.owner.dialect, self.names, str(self._url.database))
            connection.connection.cursor().execute(script)

    def open(self, part: str) -> Store:
        role = Database(
            self._url.set(username=self.names[part]).render_as_string(hide_password=False), self._database.kind
        )
        store = role.open(self._clock)
        self._database.opened.append(store)
        return store


@pytest.fixture
def parts(empty_database: Database, clock: VirtualClock) -> Iterator[Parts]:
    """A database that was made by the deploying identity, and granted."""
    parts = Parts(empty_database, clock)
    parts.grant()
    upgrade(parts.open("deploy"))
    parts.grant()
    yield parts
    with parts.owner.engine.begin() as connection:
        for name in parts.names.values():
            connection.exec_driver_sql(f'DROP OWNED BY "{name}" CASCADE; DROP ROLE "{name}"')


class Cast:
    """The parts of the system, each on a store of its own."""

    def __init__(self, parts: Parts, clock: VirtualClock) -> None:
        self.clock = clock
        self.people = Calendar(parts.open("api"), clock)
        self.calendar = Calendar(parts.open("scheduler"), clock, people=self.people.people)
        self.stage = Stage(parts.open("orchestrator"), clock)
        self.worker = Stage(parts.open("worker"), clock)

    def pass_time(self, duration: timedelta = timedelta()) -> None:
        self.calendar.tick(duration)
        self._run()
        self.calendar.scheduler.sweep()
        self.stage.orchestrator.sweep()
        self.stage.bus.sweep()
        self._run()

    def _run(self) -> None:
        while self.stage.handle() + self.worker.work():
            pass


def test_a_whole_wave_works_with_what_each_role_may_do(parts: Parts, clock: VirtualClock) -> None:
    for part in PARTS:
        require_current_schema(parts.open(part))
    cast = Cast(parts, clock)
    api, stage = cast.people, cast.stage
    leaving = [{"name": "forget", "worker_id": "worker-01", "function": "Forget"}]
    api.publish(runbook(on_member_removed=leaving))
    api.in_source(*(f"u{number}" for number in range(10)))
    cast.worker.answers["Set-EntraUserEnabled"] = lambda job: Failing() if job.parameters["UserId"] == "u1" else None
    cast.pass_time()
    batch = api.batch()
    cast.pass_time(3 * DAY)
    api.in_source("late")
    api.gone("u3")
    cast.pass_time(DAY)
    assert "Forget" in cast.worker.functions()
    api.people.columns = ("id", "start", "city", "street")
    api.people.rows = [(*row, "Via Appia") for row in api.people.rows]
    cast.pass_time(DAY)
    cast.worker.answers.clear()
    retry_members(api.store, api.bus, batch.id, terms=Terms(keep_done=True, data=DataChoice.LAST_READING), by="ann")
    cast.pass_time(6 * DAY)
    cast.pass_time(DAY)
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    statuses = {member.member_key: member.status for member in stage.members(batch)}
    assert statuses.pop("u3") is MemberStatus.REMOVED
    assert set(statuses.values()) == {MemberStatus.ACTIVE}
    with api.store.reading() as tx:
        assert tx.values(text("SELECT count(*) FROM matoolkit_data.runbook_wave_v1 WHERE street = 'Via Appia'")) == [10]
    with api.store.transaction() as tx:
        assert tx.values(text("SELECT count(*) FROM dead_letters")) == [0]


def test_every_statement_of_the_store_works_with_what_the_scheduler_may_do(parts: Parts) -> None:
    checks = list(check_statements(parts.open("scheduler")))
    assert [(one.name, one.outcome) for one in checks] == [("all", Outcome.OK)]


REFUSED = {
    "a table beside the others": ("scheduler", "CREATE TABLE mine (id INTEGER)"),
    "a change of a table": ("scheduler", "ALTER TABLE batches ADD COLUMN mine INTEGER"),
    "a table of the state": ("scheduler", "DROP TABLE batches"),
    "a schema": ("scheduler", "CREATE SCHEMA mine"),
    "a data table by the API": ("api", "CREATE TABLE matoolkit_data.mine (id INTEGER)"),
    "a change of a data table by the API": (
        "api",
        "ALTER TABLE matoolkit_data.runbook_wave_v1 ADD COLUMN mine INT",
    ),
    "a row of a data table by the API": ("api", "UPDATE matoolkit_data.runbook_wave_v1 SET city = 'Rome'"),
    "the audit log by the API": ("api", "DELETE FROM audit_log"),
    "an entry of the audit log by the API": ("api", "UPDATE audit_log SET actor = 'bob'"),
    "members": ("api", "DELETE FROM batch_members"),
    "a data table by the orchestrator": ("orchestrator", "CREATE TABLE matoolkit_data.mine (id INTEGER)"),
    "the rows of people by the orchestrator": ("orchestrator", "SELECT * FROM matoolkit_data.runbook_wave_v1"),
    "the version by the orchestrator": ("orchestrator", "UPDATE alembic_version SET version_num = '0001'"),
    "members by a worker": ("worker", "SELECT * FROM batch_members"),
    "runbooks by a worker": ("worker", "SELECT * FROM runbooks"),
    "the rows of people by a worker": ("worker", "SELECT * FROM matoolkit_data.runbook_wave_v1"),
}


def test_what_a_role_was_not_granted_is_refused(parts: Parts, clock: VirtualClock) -> None:
    cast = Cast(parts, clock)
    cast.people.publish()
    cast.people.in_source("ann")
    cast.pass_time()
    stores = {part: parts.open(part) for part in PARTS}
    for what, (part, statement) in REFUSED.items():
        with pytest.raises(StoreReadOnly), stores[part].transaction() as tx:
            tx.execute(text(statement))
            pytest.fail(f"{part} may change {what}")


def test_data_tables_of_an_earlier_release_stay_usable(parts: Parts, clock: VirtualClock) -> None:
    cast = Cast(parts, clock)
    cast.people.publish()
    with parts.owner.transaction() as tx:
        tx.execute(text("UPDATE runbooks SET data_table_schema = NULL"))
        tx.execute(text("GRANT CREATE ON SCHEMA public TO " + f'"{parts.names["scheduler"]}"'))
    cast.people.in_source("ann")
    cast.pass_time()
    with parts.owner.transaction() as tx:
        tx.execute(text(f'ALTER TABLE runbook_wave_v1 OWNER TO "{parts.names["deploy"]}"'))
        tx.execute(text("REVOKE CREATE ON SCHEMA public FROM " + f'"{parts.names["scheduler"]}"'))
    parts.grant()
    cast.people.people.columns = ("id", "start", "city", "street")
    cast.people.people.rows = [(*row, "Via Appia") for row in cast.people.people.rows]
    assert cast.calendar.tick(timedelta(minutes=5)).error is None
    with cast.people.store.reading() as tx:
        assert tx.values(text("SELECT street FROM runbook_wave_v1")) == ["Via Appia"]
