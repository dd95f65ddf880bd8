"""Rules K1, K3, G11 and A5: freezes through the API."""

from typing import Any

import pytest
from httpx import Client

from tests.admin.test_attention import failed
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")

CHRISTMAS = {"from": "2026-12-24 18:00", "until": "2027-01-04 06:00", "zone": "Europe/Berlin", "reason": "year end"}


def test_k1_a_freeze_answers_with_its_gate_in_utc_and_is_in_the_audit_log(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    answer = client.post("/api/gates/freeze", json={**CHRISTMAS, "batchId": batch.id})
    assert answer.status_code == 201, answer.text
    gate = answer.json()
    assert (gate["kind"], gate["reach"], gate["subject"]) == ("freeze", "send", f"batch {batch.id}")
    assert (gate["shutFrom"], gate["shutUntil"]) == ("2026-12-24T17:00:00Z", "2027-01-04T05:00:00Z")
    assert (gate["takenBack"], gate["out"], gate["isSwept"]) == (0, 0, False)
    client.post("/api/gates", json={"reason": "a pause"})
    assert [one["id"] for one in client.get("/api/gates", params={"kind": "freeze"}).json()["items"]] == [gate["id"]]
    client.post(f"/api/gates/{gate['id']}/open", json={"reason": "not needed"})
    assert client.get("/api/gates", params={"kind": "freeze"}).json()["items"] == []
    entries = [one for one in client.get("/api/audit").json()["items"] if one["subjectId"] == str(gate["id"])]
    assert [(one["action"], one["actor"], one["reason"]) for one in entries] == [
        ("gate.open", "local", "not needed"),
        ("gate.shut", "local", "year end"),
    ]
    assert entries[1]["after"]["from"] == "2026-12-24T17:00:00+00:00"


def test_k1_a_freeze_without_beginning_begins_now_and_takes_jobs_back(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    stage.due(batch, "cutover")
    gate = client.post("/api/gates/freeze", json={"until": "2100-01-01T00:00Z", "reason": "an audit"}).json()
    assert gate["isSwept"]
    assert {"takenBack", "out"} <= gate.keys()


def test_k1_a_repeated_request_freezes_once(client: Client, stage: Stage) -> None:
    failed(stage, 1)
    asked: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}, "json": CHRISTMAS}
    first, second = (client.post("/api/gates/freeze", **asked) for _ in range(2))
    assert first.json() == second.json()
    assert len(client.get("/api/gates").json()["items"]) == 1


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"from": "2020-12-24 18:00", "until": "2021-01-04 06:00"}, 400, "GT414"),
        ({"from": "2020-12-24 18:00"}, 400, "GT414"),
        ({"until": "2026-12-24 06:00"}, 400, "GT414"),
        ({"zone": None}, 400, "GT414"),
        ({"zone": "Mars/Olympus"}, 400, "GT414"),
        ({"from": "Christmas"}, 400, "GT414"),
        ({"batchId": 999}, 404, "AD404"),
        ({"runbookName": "nobody"}, 404, "PB404"),
        ({"batchId": 1, "runbookName": "wave"}, 400, "GT400"),
        ({"memberKey": "u0"}, 422, "AP422"),
    ],
    ids=["over", "past", "turned", "no zone", "zone", "no time", "batch", "runbook", "two things", "a person"],
)
def test_k1_what_makes_no_sense_is_refused_and_nothing_is_frozen(
    client: Client, stage: Stage, asked: dict[str, Any], status: int, code: str
) -> None:
    failed(stage, 1)
    answer = client.post("/api/gates/freeze", json={**CHRISTMAS, **asked})
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert client.get("/api/gates").json()["items"] == []
