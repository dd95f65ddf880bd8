"""People are found in all batches, by what others know of them, and all that was done for them is one answer."""

from typing import Any

import pytest
from httpx import Client

from matoolkit.doors.services import Services
from tests.api.conftest import create
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def found(client: Client, path: str, **asked: Any) -> list[tuple[int, str]]:
    answer = client.get(path, params=asked)
    assert answer.status_code == 200, answer.text
    return [(one["batchId"], one["memberKey"]) for one in answer.json()["items"]]


@pytest.fixture
def two_batches(client: Client, published: Any) -> tuple[int, int]:
    first = create(client, "ann@x", "joann@x", "bob%_[@x")["batchId"]
    client.post(f"/api/batches/{first}/cancel", json={})
    return first, create(client, "ann@x", "kim@x")["batchId"]


def test_a_part_of_a_key_is_found_in_all_batches_page_by_page(client: Client, two_batches: tuple[int, int]) -> None:
    first, second = two_batches
    assert found(client, "/api/members", keyContains="ANN") == [(second, "ann@x"), (first, "joann@x"), (first, "ann@x")]
    assert found(client, "/api/members", keyContains="%_[") == [(first, "bob%_[@x")]
    assert found(client, "/api/members", keyContains="nobody") == []
    page = client.get("/api/members", params={"keyContains": "@x", "limit": 2}).json()
    keys = [one["memberKey"] for one in page["items"]]
    while page["next"]:
        page = client.get("/api/members", params={"keyContains": "@x", "limit": 2, "cursor": page["next"]}).json()
        keys += [one["memberKey"] for one in page["items"]]
    assert keys == ["kim@x", "ann@x", "bob%_[@x", "joann@x", "ann@x"]


def test_people_are_meant_by_key_by_number_or_by_an_address_in_their_row(
    client: Client, published: Any, two_batches: tuple[int, int]
) -> None:
    first, second = two_batches
    (number,) = [
        one["id"] for one in client.get(f"/api/batches/{second}/members").json()["items"] if one["memberKey"] == "kim@x"
    ]
    meant = "/api/members/meant"
    assert found(client, meant, who="Kim@X") == [(second, "kim@x")]
    assert found(client, meant, who=str(number)) == [(second, "kim@x")]
    assert found(client, meant, who=str(number), batchId=first) == []
    assert found(client, meant, who="ann@x") == [(second, "ann@x"), (first, "ann@x")]
    assert found(client, meant, who="ann@x", batchId=first) == [(first, "ann@x")]
    assert found(client, meant, who="ann") == []


def test_a_number_that_is_also_a_key_means_two(client: Client, published: Any) -> None:
    batch = create(client, "ann@x", "1")["batchId"]
    assert found(client, "/api/members/meant", who="1", batchId=batch) == [(batch, "1"), (batch, "ann@x")]


def test_an_address_is_looked_for_in_rows(client: Client, published: Any) -> None:
    text = "Email,Name,Start\r\np-1,Ann@Contoso.com,\r\np-2,ann@contoso.com.au,\r\n"
    form = {"runbookName": "wave"}
    made = client.post("/api/batches", data=form, files={"file": ("p.csv", text.encode(), "text/csv")}).json()
    assert found(client, "/api/members/meant", who="ann@contoso.COM") == [(made["batchId"], "p-1")]
    assert found(client, "/api/members/meant", who="contoso.com") == []


def test_all_that_was_done_for_a_person_in_every_batch_is_one_answer(
    client: Client, services: Services, stage: Stage, two_batches: tuple[int, int]
) -> None:
    first, second = two_batches
    for _ in range(2):
        client.post(f"/api/batches/{second}/advance", json={})
        stage.run()
    later, earlier = client.get("/api/members/history", params={"key": "ANN@x"}).json()["items"]
    assert (later["batchId"], later["batchStatus"], later["runbookName"]) == (second, "active", "wave")
    assert [(step["phaseName"], step["stepName"]) for step in later["steps"]] == [("first", "one"), ("first", "two")]
    assert (earlier["batchId"], earlier["batchStatus"], earlier["steps"]) == (first, "cancelled", [])
    assert client.get("/api/members/history", params={"key": "nobody"}).json()["items"] == []
