"""What a platform asks: whether the process is there, and whether it can work."""

from typing import Any

import pytest
from httpx import Client
from sqlalchemy import func, select

from matoolkit.errors import StoreFull, StoreReadOnly
from matoolkit.store import Store
from matoolkit.store.schema import idempotency_keys
from tests.databases import PostgresServer


def test_readiness_leaves_nothing_behind(client: Client, store: Store) -> None:
    for _ in range(3):
        assert client.get("/readyz").json() == {"status": "ok"}
    with store.reading() as tx:
        assert tx.values(select(func.count()).select_from(idempotency_keys)) == [0]


@pytest.mark.parametrize(("fault", "status"), [(StoreFull("no room"), 507), (StoreReadOnly("a replica"), 503)])
def test_s11_readiness_tells_that_nothing_can_be_written(
    client: Client, store: Store, fault: StoreFull | StoreReadOnly, status: int
) -> None:
    def refuse(statement: str, _: Any) -> None:
        if statement.startswith("INSERT"):
            raise fault

    store.watchers.append(refuse)
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (status, fault.code)
    assert client.get("/healthz").status_code == 200
    store.watchers.remove(refuse)
    assert client.get("/readyz").status_code == 200


@pytest.mark.on("postgresql")
def test_s11_readiness_tells_of_a_server_that_may_only_be_read(
    client: Client, store: Store, postgres: PostgresServer
) -> None:
    postgres.run(f"ALTER DATABASE {store.engine.url.database} SET default_transaction_read_only = on")
    store.engine.dispose()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["code"]) == (503, "DB403")


@pytest.mark.on("sqlite")
def test_another_writer_is_no_reason_not_to_be_ready(client: Client, store: Store) -> None:
    with store.transaction():
        assert client.get("/readyz").status_code == 200
