"""Rules G2, G4, G8, G11 and A5: pauses through the API."""

from typing import Any

import pytest
from httpx import Client

from matoolkit.admin.cancelling import cancel_batch
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from tests.admin.test_attention import failed
from tests.orchestrator.runbooks import ONE_STEP
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")


def shut(client: Client, **subject: Any) -> Any:
    answer = client.post("/api/gates", json={**subject, "reason": "legal hold"})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_g4_a_pause_answers_with_its_gate_and_what_became_of_jobs(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    stage.due(batch, "cutover")
    gate = shut(client, batchId=batch.id)
    assert (gate["subject"], gate["reach"], gate["isSwept"]) == (f"batch {batch.id}", "send", True)
    assert {"takenBack", "out"} <= gate.keys()
    listed = client.get("/api/gates").json()["items"]
    assert [(one["id"], one["reason"], one["shutBy"]) for one in listed] == [(gate["id"], "legal hold", "local")]
    assert client.get(f"/api/gates/{gate['id']}").json()["openedAt"] is None
    assert client.get("/api/gates", params={"batchId": batch.id + 1}).json()["items"] == []


def test_g8_a_resume_names_what_is_still_shut_and_all_is_in_the_audit_log(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    mine, all_ = shut(client, batchId=batch.id), shut(client)
    done = client.post("/api/gates/resume", json={"batchId": batch.id, "reason": "it is over"}).json()
    assert [gate["id"] for gate in done["opened"]] == [mine["id"]]
    assert [gate["id"] for gate in done["still"]] == [all_["id"]]
    again = client.post(f"/api/gates/{mine['id']}/open", json={"reason": "once more"})
    assert (again.status_code, again.json()["code"]) == (409, "GT410")
    assert client.post(f"/api/gates/{all_['id']}/open", json={"reason": "now"}).status_code == 200
    entries = client.get("/api/audit").json()["items"]
    told = [(entry["action"], entry["reason"]) for entry in entries if entry["action"].startswith("gate.")]
    assert sorted(told) == [
        ("gate.open", "it is over"),
        ("gate.open", "now"),
        ("gate.shut", "legal hold"),
        ("gate.shut", "legal hold"),
    ]
    assert client.get("/api/gates").json()["items"] == []
    assert len(client.get("/api/gates", params={"inForce": False}).json()["items"]) == 2


def test_g4_a_repeated_request_pauses_once(client: Client, stage: Stage) -> None:
    failed(stage, 1)
    asked = {"headers": {"Idempotency-Key": "one"}, "json": {"reason": "legal hold"}}
    first, second = (client.post("/api/gates", **asked) for _ in range(2))  # type: ignore[arg-type]
    assert first.json() == second.json()
    assert len(client.get("/api/gates").json()["items"]) == 1


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"batchId": 999}, 404, "AD404"),
        ({"runbookName": "nobody"}, 404, "PB404"),
        ({"runbookName": "wave", "memberKey": "nobody"}, 404, "GT405"),
        ({"memberKey": "u0"}, 400, "GT400"),
        ({"batchId": 1, "runbookName": "wave"}, 400, "GT400"),
        ({"until": "2020-01-01T00:00:00Z"}, 400, "GT400"),
        ({"workerId": "worker-01", "letFinish": True}, 400, "GT400"),
        ({"workerId": "worker-1"}, 404, "GT406"),
        ({"workerId": "Worker-01"}, 404, "GT406"),
        ({"workerId": "a\0b"}, 404, "GT406"),
    ],
    ids=[
        "batch",
        "runbook",
        "person",
        "no runbook",
        "two things",
        "past",
        "a worker begins nothing",
        "no such worker",
        "a worker in other letters",
        "NUL",
    ],
)
def test_g2_what_makes_no_sense_is_refused_and_nothing_is_shut(
    client: Client, stage: Stage, asked: dict[str, Any], status: int, code: str
) -> None:
    failed(stage, 1)
    answer = client.post("/api/gates", json={**asked, "reason": "why"})
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert client.get("/api/gates").json()["items"] == []


