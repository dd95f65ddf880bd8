"""What each route answers, and how it refuses."""

from collections.abc import Callable
from typing import Any

import pytest
from httpx import Client, Response

from matoolkit.domain.states import BatchStatus
from matoolkit.store.audit import audit_page
from matoolkit.store.batches import cancel_batches
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from tests.api.conftest import DOCUMENT, create, csv_of
from tests.conftest import Rows
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")

YAML = {"Content-Type": "application/yaml"}


def refusal(answer: Response, status: int, code: str) -> Any:
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (answer.status_code, problem["status"], problem["code"]) == (status, status, code), problem
    assert problem["type"] == f"urn:matoolkit:error:{code}"
    assert problem["title"]
    return problem


def test_a_plain_document_is_published(client: Client) -> None:
    done = client.post("/api/runbooks", content=DOCUMENT, headers=YAML, params={"enable": "true"})
    assert done.status_code == 201
    assert done.json()["version"] == 1
    assert client.post("/api/runbooks", content=DOCUMENT, headers=YAML).status_code == 200
    assert client.get("/api/runbooks/wave/automation").json()["enabledBy"] == "local"


@pytest.mark.parametrize("spelling", ["dryRun", "dry_run"])
def test_a_dry_run_says_what_would_happen_to_batches_and_writes_nothing(
    client: Client, stage: Stage, published: Any, spelling: str
) -> None:
    with stage.store.reading() as tx:
        from matoolkit.store.runbooks import active_runbook

        row = active_runbook(tx, "wave")
    assert row
    batch = stage.batch(row)
    changed = DOCUMENT.replace("name: second", "name: last")
    shown = client.post("/api/runbooks", content=changed, headers=YAML, params={spelling: True})
    assert shown.status_code == 200
    body = shown.json()
    assert (body["version"], body["isNew"], body["isDryRun"], body["id"]) == (2, True, True, None)
    assert [impact["batchId"] for impact in body["impacts"]] == [batch.id]
    assert len(client.get("/api/runbooks/wave/versions").json()["items"]) == 1
    asked = {"yaml_content": changed, spelling: True}
    assert client.post("/api/runbooks", json=asked).json()["isDryRun"] is True


def test_a_bad_document_is_refused_with_every_finding_and_its_place(client: Client) -> None:
    problem = refusal(client.post("/api/runbooks", content="name: x\nphasez: []\n", headers=YAML), 422, "RB400")
    assert all(error["line"] and error["column"] and error["code"] for error in problem["errors"])
    assert client.get("/api/runbooks").json() == {"items": [], "next": None, "total": 0, "of": 0}


def test_versions_are_listed_read_and_put_out_of_use(client: Client, published: Any) -> None:
    client.post("/api/runbooks", json={"yamlContent": DOCUMENT.replace("second", "last")})
    versions = client.get("/api/runbooks/wave/versions").json()["items"]
    assert [(row["version"], row["isActive"]) for row in versions] == [(2, True), (1, False)]
    assert client.get("/api/runbooks/WAVE").json()["version"] == 2
    assert client.get("/api/runbooks/wave/versions/1").json()["yamlContent"] == DOCUMENT
    refusal(client.get("/api/runbooks/wave/versions/7"), 404, "PB405")
    refusal(client.delete("/api/runbooks/wave/versions/1"), 409, "PB411")
    assert client.delete("/api/runbooks/wave/versions/2", params={"reason": "over"}).json()["isActive"] is False
    refusal(client.put("/api/runbooks/wave/automation", json={"enabled": True}), 409, "PB412")
    entry = client.get("/api/audit").json()["items"][0]
    assert (entry["action"], entry["reason"], entry["actor"]) == ("runbook.deactivate", "over", "local")


def test_automation_is_switched_on_and_off(client: Client, published: Any) -> None:
    assert client.get("/api/runbooks/wave/automation").json()["automationEnabled"] is False
    assert client.put("/api/runbooks/wave/automation", json={"enabled": True}).json()["enabledBy"] == "local"
    assert client.put("/api/runbooks/wave/automation", json={"enabled": False}).json()["disabledAt"]


def test_the_template_can_be_uploaded_again(client: Client, published: Any) -> None:
    text = client.get("/api/runbooks/wave/template").text
    assert text.splitlines()[0] == "Email,Name,Start"
    files = {"file": ("t.csv", text, "text/csv")}
    made = client.post("/api/batches", data={"runbook_name": "wave"}, files=files).json()
    assert (made["memberCount"], made["warnings"]) == (1, [])


