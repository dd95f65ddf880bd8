"""Reports: who is done, who failed and why, across batches (rules U1 and W8)."""

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from httpx import Client

from tests.api.conftest import DOCUMENT, create, csv_of
from tests.stage import Failing, Stage


@pytest.fixture
def moved(client: Client, stage: Stage, published: Any) -> list[int]:
    """Two batches: one whose first member failed, and one that has not begun."""
    answers = iter([Failing("=cmd|' /C calc'!A0 of ann@x")])
    stage.answers["Custom-Two"] = lambda _: next(answers, None)
    one = create(client, "ann@x", "bob@x", "eve@x")["batchId"]
    for _ in range(2):
        client.post(f"/api/batches/{one}/advance")
        stage.run()
    gone = client.get(f"/api/batches/{one}/members", params={"keyContains": "eve"}).json()["items"][0]["id"]
    client.delete(f"/api/batches/{one}/members/{gone}")
    stage.run()
    client.post(f"/api/batches/{one}/advance")
    stage.run()
    two = create(client, "dan@x", "fay@x")["batchId"]
    return [one, two]


def people(client: Client, **wanted: Any) -> list[Any]:
    answer = client.get("/api/report", params=wanted)
    assert answer.status_code == 200, answer.text
    items: list[Any] = answer.json()["items"]
    return items


def test_u1_a_report_has_a_row_for_each_person_of_all_batches(client: Client, moved: list[int]) -> None:
    found = {one["memberKey"]: one for one in people(client)}
    assert {key: one["state"] for key, one in found.items()} == {
        "ann@x": "failed",
        "bob@x": "done",
        "eve@x": "left",
        "dan@x": "waiting",
        "fay@x": "waiting",
    }
    ann, bob, dan = (found[key] for key in ("ann@x", "bob@x", "dan@x"))
    assert (ann["phaseName"], ann["stepName"], ann["attempts"]) == ("first", "two", 1)
    assert "calc" in ann["errorMessage"]
    assert (bob["phaseName"], bob["stepName"], bob["errorMessage"]) == ("second", "three", None)
    assert (dan["phaseName"], dan["attempts"], dan["batchId"], dan["runbookName"]) == (None, 0, moved[1], "wave")
    assert all(one["since"] for one in found.values())


def test_a_report_is_filtered_and_comes_in_pages(client: Client, moved: list[int]) -> None:
    two = moved[1]
    assert [one["memberKey"] for one in people(client, batchId=two)] == ["dan@x", "fay@x"]
    assert [one["memberKey"] for one in people(client, runbook="WAVE", state="failed")] == ["ann@x"]
    assert [one["memberKey"] for one in people(client, keyContains="AN@")] == ["dan@x"]
    assert [one["memberKey"] for one in people(client, errorContains="CALC")] == ["ann@x"]
    seen, cursor = [], None
    while True:
        page = client.get("/api/report", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert (page["total"], page["of"]) == ((5, 5) if cursor is None else (None, None))
        seen += [one["memberKey"] for one in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == ["ann@x", "bob@x", "eve@x", "dan@x", "fay@x"]
    page = client.get("/api/report", params={"state": "waiting", "limit": 1}).json()
    assert (page["total"], page["of"]) == (2, 5)


def test_a_report_shows_columns_of_choice(client: Client, moved: list[int]) -> None:
    ann = people(client, columns=["name", "Email"])[0]
    assert ann["columns"] == {"name": "ANN@X", "Email": "ann@x"}
    refused = client.get("/api/report", params={"columns": "Nmae"})
    assert refused.status_code == 422
    assert "no row has a column 'Nmae'; did you mean 'Name'?" in refused.text
    assert client.get("/api/report.csv", params={"columns": "Other"}).status_code == 422


def test_w8_secret_columns_are_masked_in_a_report(client: Client, stage: Stage) -> None:
    step = "      - {name: one, worker_id: worker-01, function: New-EntraUser, params: {Password: '{{Name}}'}}\n"
    document = f"{DOCUMENT.split('phases:')[0]}phases:\n  - name: first\n    offset: T-1d\n    steps:\n{step}"
    assert client.post("/api/runbooks", json={"yamlContent": document}).status_code == 201
    client.post("/api/batches", data={"runbookName": "wave"}, files=csv_of("ann@x"))
    assert people(client, columns=["Name", "Email"])[0]["columns"] == {"Name": "***", "Email": "ann@x"}
    assert "ANN@X" not in client.get("/api/report.csv", params={"columns": "Name"}).text


def test_a4_a_report_as_csv_is_for_spreadsheets(client: Client, moved: list[int]) -> None:
    answer = client.get("/api/report.csv", params={"columns": "Name"})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    header, ann, *others = answer.text.splitlines()
    assert header.startswith(
        "key,Name,state,phase,step,attempts,since (UTC),error type,error,undo failed at,undo error,batch,runbook"
    )
    assert ann.startswith("ann@x,ANN@X,failed,first,two,1,20")
    assert "'=cmd|" in ann
    assert "T" not in ann.split(",")[6]
    assert len(others) == 4


def test_u1_the_sums_of_a_report(client: Client, moved: list[int]) -> None:
    found = client.get("/api/report/summary", params={"runbook": "wave"}).json()
    assert (found["people"], found["states"]) == (5, {"waiting": 2, "done": 1, "failed": 1, "left": 1})
    assert [(one["id"], one["people"]) for one in found["batches"]] == [(moved[0], 3), (moved[1], 2)]
    phases = [
        (one["phaseName"], one["people"], one["completed"], one["failed"], one["underWay"]) for one in found["phases"]
    ]
    assert phases == [("first", 4, 1, 1, 0), ("second", 4, 1, 0, 0)]
    (failure,) = found["failures"]
    assert (failure["people"], failure["phaseName"], failure["stepName"]) == (1, "first", "two")
    assert client.get("/api/report/summary", params={"batchId": moved[1]}).json()["states"] == {"waiting": 2}


@pytest.mark.parametrize("path", ["/api/report", "/api/report.csv", "/api/report/summary"])
def test_a_report_on_nothing_is_refused(client: Client, published: Any, path: str) -> None:
    assert client.get(path, params={"batchId": 99}).json()["code"] == "AD404"
    assert client.get(path, params={"runbook": "wavs"}).json()["code"] == "PB404"
    assert client.get(path).status_code == 200


@pytest.mark.on("sqlite")
def test_m4_the_sums_take_as_many_statements_for_many_batches(
    client: Client, published: Any, statements: Callable[[], list[str]]
) -> None:
    counts = []
    for number in range(2):
        for more in range(1 + 5 * number):
            create(client, *(f"user{number}-{more}-{place}@x" for place in range(1 + 20 * number)))
        statements()
        client.get("/api/report/summary")
        counts.append(len(statements()))
    assert counts[0] == counts[1]


@pytest.mark.on("sqlite")
def test_a_long_report_takes_the_memory_of_a_page(client: Client, published: Any) -> None:
    create(client, *(f"user{number:06}@x" for number in range(6_000)))
    client.get("/api/report.csv")
    peaks = []
    for batch in (None, 1):
        tracemalloc.start()
        with client.stream("GET", "/api/report.csv", params={"batchId": batch} if batch else {}) as answer:
            length = sum(len(piece) for piece in answer.iter_bytes())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert length > 300_000
    # A thousand rows at once, with what the database and the answer need for them.
    assert max(peaks) < 12_000_000
