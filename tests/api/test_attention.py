"""Rule U6: programs read the same list of what needs a person."""

import pytest
from httpx import Client

from tests.admin.test_attention import failed
from tests.stage import Stage


def test_u6_what_needs_a_person_is_answered_with_where_to_go_on(client: Client, stage: Stage) -> None:
    batch = failed(stage, 3)
    stage.hold(batch)
    answer = client.get("/api/attention").json()
    assert (answer["things"], len(answer["items"])) == (2, 2)
    held, members = answer["items"]
    assert (held["kind"], held["role"], held["batchId"]) == ("held", "held", batch.id)
    assert members["sentence"] == f"3 members of batch {batch.id} failed"
    assert members["page"] == f"/batches/{batch.id}#failures"
    assert members["command"] == f"matoolkit batch failures {batch.id}"
    assert (members["things"], members["runbookName"]) == (1, "wave")
    assert members["batchStartTime"] == f"{batch.batch_start_time:%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.on("sqlite")
def test_u6_what_comes_next_is_answered_too(client: Client, stage: Stage) -> None:
    batch = failed(stage, 1)
    answer = client.get("/api/attention").json()
    assert answer["nextPhase"]["batchId"] == batch.id
    assert answer["nextPhase"]["phaseName"] == "cutover"
    assert answer["lastTickAt"] is None
