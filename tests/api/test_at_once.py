"""Several people at the same moment: what one of them decides is decided once."""

from functools import partial
from typing import Any

import pytest
from httpx import Client

from matoolkit.errors import StoreUnavailable
from matoolkit.store.audit import audit_page
from tests.api.conftest import csv_of
from tests.api.test_changing import ONE_STEP
from tests.stage import Stage
from tests.threads import in_threads


def test_t6_of_four_approvals_of_one_hold_at_once_one_counts(client: Client, stage: Stage) -> None:
    held = stage.batch(stage.publish(ONE_STEP, "held"), ["eve@x"])
    stage.hold(held)
    approve = partial(client.post, f"/api/batches/{held.id}/hold/approve", json={"holdKey": "removals-1"})
    answers = in_threads([approve] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    refused = [answer.json() for answer in answers if answer.status_code == 409]
    assert {(problem["code"], problem["detail"]) for problem in refused} == {
        ("AD416", f"the hold of batch {held.id} was already approved by local")
    }
    with stage.store.reading() as tx:
        assert [entry.action for entry in audit_page(tx)].count("batch.approve_hold") == 1
    stage.hold(held, "removals-2")
    assert client.post(f"/api/batches/{held.id}/hold/approve", json={"holdKey": "removals-2"}).status_code == 200


def test_a4_an_upload_that_broke_off_goes_on_where_it_stopped_when_it_is_sent_again(
    client: Client, stage: Stage, published: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("matoolkit.admin.uploads.MOST_ROWS_IN_PART", 2)
    begun = 0

    def break_off(statement: str, _: Any) -> None:
        nonlocal begun
        begun += "INSERT INTO batch_members" in statement
        if begun == 3:
            raise StoreUnavailable("the connection broke")

    files = csv_of(*(f"user{number}@x" for number in range(7)))
    send = partial(
        client.post, "/api/batches", data={"runbookName": "wave"}, files=files, headers={"Idempotency-Key": "k"}
    )
    stage.store.watchers.append(break_off)
    assert send().status_code == 503
    stage.store.watchers.remove(break_off)
    (batch,) = client.get("/api/batches").json()["items"]
    assert batch["memberCount"] == 4
    done = send()
    assert (done.status_code, done.json()["batchId"], done.json()["memberCount"]) == (201, batch["id"], 7)
    assert done.json()["skippedCount"] == 0
    again = send()
    assert (again.json(), again.headers["idempotent-replayed"]) == (done.json(), "true")
    assert client.get("/api/batches").json()["total"] == 1