def test_pages_follow_one_another_and_lose_nobody(client: Client, published: Any) -> None:
    batch = create(client, *(f"u{number:02}@x" for number in range(25)))["batchId"]
    seen, cursor = [], None
    for _ in range(3):
        asked = {"limit": 10, **({"cursor": cursor} if cursor else {})}
        answer = client.get(f"/api/batches/{batch}/members", params=asked).json()
        seen += [member["memberKey"] for member in answer["items"]]
        cursor = answer["next"]
    assert cursor is None
    assert seen == [f"u{number:02}@x" for number in range(25)]


@pytest.mark.parametrize(
    "cursor", ["nonsense", "YmF0Y2hlczow", "YmF0Y2hlczo5OTk5OTk5OTk5OTk5OTk5OTk5OTk=", "é", "bWVtYmVyczox"]
)
def test_a_made_up_cursor_is_refused(client: Client, cursor: str) -> None:
    refusal(client.get("/api/batches", params={"cursor": cursor}), 400, "AP400")


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/api/batches?limit=0", "/query/limit"),
        ("/api/batches?status=asleep", "/query/status"),
        ("/api/batches?statsu=active", "/query/statsu"),
        ("/api/batches/0", "/path/batch_id"),
        ("/api/batches/99999999999999999999", "/path/batch_id"),
        ("/api/batches/x", "/path/batch_id"),
        ("/api/members/meant", "/query/who"),
    ],
)
def test_a_malformed_request_is_refused_with_the_place(client: Client, path: str, pointer: str) -> None:
    problem = refusal(client.get(path), 422, "AP422")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b'{"enabled": "perhaps"}', b'{"enabled": true, "x": 1}', b""])
