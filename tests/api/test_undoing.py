"""Rules U2 and U3 over HTTP: previews, one operation however often it is sent, codes, and who may ask."""

from typing import Any

from httpx import Client

from matoolkit.domain.states import MemberStatus
from matoolkit.store.batches import BatchRow
from tests.orchestrator.runbooks import WITH_FAREWELL
from tests.stage import Stage

KEY = {"Idempotency-Key": "once"}


def under_way(stage: Stage) -> tuple[BatchRow, str]:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 2)
    stage.due(batch, "prepare")
    stage.run()
    return batch, f"/api/batches/{batch.id}/undo"


def test_u2_a_preview_an_undo_and_its_progress(client: Client, stage: Stage) -> None:
    batch, path = under_way(stage)
    seen = client.post(f"{path}/preview", json={"memberKeys": ["U0"]}).json()
    assert seen == {
        "batchId": batch.id,
        "batchStatus": "active",
        "version": 1,
        "activeVersion": 1,
        "steps": [{"name": "forget", "function": "Forget"}],
        "running": ["u0"],
        "nothingToRun": [],
        "rolledBack": [],
        "leftOut": [],
    }
    asked = {"memberKeys": ["u0"], "reason": "wrong wave"}
    assert client.post(path, json=asked, headers=KEY).json() == seen
    again = client.post(path, json=asked, headers=KEY)
    assert (again.json(), again.headers["Idempotent-Replayed"]) == (seen, "true")
    assert client.get(path).json() == {"batchId": batch.id, "members": 1, "undoing": 1, "steps": {}}
    stage.run()
    assert client.get(path).json() == {"batchId": batch.id, "members": 1, "undoing": 0, "steps": {"succeeded": 1}}
    (member,) = client.get(f"/api/batches/{batch.id}/members", params={"state": "undone"}).json()["items"]
    assert (member["memberKey"], member["removeReason"]) == ("u0", "undone by a person: wrong wave")
    assert member["undoneAt"] is not None


def test_u2_what_is_refused_has_a_code(client: Client, stage: Stage) -> None:
    batch, path = under_way(stage)
    assert client.post(path, json={"memberKeys": ["u0"]}).json()["code"] == "AP422", "a reason is mandatory"
    assert client.post(path, json={"reason": ""}).json()["code"] == "AP422"
    unknown = client.post(f"{path}/preview", json={"memberKeys": ["nobody"]})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "AD406")
    client.post(path, json={"reason": "wrong wave"})
    nobody = client.post(path, json={"reason": "wrong wave"})
    assert (nobody.status_code, nobody.json()["code"]) == (409, "AD430")
    assert client.post("/api/batches/99/undo", json={"reason": "x"}).json()["code"] == "AD404"
    assert client.get("/api/batches/99/undo").json()["code"] == "AD404"
    changed = client.post(path, json={"reason": "x"}, headers={"If-Match": '"old"'})
    assert (changed.status_code, stage.reload(batch).status) == (412, "active")


def test_u3_exclude_list_and_include(client: Client, stage: Stage) -> None:
    batch, _ = under_way(stage)
    path = "/api/runbooks/wave/members"
    seen = client.post(f"{path}/exclude/preview", json={"memberKey": "U0"}).json()
    assert seen == {"runbookName": "wave", "memberKey": "u0", "isKnown": True, "leaves": [batch.id], "undo": None}
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE
    asked: dict[str, Any] = {"memberKey": "u0", "reason": "on leave"}
    assert client.post(f"{path}/exclude", json=asked, headers=KEY).json() == seen
    assert client.post(f"{path}/exclude", json=asked, headers=KEY).json() == seen
    assert client.post(f"{path}/exclude", json=asked).json()["code"] == "AD431"
    client.post(f"{path}/exclude", json={"memberKey": "u1", "reason": "left", "undo": True})
    first = client.get(f"{path}/excluded", params={"limit": 1}).json()
    assert ([one["memberKey"] for one in first["items"]], first["total"]) == (["u0"], 2)
    second = client.get(f"{path}/excluded", params={"limit": 1, "cursor": first["next"]}).json()
    assert [(one["memberKey"], one["reason"]) for one in second["items"]] == [("u1", "left")]
    assert client.get("/api/runbooks/wave/status").json()["excludedCount"] == 2
    done = client.post(f"{path}/include", json={"memberKey": "u0"}).json()
    assert (done["wasExcluded"], done["batchId"]) == (True, batch.id)
    assert client.get(f"{path}/excluded").json()["total"] == 1
    stage.run()
    assert [job.parameters["Email"] for job in stage.jobs if job.function_name == "Forget"] == ["u1"]


def test_u3_what_is_refused_has_a_code(client: Client, stage: Stage) -> None:
    path = "/api/runbooks/wave/members/exclude"
    assert client.post(path, json={"memberKey": "u0", "reason": "x"}).json()["code"] == "PB404"
    stage.publish(WITH_FAREWELL)
    assert client.post(path, json={"memberKey": "u0"}).json()["code"] == "AP422"
    assert client.post(path, json={"memberKey": " ", "reason": "x"}).json()["status"] == 422
    assert client.get("/api/runbooks/other/members/excluded").json()["code"] == "PB404"
