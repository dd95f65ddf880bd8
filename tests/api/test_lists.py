"""Lists say how many there are, with and without their filters, and hold exactly those that were asked for."""

from typing import Any

import orjson
import pytest
from httpx import Client

from matoolkit.domain.gates import GateKind
from matoolkit.store.deadletters import NewDeadLetter, discard_dead_letters, keep_dead_letters
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.runbooks import active_runbook
from tests.api.conftest import create
from tests.stage import Failing, Stage


def counted(client: Client, path: str, **wanted: Any) -> tuple[int, int, int]:
    """Return how many items are on the page, how many match, and how many there are."""
    answer = client.get(path, params=wanted)
    assert answer.status_code == 200, answer.text
    page = answer.json()
    return len(page["items"]), page["total"], page["of"]


def test_members_are_found_by_a_part_of_their_key_and_by_status(client: Client, stage: Stage, published: Any) -> None:
    keys = [*(f"user{number:02}@x" for number in range(20)), "Ärger@x", "a%b@x", "a_b@x", "a[b]@x", "a/b@x"]
    batch = create(client, *keys)["batchId"]
    path = f"/api/batches/{batch}/members"
    assert counted(client, path) == (25, 25, 25)
    assert counted(client, path, limit=3) == (3, 25, 25)
    assert counted(client, path, keyContains="USER1", limit=3) == (3, 10, 25)
    for part, key in {"%": "a%b@x", "_": "a_b@x", "[": "a[b]@x", "/": "a/b@x", "äRG": "Ärger@x"}.items():
        page = client.get(path, params={"keyContains": part}).json()
        assert [member["memberKey"] for member in page["items"]] == [key]
        assert (page["total"], page["of"]) == (1, 25)
    gone = client.get(path, params={"key_contains": "user00"}).json()["items"][0]["id"]
    client.delete(f"{path}/{gone}")
    assert counted(client, path, status="removed") == (1, 1, 25)
    assert counted(client, path, status="active", keyContains="user0") == (9, 9, 25)
    assert counted(client, path, status="failed") == (0, 0, 25)


def test_u1_members_have_a_state_and_are_found_by_it(client: Client, stage: Stage, published: Any) -> None:
    answers = iter([None, Failing("no licence")])
    stage.answers["Custom-One"] = lambda _: next(answers, None)
    batch = create(client, "ann@x", "bob@x", "eve@x")["batchId"]
    path = f"/api/batches/{batch}"

    def states() -> dict[str, tuple[str, str | None]]:
        return {
            one["memberKey"]: (one["state"], one["lastCompletedPhase"])
            for one in client.get(f"{path}/members").json()["items"]
        }

    assert set(states().values()) == {("waiting", None)}
    client.post(f"{path}/advance")
    stage.run()
    client.post(f"{path}/advance")
    assert client.get(path).json()["memberStates"] == {"under_way": 3}
    stage.run()
    assert states() == {"ann@x": ("waiting", "first"), "bob@x": ("failed", None), "eve@x": ("waiting", "first")}
    gone = client.get(f"{path}/members", params={"keyContains": "eve"}).json()["items"][0]["id"]
    client.delete(f"{path}/members/{gone}")
    stage.run()
    client.post(f"{path}/advance")
    stage.run()
    assert states() == {"ann@x": ("done", "second"), "bob@x": ("failed", None), "eve@x": ("left", "first")}
    assert client.get(path).json()["memberStates"] == {"done": 1, "failed": 1, "left": 1}
    assert client.get("/api/batches").json()["items"][0]["memberStates"] == {"done": 1, "failed": 1, "left": 1}
    assert counted(client, f"{path}/members", state="done") == (1, 1, 3)
    assert counted(client, f"{path}/members", state="done", keyContains="bob") == (0, 0, 3)
    assert counted(client, f"{path}/members", state="left", status="removed") == (1, 1, 3)
    assert client.get(f"{path}/members/{gone}").json()["state"] == "left"
    assert client.get("/api/members", params={"key": "ann@x"}).json()["items"][0]["state"] == "done"
    header, first = client.get(f"{path}/members.csv").text.splitlines()[:2]
    assert dict(zip(header.split(","), first.split(","), strict=True))["state"] == "done"


@pytest.mark.on("sqlite")
def test_steps_batches_holds_and_dead_letters_are_counted(client: Client, stage: Stage, published: Any) -> None:
    stage.answers["Custom-Two"] = lambda job: Failing("no licence") if job.parameters else None
    batch = create(client, "ann@x", "bob@x")["batchId"]
    create(client, "eve@x")
    for _ in range(2):
        client.post(f"/api/batches/{batch}/advance")
        stage.run()
    steps = f"/api/batches/{batch}/steps"
    assert counted(client, steps, limit=1) == (1, 4, 4)
    assert counted(client, steps, status="succeeded", phase="first") == (4, 4, 4)
    assert counted(client, steps, phase="second") == (0, 0, 4)
    assert counted(client, steps, phase="nobody's") == (0, 0, 4)
    assert counted(client, "/api/batches", status="detected") == (1, 1, 2)
    assert counted(client, "/api/batches", limit=1) == (1, 2, 2)
    assert counted(client, "/api/holds") == (0, 0, 0)
    with stage.store.transaction() as tx:
        new = [NewDeadLetter("t", "s", f"m-{n}", "k", "{}", "{}", "bad", None, 10, stage.now) for n in range(3)]
        letters = keep_dead_letters(tx, new, stage.now)
        discard_dead_letters(tx, [letters[0].id], "anna", stage.now)
    assert counted(client, "/api/dead-letters", limit=1) == (1, 2, 3)
    assert counted(client, "/api/dead-letters", status="discarded") == (1, 1, 3)
    assert counted(client, f"/api/batches/{batch}/phases") == (2, 2, 2)


@pytest.mark.on("sqlite")
def test_the_members_of_a_hold_are_paged(client: Client, stage: Stage, published: Any) -> None:
    with stage.store.reading() as tx:
        row = active_runbook(tx, "wave")
    assert row
    batch = stage.batch(row, 250)
    members = [member.id for member in stage.members(batch)]
    held = orjson.dumps({"kind": "removals", "memberIds": [*reversed(members[:230])]}).decode()
    with stage.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "too many are gone", "k", held)], stage.now)
    hold = client.get(f"/api/batches/{batch.id}/hold").json()
    assert (hold["memberCount"], len(hold["members"]), hold["members"][0]) == (230, 100, "u0")
    seen, cursor = [], None
    for _ in range(3):
        asked = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = client.get(f"/api/batches/{batch.id}/hold/members", params=asked).json()
        assert (page["total"], page["of"]) == (230, 230)
        seen += [member["id"] for member in page["items"]]
        cursor = page["next"]
    assert cursor is None
    assert seen == members[:230]
    assert client.get(f"/api/batches/{batch.id + 1}/hold/members").json()["code"] == "AD404"
