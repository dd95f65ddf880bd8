"""W1: a worker that is killed in the middle of a batch and started again ends the same, seen from the tenant."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from matoolkit.clock import SystemClock
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from matoolkit.worker.tenant import Tenant, TenantServer
from tests.databases import Database
from tests.stage import Stage
from tests.system.migration import LICENCES
from tests.waiting import until

PEOPLE = 40
RUNBOOK = """
phases:
  - name: prepare
    offset: T-0
    steps:
      - name: create
        worker_id: worker-01
        function: New-EntraUser
        params:
          DisplayName: "{{Name}}"
          UserPrincipalName: "{{Email}}@contoso.example"
          MailNickname: "{{Email}}"
        output_params: {Id: Id}
      - name: licence
        worker_id: worker-01
        function: Add-EntraGroupMember
        params: {GroupId: GROUP, UserId: "{{Id}}"}
      - name: disable
        worker_id: worker-01
        function: Set-EntraUserEnabled
        params: {UserId: "{{Id}}", Enabled: false}
""".replace("GROUP", LICENCES)


@pytest.fixture
def store(database: Database) -> Store:
    """A store on the real clock, as the other process has it."""
    return database.open()


@pytest.fixture
def server() -> Iterator[TenantServer]:
    tenant = Tenant(SystemClock())
    tenant.directory.add_group("licences", LICENCES)
    with TenantServer(tenant) as server:
        yield server


def started(database: Database, server: TenantServer) -> "subprocess.Popen[bytes]":
    environ = {**os.environ, "MATOOLKIT_DATABASE_URL": database.url, "SIMULATED_TENANT_URL": server.url}
    command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "worker", "--id", "worker-01"]
    return subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)


def test_w1_a_worker_killed_in_mid_batch_ends_the_same(database: Database, store: Store, server: TenantServer) -> None:
    stage = Stage(store, SystemClock())  # type: ignore[arg-type]
    directory = server.tenant.directory
    batch = stage.batch(stage.publish(RUNBOOK), PEOPLE)
    stage.due(batch, "prepare")
    for made in (PEOPLE // 4, PEOPLE // 2, PEOPLE):
        process = started(database, server)
        try:
            until(lambda wanted=made: stage.handle() * 0 + len(directory.users) >= wanted, seconds=60)  # type: ignore[misc]
        finally:
            process.kill()
            process.wait(20)
        # The locks of the dead run out, which takes a minute, or at once if the database is told so.
        with store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE bus_messages SET visible_at = enqueued_at WHERE topic = 'worker-jobs'")
    process = started(database, server)
    try:
        until(lambda: stage.handle() * 0 or stage.reload(batch).status is BatchStatus.COMPLETED, seconds=60)
    finally:
        process.kill()
        process.wait(20)
    people = directory.users.values()
    assert sorted(one.upn for one in people) == sorted(f"u{n}@contoso.example" for n in range(PEOPLE))
    assert {one.id for one in people} == set(directory.groups[LICENCES].members)
    assert {one.properties["accountEnabled"] for one in people} == {False}
    assert {one.passwords_set for one in people} == {1}
