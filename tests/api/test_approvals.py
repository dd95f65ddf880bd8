"""Rules S1 to S7, G11 and A5 through the API: people who signed in sign off, each once, exactly what was shown."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from httpx import Client

from matoolkit.clock import VirtualClock
from matoolkit.doors.entra import Entra
from matoolkit.doors.services import Services
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.store.batches import BatchRow
from matoolkit.store.runbooks import active_runbook
from tests.api.test_auth import APP, TENANT, Keys, signed
from tests.servers.api import serving
from tests.servers.http import served
from tests.stage import SOURCE, Stage

pytestmark = pytest.mark.on("sqlite")

CUTOVER = """\
phases:
  - name: cutover
    offset: T-5d
    approval: {count: 2, not_publisher: true}
    steps:
      - {name: move, worker_id: worker-01, function: Move}
"""


@dataclass
class People:
    """Signed-in people at the API."""

    api: Client

    def get(self, path: str, **params: Any) -> Any:
        answer = self.api.get(path, params=params, headers=self._header("reader", []))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def asked(self, batch: BatchRow) -> Any:
        (one,) = self.get(f"/api/batches/{batch.id}/approvals")["items"]
        return one

    def say(self, who: str, what: str, asked: Any, roles: Any = ("Approver",), **more: Any) -> Any:
        """Send what somebody says of what was shown, and return the answer."""
        claims = more.pop("claims", {})
        place = "init" if asked["phaseId"] is None else f"phases/{asked['phaseId']}"
        body: dict[str, Any] = {} if what == "withdraw" else {"digest": asked["digest"]}
        return self.api.post(
            f"/api/batches/{asked['batchId']}/{place}/{what}",
            json={**body, **more},
            headers=self._header(who, list(roles), **claims),
        )

    def _header(self, who: str, roles: list[str], **claims: Any) -> dict[str, str]:
        token = signed(**{"preferred_username": f"{who}@contoso.example", "roles": roles, **claims})
        return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def people(services: Services, clock: VirtualClock) -> Iterator[People]:
    with served(Keys()) as keys:
        entra = Entra(TENANT, APP, clock, keys_url=f"{keys}/keys")
        with serving(replace(services, sign_in=entra)) as address, Client(base_url=address, timeout=60) as api:
            yield People(api)


def detected(stage: Stage, document: str = CUTOVER, members: int = 2) -> BatchRow:
    return stage.batch(stage.publish(document), members)


def problem(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_s2_what_is_asked_is_shown_and_two_people_sign_it_off(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    assert (asked["subject"], asked["phaseName"], asked["version"], asked["memberCount"]) == ("phase", "cutover", 1, 2)
    assert (asked["steps"], asked["firstMembers"]) == ([{"name": "move", "function": "Move"}], ["u0", "u1"])
    assert (asked["count"], asked["by"], asked["publishedBy"]) == (2, ["role:Approver"], "anna")
    first = people.say("jmarin", "approve", asked, reason="the list is right").json()
    assert (first["state"], first["waits"]) == (
        "waiting",
        f"waits for approval: 1 of 2 given (jmarin@contoso.example {stage.now:%H:%M} UTC)",
    )
    second = people.say("kwu", "approve", asked).json()
    assert (second["state"], second["waits"]) == ("given", None)
    (given, _) = second["signed"]
    assert (given["signedBy"], given["isSignedIn"], given["reason"]) == (
        "jmarin@contoso.example",
        True,
        "the list is right",
    )
    assert people.get("/api/approvals")["items"] == []
    assert len(people.get("/api/approvals", state="all")["items"]) == 1


def test_s2_the_list_of_what_waits_says_what_is_missing(people: People, stage: Stage) -> None:
    detected(stage)
    (one,) = people.get("/api/approvals", state="waiting")["items"]
    assert (one["phaseName"], one["state"], one["waits"]) == ("cutover", "waiting", "waits for approval: 0 of 2 given")
    assert "digest" not in one, "the list of all batches counts no members one by one"


def test_s2_yesterdays_list_is_refused_with_counts_and_names(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    stage.join(batch, "late")
    answer = people.say("jmarin", "approve", asked)
    assert problem(answer) == (409, "SO409")
    assert answer.json()["detail"].endswith("1 member joined (late)")


def test_s4_only_people_with_the_role_sign_and_an_administrator_has_it(people: People, stage: Stage) -> None:
    asked = people.asked(detected(stage))
    for roles in ([], ["Operator"]):
        assert problem(people.say("zoe", "approve", asked, roles)) == (403, "AP403")
    assert people.say("zoe", "approve", asked, ["Admin"]).status_code == 200


@pytest.mark.parametrize("claims", [{"scp": None}, {"scp": None, "idtyp": "app"}, {"idtyp": "app"}], ids=str)
def test_s4_an_application_does_not_count(people: People, stage: Stage, claims: dict[str, Any]) -> None:
    asked = people.asked(detected(stage))
    assert problem(people.say("pipeline", "approve", asked, ["Admin"], claims=claims)) == (403, "SO406")
    assert people.get(f"/api/batches/{asked['batchId']}/approvals")["items"][0]["signed"] == []


def test_s4_the_publisher_and_the_same_person_twice_are_refused(people: People, stage: Stage) -> None:
    token = signed(preferred_username="anna@contoso.example")
    text = f"name: wave\n{SOURCE}{CUTOVER}"
    done = people.api.post("/api/runbooks", json={"yamlContent": text}, headers={"Authorization": f"Bearer {token}"})
    assert done.status_code == 201, done.text
    with stage.store.reading() as tx:
        runbook = active_runbook(tx, "wave")
    assert runbook is not None
    asked = people.asked(stage.batch(runbook, 2))
    assert problem(people.say("Anna", "approve", asked)) == (403, "SO405")
    people.say("jmarin", "approve", asked)
    again = people.say("JMarin", "approve", asked)
    assert problem(again) == (409, "SO410")
    assert f"`matoolkit approval withdraw {asked['batchId']} cutover`" in again.json()["hint"]


@pytest.mark.parametrize("claims", [{"name": "J. Marin"}, {"name": None}], ids=["a name for display", "a number"])
def test_s4_a_token_that_does_not_say_as_whom_a_person_signs_in_does_not_count(
    people: People, stage: Stage, claims: dict[str, Any]
) -> None:
    asked = people.asked(detected(stage))
    people.say("jmarin", "approve", asked)
    # The same person with a token that was asked for without `profile` would count once more.
    again = people.say("jmarin", "approve", asked, claims={"preferred_username": None, **claims})
    assert problem(again) == (403, "SO417")
    # A name for display may be that of somebody else, who has signed.
    taken = {"preferred_username": None, "name": "jmarin@contoso.example"}
    assert problem(people.say("zoe", "withdraw", asked, claims=taken)) == (403, "SO417")


def test_s4_the_publisher_is_known_by_every_name_of_the_token(people: People, stage: Stage) -> None:
    stripped = signed(preferred_username=None, name=None, oid="0b9c")
    text = f"name: wave\n{SOURCE}{CUTOVER}"
    done = people.api.post("/api/runbooks", json={"yamlContent": text}, headers={"Authorization": f"Bearer {stripped}"})
    assert done.status_code == 201, done.text
    with stage.store.reading() as tx:
        runbook = active_runbook(tx, "wave")
    assert runbook is not None
    assert runbook.published_by == "0b9c"
    asked = people.asked(stage.batch(runbook, 2))
    assert problem(people.say("anna", "approve", asked, claims={"oid": "0B9C"})) == (403, "SO405")


def test_s4_only_those_who_are_named_sign(people: People, stage: Stage) -> None:
    document = CUTOVER.replace("{count: 2, not_publisher: true}", "{by: [kwu@contoso.example, 'role:ChangeBoard']}")
    asked = people.asked(detected(stage, document))
    assert problem(people.say("jmarin", "approve", asked)) == (403, "SO403")
    assert people.say("jmarin", "approve", asked, ["Approver", "ChangeBoard"]).json()["state"] == "given"


def test_s6_reject_then_approve_then_withdraw(people: People, stage: Stage) -> None:
    asked = people.asked(detected(stage))
    assert problem(people.say("kwu", "reject", asked)) == (422, "AP422"), "it says why"
    assert people.say("kwu", "reject", asked, reason="payroll runs that night").json()["state"] == "rejected"
    people.say("jmarin", "approve", asked)
    assert people.say("zoe", "approve", asked).json()["state"] == "rejected"
    assert problem(people.say("ann", "withdraw", asked)) == (409, "SO415")
    assert people.say("kwu", "withdraw", asked, reason="it was moved").json()["state"] == "given"


def test_s6_what_has_begun_cannot_be_withdrawn_or_approved(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    for who in ("jmarin", "kwu"):
        people.say(who, "approve", asked)
    dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now)
    assert people.asked(batch)["state"] == "begun"
    assert problem(people.say("jmarin", "withdraw", asked)) == (409, "SO411")
    assert problem(people.say("zoe", "approve", asked)) == (409, "SO411")


def test_s1_init_is_signed_off_at_its_own_address(people: People, stage: Stage) -> None:
    document = (
        "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\ninit_approval: {}\n"
        + CUTOVER.replace("    approval: {count: 2, not_publisher: true}\n", "")
    )
    asked = people.asked(detected(stage, document))
    assert (asked["subject"], asked["phaseId"], asked["phaseName"]) == ("init", None, None)
    assert people.say("jmarin", "reject", asked, reason="not yet").json()["state"] == "rejected"
    people.say("jmarin", "withdraw", asked)
    assert people.say("jmarin", "approve", asked).json()["state"] == "given"


def test_s2_what_is_not_there_or_asks_for_nothing_is_said(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    assert problem(people.say("jmarin", "approve", {**asked, "phaseId": 999})) == (404, "SO404")
    assert problem(people.say("jmarin", "approve", {**asked, "batchId": 999})) == (404, "AD404")
    assert problem(people.say("jmarin", "approve", {**asked, "phaseId": None})) == (409, "SO412")
    assert problem(people.say("jmarin", "approve", {**asked, "digest": "nonsense"})) == (409, "SO409")


def test_s4_a_request_that_comes_twice_signs_once(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    path = f"/api/batches/{batch.id}/phases/{asked['phaseId']}/approve"
    headers = {"Authorization": f"Bearer {signed(roles=['Approver'])}", "Idempotency-Key": "one"}
    answers = [people.api.post(path, json={"digest": asked["digest"]}, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(people.asked(batch)["signed"]) == 1


def test_a5_every_act_is_in_the_audit_log_with_its_person_and_reason(people: People, stage: Stage) -> None:
    batch = detected(stage)
    asked = people.asked(batch)
    people.say("jmarin", "approve", asked, reason="seen")
    people.say("kwu", "reject", asked, reason="payroll")
    entries = people.get("/api/audit", batchId=batch.id)["items"]
    assert [(entry["action"], entry["actor"], entry["reason"]) for entry in entries] == [
        ("approval.reject", "kwu@contoso.example", "payroll"),
        ("approval.approve", "jmarin@contoso.example", "seen"),
    ]
    assert entries[1]["after"]["digest"] == asked["digest"]


@pytest.mark.parametrize(
    "digest",
    ["v99999999999999999999999-manual-99999999999999999999999-99999999999999999999999-x", "v1-manual-9-1-x", "\0"],
    ids=["numbers that no column holds", "another one", "NUL"],
)
def test_s2_a_digest_that_nobody_was_shown_is_refused_and_nothing_is_signed(
    people: People, stage: Stage, digest: str
) -> None:
    batch = detected(stage)
    assert problem(people.say("jmarin", "approve", people.asked(batch) | {"digest": digest})) == (409, "SO409")
    assert people.asked(batch)["signed"] == []


def test_s6_a_rejection_without_a_reason_is_refused(people: People, stage: Stage) -> None:
    asked = people.asked(detected(stage))
    assert problem(people.say("jmarin", "reject", asked, reason="  ")) == (422, "AP422")