def test_g8_nobody_resumes_what_nobody_paused(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    gate = shut(client)
    answer = client.post("/api/gates/resume", json={"batchId": batch.id, "reason": "why"})
    assert (answer.status_code, answer.json()["code"]) == (409, "GT409")
    assert f"it waits at gate {gate['id']}" in answer.json()["detail"]


def test_g8_who_resumes_second_is_told_who_was_first(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    shut(client, batchId=batch.id)
    asked = {"batchId": batch.id, "reason": "it is over"}
    assert client.post("/api/gates/resume", json=asked).status_code == 200
    told = client.post("/api/gates/resume", json=asked).json()
    at = f"{stage.now:%Y-%m-%d %H:%M} UTC"
    assert told["detail"] == f"no pause of batch {batch.id} stands; local ended the last one at {at}"


def test_g10_a_hold_is_listed_with_the_gates_and_opened_only_by_its_approval(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    stage.hold(batch)
    (gate,) = client.get("/api/gates", params={"batchId": batch.id}).json()["items"]
    assert (gate["kind"], gate["reach"]) == ("removals", "start")
    answer = client.post(f"/api/gates/{gate['id']}/open", json={"reason": "why"})
    assert (answer.status_code, answer.json()["code"]) == (409, "GT411")
    assert "hold show" in answer.json()["hint"]


def test_c4_a_budget_is_opened_for_some_more_failures_and_only_a_budget(client: Client, stage: Stage) -> None:
    limited = ONE_STEP.replace("offset: T-5d", "offset: T-5d\n    rollout: {max_failures: 0, at_once: 3}")
    batch = stage.batch(stage.publish(limited), 5)
    stage.due(batch, "prepare")
    stage.handle()
    stage.answer(stage.take_jobs()[0], Failing())
    stage.handle()
    (gate,) = client.get("/api/gates").json()["items"]
    assert (gate["kind"], gate["reach"], gate["subject"], gate["shutBy"]) == (
        *("budget", "start", f"batch {batch.id}", "system"),
    )
    assert (gate["phaseExecutionId"], gate["allowed"]) == (stage.phase_rows(batch)[0].id, None)
    other = shut(client, batchId=batch.id)
    refused = client.post(f"/api/gates/{other['id']}/open", json={"reason": "now", "allow": 3})
    assert (refused.status_code, refused.json()["code"]) == (409, "GT413")
    done = client.post(f"/api/gates/{gate['id']}/open", json={"reason": "known cause", "allow": 3}).json()
    assert [one["allowed"] for one in done["opened"]] == [4]
    (entry,) = [one for one in client.get("/api/audit").json()["items"] if one["action"] == "gate.open"]
    assert (entry["reason"], entry["after"]["allowed"]) == ("known cause", 4)
    (phase,) = client.get(f"/api/batches/{batch.id}/phases").json()["items"]
    assert (phase["rollout"]["members"], phase["rollout"]["placesTaken"], phase["rollout"]["pilots"]) == (5, 2, 0)


def test_c1_members_tell_who_goes_first(client: Client, stage: Stage) -> None:
    text = "pilot: {count: 1}" + ONE_STEP.replace("offset: T-5d", "offset: T-5d\n    rollout: {pilot_first: true}")
    batch = stage.batch(stage.publish(text), 2)
    stage.due(batch, "prepare")
    stage.handle()
    members = client.get(f"/api/batches/{batch.id}/members").json()["items"]
    assert [(one["memberKey"], one["isPilot"]) for one in members] == [("u0", True), ("u1", False)]
    (phase,) = client.get(f"/api/batches/{batch.id}").json()["phases"]
    rollout = phase["rollout"]
    assert (rollout["pilots"], rollout["pilotsOpen"], rollout["pilotsThrough"], rollout["pilotsDoneAt"]) == (
        1,
        1,
        0,
        None,
    )


def test_g2_a_mistyped_worker_is_answered_with_the_one_that_there_is(client: Client, stage: Stage) -> None:
    failed(stage, 1)
    answer = client.post("/api/gates", json={"workerId": "Worker-01", "reason": "its tenant is down"})
    assert answer.json()["hint"] == "did you mean 'worker-01'?"
    frozen = client.post("/api/gates/freeze", json={"workerId": "worker-1", "reason": "year end"})
    assert (frozen.status_code, frozen.json()["code"]) == (404, "GT406")


def test_g2_a_worker_that_has_only_announced_itself_is_paused(client: Client, stage: Stage) -> None:
    with stage.store.transaction() as tx:
        announce_functions(tx, "worker-07", [AnnouncedFunction("Move", "[]")], stage.now)
    assert shut(client, workerId="worker-07")["subject"] == "worker worker-07"


@pytest.mark.parametrize("reason", ["", "   ", "\n\t"])
def test_a6_a_reason_of_nothing_is_none(client: Client, stage: Stage, reason: str) -> None:
    failed(stage, 1)
    for path in ("/api/gates", "/api/gates/freeze", "/api/gates/resume"):
        answer = client.post(path, json={"reason": reason})
        assert (answer.status_code, answer.json()["code"]) == (422, "AP422"), path
    assert client.get("/api/gates").json()["items"] == []


def test_g2_a_worker_that_only_old_work_names_is_paused(client: Client, stage: Stage) -> None:
    batch = stage.batch(stage.publish(ONE_STEP.replace("worker-01", "worker-03")), 1)
    stage.due(batch, "prepare")
    stage.handle()
    stage.publish(ONE_STEP)
    cancel_batch(stage.store, stage.bus, batch.id, by="anna")
    assert shut(client, workerId="worker-03")["subject"] == "worker worker-03"
