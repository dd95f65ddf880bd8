"""What changes has an ETag: known again it is not sent again, and a change of what has changed is refused."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from httpx import Client, Response

from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.runbooks import active_runbook
from tests.api.conftest import DOCUMENT, create, csv_of
from tests.stage import Stage
from tests.threads import in_threads

YAML = {"Content-Type": "application/yaml"}
OTHER = DOCUMENT.replace("second", "last")


@pytest.fixture
def world(client: Client, stage: Stage, published: Any) -> dict[str, int]:
    """One of everything: a manual batch with a member, a held batch, a dead letter."""
    batch = create(client, "ann@x", "bob@x")["batchId"]
    with stage.store.transaction() as tx:
        row = active_runbook(tx, "wave")
        new = NewDeadLetter("t", "s", "m-1", "kind", "{}", "{}", "unreadable", None, 10, stage.now)
        (letter,) = keep_dead_letters(tx, [new], stage.now)
    assert row
    held = stage.batch(row, ["eve@x"])
    stage.hold(held)
    member = client.get(f"/api/batches/{batch}/members").json()["items"][0]["id"]
    return {"batch": batch, "held": held.id, "member": member, "letter": letter.id}


# What is looked at, and a change of it.
CHANGES: dict[str, tuple[str, Callable[[Client, dict[str, int], dict[str, str]], Response]]] = {
    "publish": (
        "/api/runbooks/wave",
        lambda c, _, h: c.post("/api/runbooks", content=OTHER, headers={**h, **YAML}),
    ),
    "deactivate": (
        "/api/runbooks/wave/versions/1",
        lambda c, _, h: c.delete("/api/runbooks/wave/versions/1", headers=h),
    ),
    "automation": (
        "/api/runbooks/wave/automation",
        lambda c, _, h: c.put("/api/runbooks/wave/automation", json={"enabled": True}, headers=h),
    ),
    "advance": (
        "/api/batches/{batch}",
        lambda c, w, h: c.post(f"/api/batches/{w['batch']}/advance", headers=h),
    ),
    "cancel": (
        "/api/batches/{batch}",
        lambda c, w, h: c.post(f"/api/batches/{w['batch']}/cancel", headers=h),
    ),
    "add": (
        "/api/batches/{batch}",
        lambda c, w, h: c.post(f"/api/batches/{w['batch']}/members", files=csv_of("new@x"), headers=h),
    ),
    "remove": (
        "/api/batches/{batch}/members/{member}",
        lambda c, w, h: c.delete(f"/api/batches/{w['batch']}/members/{w['member']}", headers=h),
    ),
    "approve": (
        "/api/batches/{held}/hold",
        lambda c, w, h: c.post(f"/api/batches/{w['held']}/hold/approve", json={"holdKey": "removals-1"}, headers=h),
    ),
    "discard": (
        "/api/dead-letters/{letter}",
        lambda c, w, h: c.post(f"/api/dead-letters/{w['letter']}/discard", headers=h),
    ),
}


@pytest.mark.on("sqlite")
def test_what_is_known_is_not_sent_again_and_what_was_seen_can_be_changed_once(
    client: Client, world: dict[str, int]
) -> None:
    # In this order, because a batch that is cancelled takes nobody in any more.
    order = ["automation", "publish", "add", "remove", "advance", "cancel", "approve", "discard"]
    for name in order:
        address, change = CHANGES[name]
        path = address.format(**world)
        first = client.get(path)
        tag = first.headers["etag"]
        assert client.get(path).headers["etag"] == tag
        for known in (tag, f'"x", W/{tag}', "*"):
            same = client.get(path, headers={"If-None-Match": known})
            assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
        assert client.get(path, headers={"If-None-Match": '"x"'}).json() == first.json()
        for stale in ('"x"', f"W/{tag}", "nonsense"):
            refused = change(client, world, {"If-Match": stale})
            assert (refused.status_code, refused.json()["code"]) == (412, "AP412"), name
        assert client.get(path).headers["etag"] == tag, name
        done = change(client, world, {"If-Match": f'"x", {tag}'})
        assert done.status_code < 300, (name, done.text)
        assert client.get(path, headers={"If-None-Match": tag}).status_code != 304, name
        again = change(client, world, {"If-Match": tag})
        assert again.status_code in (409, 412), (name, again.text)


@pytest.mark.parametrize("name", ["deactivate", "automation"])
def test_of_two_who_saw_the_same_one_is_refused(client: Client, world: dict[str, int], name: str) -> None:
    address, change = CHANGES[name]
    seen = {"If-Match": client.get(address.format(**world)).headers["etag"]}
    answers = [change(client, world, seen) for _ in range(2)]
    assert answers[0].status_code < 300
    assert (answers[1].status_code, answers[1].json()["code"]) == (412, "AP412")
    assert len(client.get("/api/runbooks/wave/versions").json()["items"]) == 1


def test_of_many_who_publish_at_once_what_they_changed_one_succeeds(client: Client, published: Any) -> None:
    seen = {"If-Match": client.get("/api/runbooks/wave").headers["etag"], **YAML}

    def publish(number: int) -> int:
        changed = f"{DOCUMENT}# {number}\n"
        return client.post("/api/runbooks", content=changed, headers=seen).status_code

    assert sorted(in_threads([partial(publish, number) for number in range(6)])) == [201, *[412] * 5]
    assert client.get("/api/runbooks/wave/versions").json()["total"] == 2


def test_of_many_who_send_the_same_at_once_with_a_key_one_does_it(client: Client, published: Any) -> None:
    key = {"Idempotency-Key": "one"}
    made = in_threads([lambda: create(client, "ann@x", **key)] * 6)
    assert len({answer["batchId"] for answer in made}) == 1
    assert client.get("/api/batches").json()["total"] == 1


@pytest.mark.on("sqlite")
def test_what_is_sent_again_with_its_key_is_answered_though_it_has_changed_since(
    client: Client, world: dict[str, int]
) -> None:
    path = f"/api/batches/{world['batch']}"
    headers = {"If-Match": client.get(path).headers["etag"], "Idempotency-Key": "one"}
    answers = [client.post(f"{path}/advance", headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotent-replayed"] == "true"


@pytest.mark.on("sqlite")
def test_a_runbook_that_is_not_there_was_not_looked_at(client: Client) -> None:
    refused = client.post("/api/runbooks", content=DOCUMENT, headers={**YAML, "If-Match": "*"})
    assert (refused.status_code, refused.json()["code"]) == (412, "AP412")
    bad = client.post("/api/runbooks", content="name: x\n", headers={**YAML, "If-Match": "*"})
    assert (bad.status_code, bad.json()["code"]) == (422, "RB400")
    assert client.get("/api/runbooks").json()["items"] == []
