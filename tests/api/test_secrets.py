"""Rule W8: rows that people see hold no secrets."""

from typing import Any

import pytest
from httpx import Client

from matoolkit.bus.topology import jobs_of_worker
from matoolkit.domain.messages import AnnouncedFunction, AnnouncedParameter, WorkerHello
from matoolkit.ports import Outgoing
from tests.conftest import Rows
from tests.stage import SOURCE, WORKER, Failing, Stage

SECRET = "Correct-Horse-9"
SOURCE_WITH_PASSWORDS = SOURCE.replace("Email, Name, Start", "Email, Name, Start, Pw, Token")
CREATE = "{name: create, worker_id: worker-01, function: %s, params: {%s}}"
PLAIN = CREATE % ("Custom-Create", "Upn: '{{Email}}'")
WITH_PASSWORD = CREATE % ("New-EntraUser", "DisplayName: '{{Name}}', Password: '{{PW}}'")
WITH_TOKEN = CREATE % ("Send-It", "Token: '{{Token}}'")


def publish(client: Client, step: str = PLAIN, rest: str = "") -> None:
    phases = f"phases:\n  - name: first\n    offset: T-1d\n    steps:\n      - {step}\n"
    document = f"name: wave\n{SOURCE_WITH_PASSWORDS}{phases}{rest}"
    done = client.post("/api/runbooks", json={"yamlContent": document})
    assert done.status_code == 201, done.text


def upload(client: Client, pw: str = SECRET) -> Any:
    text = f"Email,Name,Start,Pw,Token\r\nada,Ada,,{pw},t-1\r\n"
    done = client.post("/api/batches", data={"runbookName": "wave"}, files={"file": ("p.csv", text.encode())})
    assert done.status_code == 201, done.text
    return done.json()["batchId"]


def member(client: Client, batch: int) -> Any:
    (listed,) = client.get(f"/api/batches/{batch}/members").json()["items"]
    shown = client.get(f"/api/batches/{batch}/members/{listed['id']}").json()
    assert {name: shown[name] for name in listed} == listed
    return shown


@pytest.mark.parametrize(
    ("step", "rest"),
    [
        (WITH_PASSWORD, ""),
        (PLAIN, f"on_member_removed:\n  - {WITH_PASSWORD}\n"),
        (PLAIN.replace("params", "on_failure: back, params"), f"rollbacks:\n  back:\n    - {WITH_PASSWORD}\n"),
    ],
    ids=["step", "removal", "rollback"],
)
def test_w8_a_secret_column_is_masked_in_members(client: Client, step: str, rest: str) -> None:
    publish(client, step, rest)
    row = {"Email": "ada", "Name": "Ada", "Start": "", "Pw": "***", "Token": "t-1"}
    assert member(client, upload(client))["data"] == row


def test_w8_a_column_that_no_secret_parameter_gets_is_shown(client: Client) -> None:
    publish(client, CREATE % ("Custom-Create", "Note: '{{Pw}}'"))
    assert member(client, upload(client))["data"]["Pw"] == SECRET


def test_w8_a_column_that_was_secret_once_stays_so(client: Client) -> None:
    publish(client, WITH_PASSWORD)
    before = upload(client)
    publish(client, CREATE % ("New-EntraUser", "Password: secret:initial-password"))
    client.post(f"/api/batches/{before}/cancel", json={})
    assert [member(client, batch)["data"]["Pw"] for batch in (before, upload(client))] == ["***", "***"]


def test_w8_what_a_worker_announces_as_secret_is_masked_from_then_on(client: Client, stage: Stage) -> None:
    publish(client, WITH_TOKEN)
    batch = upload(client)
    assert member(client, batch)["data"]["Token"] == "t-1"
    hello = WorkerHello(WORKER, (AnnouncedFunction("send-it", (AnnouncedParameter("TOKEN", "string", True, True),)),))
    stage.bus.send([Outgoing("hello", hello)])
    stage.handle()
    assert member(client, batch)["data"]["Token"] == "***"


def test_w8_a_secret_column_is_masked_in_previews(client: Client, source: Rows) -> None:
    source.rows = [("ada", "Ada", "2030-01-01T00:00:00Z"), ("bob", None, "2030-01-01T00:00:00Z")]
    publish(client, CREATE % ("New-EntraUser", "Password: '{{name}}'"))
    shown = client.post("/api/runbooks/wave/query/preview").json()
    assert [row["Name"] for row in shown["sampleRows"]] == ["***", None]


@pytest.mark.parametrize("is_dead", [False, True], ids=["failed", "dead letter"])
def test_w8_nothing_that_can_be_looked_at_tells_a_secret(client: Client, stage: Stage, is_dead: bool) -> None:
    publish(client, WITH_PASSWORD)
    batch = upload(client)
    stage.answers["New-EntraUser"] = Failing(f"bad password {SECRET}", f"Bad_{SECRET}")
    client.post(f"/api/batches/{batch}/advance", json={})
    stage.handle()
    if is_dead:
        for message in stage.bus.receive(jobs_of_worker(WORKER), 10):
            stage.bus.dead_letter(message, "Poison", "the worker choked on it")
    stage.sweep()
    stage.run()
    shown = member(client, batch)
    assert shown["status"] == "failed"
    of_batch = ("failures", "phases", "members.csv", "steps", "steps.csv")
    paths = [
        *(f"/api/batches/{batch}/{rest}" for rest in of_batch),
        f"/api/batches/{batch}",
        *(
            "/api/audit",
            "/api/members?key=ada",
            "/api/members/history?key=ada",
            "/api/dead-letters",
            "/api/runbooks/wave/status",
        ),
        *("/api/runbooks/wave/template", "/metrics", *(["/api/dead-letters/1"] if is_dead else [])),
    ]
    answers = [client.get(path) for path in paths]
    assert {answer.status_code for answer in answers} == {200}
    assert SECRET not in "".join(answer.text for answer in answers) + str(shown)
    assert ("bad password ***" in answers[0].text) is not is_dead


def test_w8_nobody_is_found_by_a_guess_at_a_secret(client: Client) -> None:
    def found() -> int:
        return len(client.get("/api/members/meant", params={"who": "Horse@9"}).json()["items"])

    publish(client)
    batch = upload(client, "horse@9")
    assert found() == 1
    client.post(f"/api/batches/{batch}/cancel", json={})
    publish(client, WITH_PASSWORD)
    upload(client, "horse@9")
    assert found() == 0
