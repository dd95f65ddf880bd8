"""Both lifecycles, from publishing to the end, over HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from httpx import Client

from matoolkit.clock import VirtualClock
from matoolkit.scheduler.leasing import SchedulerLease
from matoolkit.scheduler.tick import Scheduler
from tests.api.conftest import DOCUMENT, PHASES, create, csv_of
from tests.conftest import Rows
from tests.stage import Failing, Stage


def test_a_manual_batch_goes_from_a_file_to_its_end(client: Client, stage: Stage, published: Any) -> None:
    made = create(client, "ann@x", "bob@x")
    batch = made["batchId"]
    assert made["memberCount"] == 2
    assert made["availablePhases"] == ["first", "second"]
    assert made["status"] == "detected"
    done = client.post(f"/api/batches/{batch}/advance").json()
    assert (done["action"], done["stepCount"], done["nextPhase"]) == ("init_dispatched", 1, "first")
    assert client.post(f"/api/batches/{batch}/advance").json()["code"] == "AD411"
    stage.run()
    done = client.post(f"/api/batches/{batch}/advance", json={"reason": "go"}).json()
    assert done == {
        "batchId": batch,
        "action": "phase_dispatched",
        "phaseName": "first",
        "memberCount": 2,
        "stepCount": 4,
        "nextPhase": "second",
    }
    refused = client.post(f"/api/batches/{batch}/advance")
    assert refused.status_code == 409
    assert "phase 'first' has not ended" in refused.json()["detail"]
    stage.run()
    assert client.post(f"/api/batches/{batch}/advance").json()["nextPhase"] is None
    stage.run()
    seen = client.get(f"/api/batches/{batch}").json()
    assert seen["status"] == "completed"
    assert seen["members"] == {"active": 2}
    assert {phase["phaseName"]: phase["steps"] for phase in seen["phases"]} == {
        "first": {"succeeded": 4},
        "second": {"succeeded": 2},
    }
    assert [step["status"] for step in seen["initSteps"]] == ["succeeded"]
    assert client.post(f"/api/batches/{batch}/advance").json()["action"] == "all_phases_complete"
    actions = [entry["action"] for entry in client.get("/api/audit", params={"batchId": batch}).json()["items"]]
    assert actions == ["batch.advance"] * 3 + ["batch.create"]


def test_an_automated_batch_goes_from_the_source_to_its_end(
    client: Client, stage: Stage, source: Rows, clock: VirtualClock
) -> None:
    start = clock.now() + timedelta(days=2)
    source.rows = [("ann@x", "Ann", start), ("bob@x", "Bob", start), ("", "Nobody", start)]
    lease = SchedulerLease(stage.store, "test", timedelta(days=30))
    scheduler = Scheduler(stage.store, stage.bus, lambda _: source, clock, lease, timedelta(minutes=5))
    assert client.post("/api/runbooks", json={"yaml_content": DOCUMENT, "enable": True}).status_code == 201
    assert client.get("/api/runbooks/wave/automation").json()["automationEnabled"] is True
    seen = client.post("/api/runbooks/wave/query/preview", params={"limit": 1}).json()
    assert (seen["totalRows"], len(seen["sampleRows"])) == (3, 1)
    assert seen["batchGroups"] == [{"batchTime": start.isoformat().replace("+00:00", "Z"), "memberCount": 2}]
    assert client.get("/api/batches").json()["items"] == []
    scheduler.tick()
    stage.run()
    (batch,) = client.get("/api/batches", params={"runbook": "wave", "manual": False}).json()["items"]
    status = client.get("/api/runbooks/wave/status").json()
    assert status["lastTick"]["rowsSetAside"] == 1
    assert status["batches"] == {"active": 1}
    for days in (1, 1):
        clock.advance(timedelta(days=days, minutes=1))
        scheduler.tick()
        stage.run()
    seen = client.get(f"/api/batches/{batch['id']}").json()
    assert seen["status"] == "completed"
    assert seen["isManual"] is False


def test_members_that_failed_are_found_previewed_and_tried_again(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x", "bob@x", "eve@x")["batchId"]
    stage.answers["Custom-One"] = Failing("no licence")
    for _ in range(2):
        client.post(f"/api/batches/{batch}/advance")
        stage.run()
    (group,) = client.get(f"/api/batches/{batch}/failures").json()["items"]
    assert (group["stepName"], group["error"], group["members"]) == ("one", "no licence", 3)
    cause = f'runbook="wave",step="one",type="Oops",cause="{group["fingerprint"]}"'
    assert f"matoolkit_failed_members{{{cause}}} 3" in client.get("/metrics").text.splitlines()
    same = {"stepName": "one", "fingerprint": group["fingerprint"]}
    shown = client.post(f"/api/batches/{batch}/retry/preview", json=same).json()
    assert shown["goingOn"] == ["ann@x", "bob@x", "eve@x"]
    assert client.get(f"/api/batches/{batch}").json()["members"] == {"failed": 3}
    stage.answers.clear()
    done = client.post(f"/api/batches/{batch}/retry", json={**same, "reason": "bought some"})
    assert done.json() == shown
    stage.run()
    assert client.get(f"/api/batches/{batch}/failures").json()["items"] == []
    member = client.get(f"/api/batches/{batch}/members").json()["items"][0]
    history = client.get(f"/api/batches/{batch}/members/{member['id']}").json()
    assert [(step["phaseName"], step["stepName"], step["attempt"]) for step in history["steps"]] == [
        ("first", "one", 2),
        ("first", "two", 1),
    ]
    found = client.get("/api/members", params={"key": "ANN@x"}).json()["items"]
    assert [enrolment["batchId"] for enrolment in found] == [batch]


def test_a_list_of_enrolments_that_was_cut_is_not_said_to_be_all(client: Client, stage: Stage) -> None:
    runbook = stage.publish(PHASES)
    for days in range(100):
        stage.batch_at(runbook, ["ann@x"], days=days)
    all_of_them = client.get("/api/members", params={"key": "ann@x"}).json()
    assert (len(all_of_them["items"]), all_of_them["total"], all_of_them["of"]) == (100, 100, 100)
    last = stage.batch_at(runbook, ["ann@x"], days=100)
    cut = client.get("/api/members", params={"key": "ann@x"}).json()
    assert (len(cut["items"]), cut["total"], cut["of"], cut["next"]) == (100, None, None, None)
    assert cut["items"][0]["batchId"] == last.id


def test_what_is_sent_twice_with_a_key_is_done_once_and_what_is_refused_leaves_nothing(
    client: Client, stage: Stage, published: Any
) -> None:
    key = {"Idempotency-Key": "one"}
    first = create(client, "ann@x", **key)
    assert create(client, "ann@x", **key) == first
    refused = client.post(
        "/api/batches", data={"runbookName": "wave"}, files=csv_of("ann@x"), headers={**key, "Idempotency-Key": "two"}
    )
    assert refused.json()["code"] == "AD400"
    advanced = [client.post(f"/api/batches/{first['batchId']}/advance", headers=key) for _ in range(2)]
    assert [answer.json()["code"] for answer in advanced] == ["AP409", "AP409"]
    again = [
        client.post(f"/api/batches/{first['batchId']}/advance", headers={"Idempotency-Key": "three"}) for _ in range(2)
    ]
    assert again[0].json() == again[1].json()
    stage.run()
    assert stage.functions() == ["Custom-Prepare"]
    assert len(client.get("/api/batches").json()["items"]) == 1


def test_members_join_and_leave_a_manual_batch(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x")["batchId"]
    added = client.post(f"/api/batches/{batch}/members", files=csv_of("ann@x", "bob@x")).json()
    assert (added["addedCount"], added["skippedCount"], added["skipped"]) == (1, 1, ["ann@x"])
    listed = client.get(f"/api/batches/{batch}/members").json()["items"]
    bob = next(member for member in listed if member["memberKey"] == "bob@x")
    gone = client.delete(f"/api/batches/{batch}/members/{bob['id']}", params={"reason": "stays"})
    assert gone.json()["memberKey"] == "bob@x"
    again = client.delete(f"/api/batches/{batch}/members/{bob['id']}")
    assert again.json()["code"] == "AD406"
    removed = client.get(f"/api/batches/{batch}/members", params={"status": "removed"}).json()["items"]
    assert [member["removeReason"] for member in removed] == ["removed by a person: stays"]


@pytest.mark.on("sqlite")
def test_an_init_that_failed_is_run_again(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x")["batchId"]
    stage.answers["Custom-Prepare"] = Failing("no room")
    client.post(f"/api/batches/{batch}/advance")
    stage.run()
    assert client.get(f"/api/batches/{batch}").json()["status"] == "failed"
    stage.answers.clear()
    assert client.post(f"/api/batches/{batch}/init/retry").json() == {"batchId": batch, "version": 1}
    stage.run()
    assert client.get(f"/api/batches/{batch}").json()["status"] == "active"
