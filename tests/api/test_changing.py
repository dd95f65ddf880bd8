"""Every change takes a key, and what is sent again with its key is done once."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from httpx import Client, Response
from sqlalchemy import func, select

from matoolkit.api.changing import KEPT_FOR
from matoolkit.clock import VirtualClock
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from matoolkit.store.audit import audit_page
from matoolkit.store.schema import idempotency_keys
from tests.api.conftest import DOCUMENT, create
from tests.conftest import Rows
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")

ONE_STEP = "phases: [{name: a, offset: T-0, steps: [{name: s, worker_id: w, function: Custom-One}]}]"


def sent_twice(stage: Stage, send: Callable[[dict[str, str]], Response], key: str) -> Response:
    """Send a request twice with its key and make sure that it was done once."""
    before = changes(stage)
    first, again = (send({"Idempotency-Key": key}) for _ in range(2))
    assert first.status_code in (200, 201), first.text
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert changes(stage) == before + 1
    return first


def _post(client: Client, address: str, headers: dict[str, str]) -> Response:
    return client.post(address, headers=headers)


def changes(stage: Stage) -> int:
    with stage.store.reading() as tx:
        return len(audit_page(tx, limit=1000))


def test_publishing_and_switching_are_done_once(client: Client, stage: Stage) -> None:
    body = {"yamlContent": DOCUMENT}
    sent_twice(stage, lambda h: client.post("/api/runbooks", json=body, headers=h), "publish")
    forced = sent_twice(stage, lambda h: client.post("/api/runbooks", json={**body, "force": True}, headers=h), "again")
    assert forced.json()["version"] == 2
    as_it_is = client.post(
        "/api/runbooks?force=true",
        content=DOCUMENT,
        headers={"Content-Type": "application/yaml", "Idempotency-Key": "again"},
    )
    assert as_it_is.json() == forced.json()
    other = client.post("/api/runbooks", json=body, headers={"Idempotency-Key": "again"})
    assert (other.status_code, other.json()["code"]) == (409, "AP409")
    switch = {"enabled": True}
    sent_twice(stage, lambda h: client.put("/api/runbooks/wave/automation", json=switch, headers=h), "on")
    sent_twice(stage, lambda h: client.delete("/api/runbooks/wave/versions/2", headers=h), "off")
    assert len(client.get("/api/runbooks/wave/versions").json()["items"]) == 2


def test_what_is_done_to_a_batch_is_done_once(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x", "bob@x")["batchId"]
    path = f"/api/batches/{batch}"
    member = client.get(f"{path}/members").json()["items"][1]["id"]
    sent_twice(stage, lambda h: client.delete(f"{path}/members/{member}", headers=h), "remove")
    stage.answers = {"Custom-Prepare": Failing("no room"), "Custom-One": Failing("no licence")}
    sent_twice(stage, lambda h: client.post(f"{path}/advance", headers=h), "init")
    stage.run()
    del stage.answers["Custom-Prepare"]
    sent_twice(stage, lambda h: client.post(f"{path}/init/retry", headers=h), "init-again")
    stage.run()
    sent_twice(stage, lambda h: client.post(f"{path}/advance", headers=h), "first")
    stage.run()
    stage.answers.clear()
    sent_twice(stage, lambda h: client.post(f"{path}/retry", json={"reason": "x"}, headers=h), "retry")
    other = client.post(f"{path}/retry", json={"reason": "y"}, headers={"Idempotency-Key": "retry"})
    assert (other.status_code, other.json()["code"]) == (409, "AP409")
    sent_twice(stage, lambda h: client.post(f"{path}/cancel", json={"reason": "x"}, headers=h), "cancel")
    assert client.post(f"{path}/cancel", headers={"Idempotency-Key": "another"}).json()["code"] == "AD409"
    assert stage.functions() == ["Custom-Prepare", "Custom-Prepare", "Custom-One"]


def test_an_approval_and_dead_letters_are_dealt_with_once(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x")["batchId"]
    held = stage.batch(stage.publish(ONE_STEP, "held"), ["eve@x"])
    stage.hold(held)
    approval = {"holdKey": "removals-1"}
    approve = f"/api/batches/{held.id}/hold/approve"
    sent_twice(stage, lambda h: client.post(approve, json=approval, headers=h), "approve")
    client.post(f"/api/batches/{batch}/advance")
    for how in ("resend", "discard"):
        (message,) = stage.bus.receive(stage.events_of_orchestrator, 10)
        stage.bus.dead_letter(message, "poison", "it was in the way")
        address = f"/api/dead-letters/{client.get('/api/dead-letters').json()['items'][0]['id']}/{how}"
        sent_twice(stage, partial(_post, client, address), how)
    assert client.get("/api/dead-letters").json()["total"] == 0


def test_keys_that_have_run_out_are_forgotten_by_the_next_tick(
    client: Client, stage: Stage, source: Rows, clock: VirtualClock, published: Any
) -> None:
    lease = SchedulerLease(stage.store, "test", timedelta(days=30))
    scheduler = Scheduler(stage.store, stage.bus, lambda _: source, clock, lease, timedelta(minutes=5))
    first = create(client, "ann@x", **{"Idempotency-Key": "one"})

    def keys() -> int:
        with stage.store.reading() as tx:
            count: int = tx.values(select(func.count()).select_from(idempotency_keys))[0]
            return count

    clock.advance(KEPT_FOR - timedelta(seconds=1))
    scheduler.tick()
    assert keys() == 1
    assert create(client, "ann@x", **{"Idempotency-Key": "one"}) == first
    clock.advance(timedelta(seconds=1))
    scheduler.tick()
    assert keys() == 0