def test_a_malformed_body_is_refused(client: Client, published: Any, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    refusal(client.put("/api/runbooks/wave/automation", content=body, headers=headers), 422, "AP422")
    assert client.get("/api/runbooks/wave/automation").json()["automationEnabled"] is False
    refusal(client.post("/api/runbooks", content=body, headers=headers), 422, "AP422")


def test_what_is_not_served_is_a_problem_too(client: Client) -> None:
    refusal(client.get("/api/nothing"), 404, "AP404")
    answer = client.patch("/api/batches")
    refusal(answer, 405, "AP405")
    assert answer.headers["allow"] == "GET, POST"
    assert client.post("/api/batches/1/members/2").headers["allow"] == "DELETE, GET"
    refusal(client.post("/api/runbooks", content=b"x", headers={"Content-Type": "text/html"}), 415, "AP415")


@pytest.mark.parametrize("is_announced", [True, False])
def test_a_document_that_is_too_large_is_refused(client: Client, is_announced: bool) -> None:
    large = b"#" * (1024 * 1024 + 1)
    content = large if is_announced else iter([large])
    refusal(client.post("/api/runbooks", content=content, headers=YAML), 413, "AP413")


def test_the_same_request_with_its_key_is_done_once(client: Client, published: Any) -> None:
    key = {"Idempotency-Key": "8f14e45f"}
    first = create(client, "ann@x", **key)
    again = client.post("/api/batches", data={"runbookName": "wave"}, files=csv_of("ann@x"), headers=key)
    assert again.json() == first
    assert again.headers["idempotent-replayed"] == "true"
    other = client.post("/api/batches", data={"runbookName": "wave"}, files=csv_of("bob@x"), headers=key)
    refusal(other, 409, "AP409")
    assert len(client.get("/api/batches").json()["items"]) == 1


def test_a_key_is_not_kept_for_a_request_that_was_refused(client: Client, published: Any) -> None:
    create(client, "ann@x")
    batch = create(client, "bob@x")["batchId"]
    key = {"Idempotency-Key": "k"}
    with_taken = client.post("/api/batches", data={"runbookName": "wave"}, files=csv_of("ann@x"), headers=key)
    refusal(with_taken, 400, "AD400")
    assert create(client, "eve@x", **key)["memberCount"] == 1
    advanced = {"Idempotency-Key": "a"}
    first = client.post(f"/api/batches/{batch}/advance", headers=advanced).json()
    assert client.post(f"/api/batches/{batch}/advance", headers=advanced).json() == first


def test_a_hold_is_shown_and_approved_as_it_was_shown(client: Client, stage: Stage, published: Any) -> None:
    with stage.store.reading() as tx:
        from matoolkit.store.runbooks import active_runbook

        row = active_runbook(tx, "wave")
    assert row
    batch = stage.batch(row, ["ann@x"])
    refusal(client.get(f"/api/batches/{batch.id}/hold"), 409, "AD414")
    stage.hold(batch)
    assert [held["id"] for held in client.get("/api/holds").json()["items"]] == [batch.id]
    hold = client.get(f"/api/batches/{batch.id}/hold").json()
    assert (hold["holdKey"], hold["kind"], hold["isApproved"]) == ("removals-1", "removals", False)
    stage.hold(batch, "removals-2")
    approval = {"holdKey": "removals-1", "reason": "fine"}
    refusal(client.post(f"/api/batches/{batch.id}/hold/approve", json=approval), 409, "AD414")
    approval["holdKey"] = "removals-2"
    assert client.post(f"/api/batches/{batch.id}/hold/approve", json=approval).status_code == 200
    assert client.get(f"/api/batches/{batch.id}/hold").json()["approvedBy"] == "local"


def test_dead_letters_are_listed_inspected_and_discarded(client: Client, stage: Stage) -> None:
    new = NewDeadLetter("t", "s", "m-1", "kind", '{"a": 1}', "{}", "unreadable", None, 10, stage.now)
    with stage.store.transaction() as tx:
        (letter,) = keep_dead_letters(tx, [new], stage.now)
    (listed,) = client.get("/api/dead-letters").json()["items"]
    assert "body" not in listed
    assert client.get(f"/api/dead-letters/{letter.id}").json()["body"] == '{"a": 1}'
    assert client.post(f"/api/dead-letters/{letter.id}/discard", json={"reason": "x"}).json()["status"] == "discarded"
    refusal(client.post(f"/api/dead-letters/{letter.id}/resend"), 409, "AD415")
    refusal(client.get("/api/dead-letters/77"), 404, "AD405")
    assert client.get("/api/dead-letters", params={"status": "discarded"}).json()["items"]


def test_the_catalogue_says_which_workers_have_a_function(client: Client, stage: Stage) -> None:
    with stage.store.transaction() as tx:
        announce_functions(tx, "worker-07", [AnnouncedFunction("Custom-One", "[]")], stage.now)
    found = {function["name"]: function["workers"] for function in client.get("/api/functions").json()["items"]}
    assert found["Custom-One"] == ["worker-07"]
    assert found["New-EntraUser"] == []


def test_health_readiness_and_metrics(client: Client, published: Any) -> None:
    create(client, "ann@x")
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ok"}
    lines = client.get("/metrics").text.splitlines()
    assert 'matoolkit_batches{runbook="wave",status="detected"} 1' in lines
    assert "matoolkit_dead_letters_open 0" in lines


def test_exports_hold_everybody_and_nothing_that_a_spreadsheet_executes(
    client: Client, stage: Stage, published: Any
) -> None:
    batch = create(client, "=cmd|calc", "ann@x")["batchId"]
    lines = client.get(f"/api/batches/{batch}/members.csv").text.splitlines()
    assert lines[0].startswith("id,member_key,status")
    assert ",'=cmd|calc,active," in lines[1]
    for _ in range(2):
        client.post(f"/api/batches/{batch}/advance")
        stage.run()
    steps = client.get(f"/api/batches/{batch}/steps.csv").text.splitlines()
    assert len(steps) == 5
    assert "ann@x,first,two,succeeded" in steps[-1]
    listed = client.get(f"/api/batches/{batch}/steps", params={"phase": "first", "status": "succeeded"}).json()
    assert len(listed["items"]) == 4
    assert client.get(f"/api/batches/{batch}/steps", params={"phase": "second"}).json()["items"] == []


def test_an_answer_never_shows_the_inside(client: Client, source: Rows, published: Any) -> None:
    source.rows = 5  # type: ignore[assignment]
    problem = refusal(client.post("/api/runbooks/wave/query/preview"), 500, "MT500")
    assert "Traceback" not in str(problem)
    assert "TypeError" not in str(problem)


Move = Callable[[Client, int], Response]

ILLEGAL: list[tuple[str, str, Move, int, str, str]] = [
    ("advance while init runs", "init", lambda c, b: c.post(f"/api/batches/{b}/advance"), 409, "AD411", "init"),
    ("advance while a phase runs", "phase", lambda c, b: c.post(f"/api/batches/{b}/advance"), 409, "AD411", "'first'"),
    ("advance what is cancelled", "over", lambda c, b: c.post(f"/api/batches/{b}/advance"), 409, "AD411", "cancelled"),
    ("advance an automated one", "auto", lambda c, b: c.post(f"/api/batches/{b}/advance"), 400, "AD410", "person"),
    ("advance nobody's", "none", lambda c, b: c.post(f"/api/batches/{b}/advance"), 404, "AD404", "no batch"),
    ("cancel what is cancelled", "over", lambda c, b: c.post(f"/api/batches/{b}/cancel"), 409, "AD409", "cancelled"),
    ("retry where nothing failed", "phase", lambda c, b: c.post(f"/api/batches/{b}/retry"), 409, "AD412", "failed"),
    ("retry before it began", "new", lambda c, b: c.post(f"/api/batches/{b}/retry"), 409, "AD409", "detected"),
    ("retry an init that runs", "init", lambda c, b: c.post(f"/api/batches/{b}/init/retry"), 409, "AD412", "init"),
    (
        "approve what is not held",
        "new",
        lambda c, b: c.post(f"/api/batches/{b}/hold/approve", json={"holdKey": "x"}),
        409,
        "AD414",
        "not held",
    ),
    (
        "add to an automated one",
        "auto",
        lambda c, b: c.post(f"/api/batches/{b}/members", files=csv_of("new@x")),
        400,
        "AD410",
        "person",
    ),
    (
        "add to what is over",
        "over",
        lambda c, b: c.post(f"/api/batches/{b}/members", files=csv_of("new@x")),
        409,
        "AD409",
        "ended",
    ),
    ("remove nobody", "new", lambda c, b: c.delete(f"/api/batches/{b}/members/999"), 404, "AD407", "999"),
]


@pytest.mark.parametrize(
    ("state", "move", "status", "code", "why"), [row[1:] for row in ILLEGAL], ids=[r[0] for r in ILLEGAL]
)
def test_an_illegal_move_is_refused_with_its_reason_and_changes_nothing(
    client: Client, stage: Stage, published: Any, state: str, move: Move, status: int, code: str, why: str
) -> None:
    batch = _batch_that_is(state, client, stage)
    before = (client.get(f"/api/batches/{batch}").json(), _changes(stage))
    problem = refusal(move(client, batch), status, code)
    assert why in problem["detail"]
    assert (client.get(f"/api/batches/{batch}").json(), _changes(stage)) == before


def _batch_that_is(state: str, client: Client, stage: Stage) -> int:
    if state == "none":
        return 4711
    batch: int = create(client, "ann@x")["batchId"]
    if state == "auto":
        from matoolkit.store.runbooks import active_runbook

        with stage.store.reading() as tx:
            row = active_runbook(tx, "wave")
        assert row
        return stage.batch(row, ["eve@x"]).id
    if state in ("init", "phase"):
        client.post(f"/api/batches/{batch}/advance")
    if state == "phase":
        stage.run()
        client.post(f"/api/batches/{batch}/advance")
    if state == "over":
        with stage.store.transaction() as tx:
            cancel_batches(tx, [batch], stage.now)
        assert client.get(f"/api/batches/{batch}").json()["status"] == BatchStatus.CANCELLED
    return batch


def _changes(stage: Stage) -> int:
    with stage.store.reading() as tx:
        return len(audit_page(tx))


def test_a_batch_is_cancelled_with_all_its_phases(client: Client, stage: Stage, published: Any) -> None:
    batch = _batch_that_is("phase", client, stage)
    stage.handle()
    done = client.post(f"/api/batches/{batch}/cancel", json={"reason": "called off"}).json()
    assert (done["phases"], done["steps"], done["jobsInFlight"]) == (2, 2, 0)
    phases = client.get(f"/api/batches/{batch}/phases").json()["items"]
    assert [(phase["phaseName"], phase["status"]) for phase in phases] == [
        ("first", "cancelled"),
        ("second", "cancelled"),
    ]
    assert phases[0]["steps"] == {"cancelled": 2}
    assert client.get("/api/audit").json()["items"][0]["reason"] == "called off"
    assert [row["id"] for row in client.get("/api/batches", params={"status": "cancelled"}).json()["items"]] == [batch]
    refusal(client.get("/api/batches/4711/phases"), 404, "AD404")


def test_a_dead_letter_is_sent_again_under_a_new_id(client: Client, stage: Stage, published: Any) -> None:
    batch = create(client, "ann@x")["batchId"]
    client.post(f"/api/batches/{batch}/advance")
    (message,) = stage.bus.receive(stage.events_of_orchestrator, 10)
    stage.bus.dead_letter(message, "poison", "it was in the way")
    (letter,) = client.get("/api/dead-letters").json()["items"]
    assert letter["reason"] == "poison"
    sent = client.post(f"/api/dead-letters/{letter['id']}/resend", json={"reason": "fixed"}).json()
    assert sent["letterId"] == letter["id"]
    assert sent["messageId"] != letter["messageId"]
    stage.run()
    assert client.get(f"/api/batches/{batch}").json()["status"] == "active"
