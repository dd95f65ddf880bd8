"""The sample runbook, function by function, in a tenant that lags, throttles and breaks connections (rules W2, W4, W9).

No orchestrator here: members do one step after the other, each in a thread, with the waits that the runbook says.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from matoolkit.clock import SystemClock
from matoolkit.runbook.calls import CallTemplate
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.templates import Json, Scope
from matoolkit.worker.clients import open_http
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.directory import MAILBOX
from matoolkit.worker.tenant.licences import E3
from tests.worker.functions.office import Office
from tests.worker.functions.office import office as new_office

RUNBOOK = parse_runbook((Path(__file__).parents[3] / "runbooks" / "user-migration.yaml").read_bytes())
LICENCES = "44444444-aaaa-4bbb-8ccc-000000000001"
MEMBERS = 40
THREADS = 8


@dataclass
class Offices:
    """The tenant that people leave and the one to which they move, on one clock."""

    source: Office
    target: Office

    def of(self, step: Step) -> Office:
        return self.source if step.worker_id == "worker-source" else self.target


@pytest.fixture
def offices() -> Iterator[Offices]:
    with (
        TenantServer(Tenant(SystemClock())) as server,
        TenantServer(Tenant(SystemClock())) as other,
        open_http(use_proxies=False) as http,
        new_office(server, http) as target,
        new_office(other, http, clock=target.clock) as source,
    ):
        directory = target.tenant.directory
        directory.applications[str(init_params()["UserId"])] = "us"
        directory.add_group("permissions", str(init_params()["GroupId"]), [str(init_params()["UserId"])])
        directory.add_group("licences", LICENCES, licences=[E3])
        yield Offices(source, target)


def init_params() -> dict[str, Any]:
    return dict(RUNBOOK.init[0].params)


def member(offices: Offices, number: int) -> dict[str, Json]:
    """Give somebody a mailbox to move."""
    upn, legacy = f"person{number}@source.example", f"/o=Source/cn=person{number}"
    mailbox = {"ExchangeGuid": str(UUID(int=number)), "LegacyExchangeDN": legacy}
    person = {"displayName": f"Person {number}", "userPrincipalName": upn}
    exchange = {"RecipientTypeDetails": MAILBOX, **mailbox}
    offices.source.tenant.directory.add_user({**person, "exchange": exchange}, is_seeded=True)
    offices.target.tenant.directory.remote_mailboxes[mailbox["ExchangeGuid"]] = {"LegacyExchangeDN": legacy}
    return {
        "SourceUserId": f"source-{number}",
        "SourceUpn": upn,
        "DisplayName": f"Person {number}",
        "MailNickname": f"person{number}",
        "TargetUpn": f"person{number}@contoso.example",
        "PrimaryEmail": f"person.{number}@contoso.example",
        "ProxyAddresses": [f"smtp:p{number}@contoso.example"],
        "LicenceGroupId": LICENCES,
    }


def make_everything_go_wrong(office: Office) -> None:
    """Spoil the day, though for no single call more often than it is tried."""
    directory = office.tenant.directory
    directory.lags.graph, directory.lags.exchange, directory.lags.sync = 10, 20, 1800
    office.goes_wrong("throttle", "/v1.0/", times=2, retry_after=20, retry_after_as_date=True)
    office.goes_wrong("throttle", "Set-MailUser", times=2)
    office.goes_wrong("lost", "New-MailUser", times=2)
    office.goes_wrong("lost", "$ref", times=2)
    office.goes_wrong("lost", "Set-MailUser", times=3)
    office.goes_wrong("lost", "PATCH", times=2)
    office.goes_wrong("reset", "GET", times=3)
    office.goes_wrong("busy", "Get-MailUser", times=5)
    office.goes_wrong("limit", "/v1.0/", calls=30, seconds=10)


def migrate(offices: Offices, data: dict[str, Json], *, is_interrupted: bool = False) -> dict[str, Json]:
    """Take one member through all phases; an interrupted one does every step twice, as after a worker's death."""
    outputs: dict[str, Json] = {}
    for phase in RUNBOOK.phases:
        if phase.name == "cutover" and data["SourceUserId"] == "source-20":
            offices.target.tenant.expire_tokens()
        for step in phase.steps:
            scope = Scope({"_member_key": data["SourceUserId"]}, outputs, data)
            result = do(offices.of(step), RUNBOOK, step, scope)
            if is_interrupted:
                do(offices.of(step), RUNBOOK, step, scope)
            outputs |= {variable: result[field] for variable, field in step.output_params.items()}
    return outputs


def do(office: Office, runbook: Runbook, step: Step, scope: Scope) -> Any:
    """Call a step's function as the orchestrator would: poll, retry, and never count being throttled."""
    call = CallTemplate(step).resolve(scope, "member")
    retry = runbook.retry_of(step)
    assert retry
    left = retry.max_retries
    while True:
        try:
            result = office.run(call.function, call.params)
        except Throttled:
            office.clock.sleep(300)
            continue
        except FunctionFailed:
            if not left:
                raise
            left -= 1
            office.clock.sleep((retry.interval or timedelta(minutes=5)).total_seconds())
            continue
        if not step.poll or result["complete"]:
            return result
        office.clock.sleep(step.poll.interval.total_seconds())


@pytest.mark.parametrize("is_interrupted", [False, True], ids=["once", "every-step-twice"])
def test_every_member_ends_as_the_runbook_says(offices: Offices, is_interrupted: bool) -> None:
    office = offices.target
    assert do(office, RUNBOOK, RUNBOOK.init[0], Scope({}, {}, {}))["complete"] is True
    make_everything_go_wrong(office)
    members = [member(offices, number) for number in range(1, MEMBERS + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        outputs = list(pool.map(lambda one: migrate(offices, one, is_interrupted=is_interrupted), members))

    directory = office.tenant.directory
    assert len(directory.users) == MEMBERS + 2
    for data, output in zip(members, outputs, strict=True):
        user = directory.users[str(output["TargetUserId"])]
        assert output["AccountCreated"] is True
        assert user.upn == data["TargetUpn"]
        assert user.properties["accountEnabled"] is True
        assert user.passwords_set == 1
        assert user.id in directory.groups[LICENCES].members
        assert (user.kind, user.mail["ExchangeGuid"]) == (MAILBOX, output["MailboxGuid"])
        assert set(user.current) == {
            f"SMTP:{data['PrimaryEmail']}",
            f"smtp:{data['TargetUpn']}",
            *data["ProxyAddresses"],  # type: ignore[misc]
            *output["X500Addresses"],
        }


def test_what_was_made_is_undone_and_what_was_there_stays(offices: Offices) -> None:
    """The sample's rollback: an account that the step made is removed, one that it found is not."""
    office = offices.target
    make_everything_go_wrong(office)
    found = {**member(offices, 1), "TargetUpn": "jane@contoso.example", "SourceEmail": "person1@source.example"}
    made = {**member(offices, 2), "SourceEmail": "person2@source.example"}
    create, undo = RUNBOOK.phases[0].steps[1], RUNBOOK.rollbacks["undo-account"][0]
    before = set(office.tenant.directory.users)
    for data in (found, made):
        result = do(office, RUNBOOK, create, Scope({}, {}, data))
        outputs = {variable: result[field] for variable, field in create.output_params.items()}
        for _ in range(2):
            assert do(office, RUNBOOK, undo, Scope({}, outputs, data)) is True
    assert set(office.tenant.directory.users) == before
    assert len(office.tenant.directory.deleted) == 1
