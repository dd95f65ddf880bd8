"""Several people at the same moment: what one of them decides is decided once."""

from functools import partial

from httpx import Client

from matoolkit.store.audit import audit_page
from tests.stage import Stage
from tests.system.api.test_changing import ONE_STEP
from tests.threads import in_threads


def test_t6_of_four_approvals_of_one_hold_at_once_one_counts(client: Client, stage: Stage) -> None:
    held = stage.batch(stage.publish(ONE_STEP, "held"), ["eve@x"])
    stage.hold(held)
    approve = partial(client.post, f"/api/batches/{held.id}/hold/approve", json={"holdKey": "removals-1"})
    answers = in_threads([approve] * 4)
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    refused = [answer.json() for answer in answers if answer.status_code == 409]
    assert {(problem["code"], problem["detail"]) for problem in refused} == {
        ("AD416", f"the hold of batch {held.id} was approved already by local")
    }
    with stage.store.reading() as tx:
        assert [entry.action for entry in audit_page(tx)].count("batch.approve_hold") == 1
    stage.hold(held, "removals-2")
    assert client.post(f"/api/batches/{held.id}/hold/approve", json={"holdKey": "removals-2"}).status_code == 200
