"""Rules X1 to X6 through the API."""

import pytest
from httpx import Client

from tests.admin.test_attention import failed
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def test_x3_a_batch_is_explained_by_kinds_with_samples(client: Client, stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 7)
    stage.due(batch, "prepare")
    stage.handle()
    gate = client.post("/api/gates", json={"workerId": "worker-01", "reason": "it is rebuilt"}).json()
    assert gate["takenBack"] == 7
    found = client.get(f"/api/batches/{batch.id}/explain").json()
    (line,) = found["lines"]
    assert (line["kind"], line["members"], line["phaseName"], line["gateId"]) == ("pause", 7, "prepare", gate["id"])
    assert [one["memberKey"] for one in line["samples"]] == ["u0", "u1", "u2", "u3", "u4"]
    assert (line["endedBy"], line["who"], line["until"]) == ("person", "Operator", None)
    assert [phase["phaseName"] for phase in found["phases"]] == ["prepare", "cutover", "check"]
    assert [one["sentence"] for one in found["next"]] == ["check is due", "cutover is due"]
    assert (found["members"], found["unexplained"]) == (7, [])
    ahead = client.get(f"/api/batches/{batch.id}/explain", params={"phase": "CUTOVER"}).json()
    assert [(line["kind"], line["sentence"]) for line in ahead["lines"]] == [("earlier_phase", "prepare comes first")]


def test_x1_a_member_is_explained_and_what_is_unknown_is_refused(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    found = client.get(f"/api/batches/{batch.id}/members/1/explain").json()
    assert (found["memberKey"], found["isOpen"]) == ("u0", False)
    assert found["whys"][0]["sentence"].endswith("failed at the first attempt: the mailbox is over its quota")
    assert found["whys"][1]["command"] == f"matoolkit batch retry {batch.id} --member u0"
    for path, code in (
        (f"/api/batches/{batch.id + 1}/explain", "AD404"),
        (f"/api/batches/{batch.id}/explain?phase=nothing", "AD418"),
        (f"/api/batches/{batch.id}/members/99/explain", "AD407"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["code"]) == (404, code)


def test_x6_the_inbox_is_a_list_with_deadlines(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    stage.hold(batch)
    (matter,) = client.get("/api/inbox").json()["items"]
    assert (matter["kind"], matter["batchId"]) == ("held", batch.id)
    assert matter["deadline"] is not None
