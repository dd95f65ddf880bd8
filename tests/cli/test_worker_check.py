"""`matoolkit worker check`: what a worker's application lacks, and what its tenant answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matoolkit.cli.program import run
from matoolkit.clock import SystemClock
from matoolkit.worker.functions import built_in
from matoolkit.worker.needs import ROLE_IDS, NeedKind
from matoolkit.worker.tenant import Tenant, TenantServer
from matoolkit.worker.tenant.calls import Request
from tests.worker.clients.test_tokens import Credential

RUNBOOK = """
name: groups
data_source:
  type: sql
  connection: PEOPLE
  query: SELECT UserId, T, Verb FROM people
  primary_key: UserId
  batch_time_column: T
phases:
  - name: join
    offset: T-0
    steps:
      - name: add
        worker_id: target
        function: Add-EntraGroupMember
        params: {GroupId: "22222222-aaaa-4bbb-8ccc-000000000001", UserId: "{{UserId}}"}
      - name: source-side
        worker_id: source
        function: New-EntraUser
        params: {DisplayName: "{{UserId}}", UserPrincipalName: "{{UserId}}", MailNickname: x}
      - name: chosen
        worker_id: target
        function: "{{Verb}}-EntraGroupMember"
        allowed_functions: [Add-EntraGroupMember, Remove-EntraGroupMember]
        params: {GroupId: "22222222-aaaa-4bbb-8ccc-000000000001", UserId: "{{UserId}}"}
      - name: own
        worker_id: target
        function: Send-Note
"""


@pytest.fixture
def tenant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tenant]:
    tenant = Tenant(SystemClock())
    tenant.directory.add_user(
        {
            "userPrincipalName": "jane@contoso.example",
            "displayName": "Jane",
            "exchange": {"RecipientTypeDetails": "MailUser"},
        },
        is_seeded=True,
    )
    tenant.directory.add_group("staff")
    with TenantServer(tenant) as server:
        monkeypatch.setenv("SIMULATED_TENANT_URL", server.url)
        yield tenant


def lacks(tenant: Tenant, *names: str) -> None:
    assert tenant.answer(Request("POST", "/_tenant/application", body={"lacks": list(names)})).status == 200


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[tuple[str, str], dict[str, Any]]]:
    code = run(["worker", "check", "-o", "json", *arguments])
    found = json.loads(capsys.readouterr().out)
    return code, {(one["kind"], one["name"]): one for one in found}


def test_an_application_that_has_everything_passes(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys)
    assert code == 0
    assert {one["outcome"] for one in found.values()} == {"ok"}
    assert found["sign-in", "Graph"]["said"].startswith("application simulated in tenant")
    assert found["read", "user"]["said"] == "answered: jane@contoso.example"
    assert found["read", "group"]["said"] == "answered: staff"
    assert found["read", "recipient"]["said"] == "answered: jane@contoso.example"
    needed = {name for one in found.values() for name in one["functions"]}
    assert needed == {function.name for function in built_in()}


def test_nothing_is_changed(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    checked(capsys)
    assert [label.partition(" ")[0] for label, _ in tenant.calls if "InvokeCommand" not in label] == ["GET", "GET"]
    assert [label.rpartition(" ")[2] for label, _ in tenant.calls if "InvokeCommand" in label] == ["Get-Recipient"]


def test_a_permission_that_is_missing_is_named_with_the_functions_that_need_it(
    tenant: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks(tenant, "User-ConvertToInternal.ReadWrite.All", "User.ReadWrite.All")
    code, found = checked(capsys)
    assert code == 1
    missing = found["permission", "User-ConvertToInternal.ReadWrite.All"]
    assert missing["outcome"] == "missing"
    assert missing["functions"] == ["Convert-EntraB2BToInternal"]
    assert missing["said"] == (
        "grant User-ConvertToInternal.ReadWrite.All (or User.ReadWrite.All);"
        " source: Graph beta, user: convertExternalToInternalMemberUser"
    )


def test_a_permission_that_allows_more_is_enough(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    lacks(tenant, "User-ConvertToInternal.ReadWrite.All")
    code, found = checked(capsys)
    assert code == 0
    assert found["permission", "User-ConvertToInternal.ReadWrite.All"]["said"] == "granted by User.ReadWrite.All"


def test_a_read_that_is_refused_is_told(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    lacks(tenant, "GroupMember.Read.All", "GroupMember.ReadWrite.All")
    code, found = checked(capsys)
    assert code == 1
    assert found["read", "group"]["outcome"] == "failed"
    assert "Insufficient privileges" in found["read", "group"]["said"]
    assert found["read", "user"]["outcome"] == "ok"


def test_a_role_that_is_in_no_token_is_unknown_while_recipients_can_be_read(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = tenant.application.claims()
    claims["exchange"]["wids"] = []
    monkeypatch.setattr(tenant.application, "claims", lambda: claims)
    code, found = checked(capsys)
    assert code == 0
    role = found["role", "Exchange Recipient Administrator"]
    assert role["outcome"] == "unknown"
    assert "an Exchange role group may allow it, which cannot be read" in role["said"]


def test_what_a_token_that_cannot_be_read_allows_is_unknown(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenant.application, "claims", lambda: {"graph": {}, "exchange": {}})
    code, found = checked(capsys)
    assert code == 0
    assert found["permission", "User.Read.All"]["said"] == "the token cannot be read"
    assert found["read", "user"]["outcome"] == "ok"


def test_a_role_is_missing_when_recipients_cannot_be_read(tenant: Tenant, capsys: pytest.CaptureFixture[str]) -> None:
    lacks(tenant, "Exchange Recipient Administrator")
    code, found = checked(capsys)
    assert code == 1
    assert found["role", "Exchange Recipient Administrator"]["outcome"] == "missing"
    assert found["read", "recipient"]["outcome"] == "failed"


def test_a_runbook_asks_only_for_what_its_steps_of_this_worker_call(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text(RUNBOOK, encoding="utf-8")
    code, found = checked(capsys, "--runbook", str(file), "--id", "target")
    assert code == 1
    assert ("sign-in", "Exchange") not in found
    assert {name for kind, name in found if kind == "permission"} == {
        "User.Read.All",
        "GroupMember.Read.All",
        "GroupMember.ReadWrite.All",
    }
    assert found["permission", "GroupMember.ReadWrite.All"]["functions"] == [
        "Add-EntraGroupMember",
        "Remove-EntraGroupMember",
    ]
    assert found["function", "Send-Note"]["said"] == "this worker has no such function"
    _, everybody = checked(capsys, "--runbook", str(file))
    assert ("permission", "User.ReadWrite.All") in everybody


def test_a_function_of_your_own_that_declares_nothing_is_unknown(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text(
        'from matoolkit.worker import Context, function\n\n@function("Send-Note")\n'
        'def send_note(context: Context) -> bool:\n    """Send."""\n    return True\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("CUSTOM_MODULES_PATH", str(tmp_path))
    code, found = checked(capsys)
    assert code == 0
    assert found["function", "Send-Note"]["outcome"] == "unknown"


def test_a_file_of_your_own_that_cannot_be_used_is_told(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text("def", encoding="utf-8")
    monkeypatch.setenv("CUSTOM_MODULES_PATH", str(tmp_path))
    code, found = checked(capsys)
    assert code == 1
    assert "SyntaxError" in found["function", "own.py"]["said"]


def test_powershell_that_is_chosen_and_not_there_is_told(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREATE_MAIL_USERS_WITH", "powershell")
    monkeypatch.setenv("PATH", "")
    code, found = checked(capsys)
    assert code == 1
    assert found["program", "pwsh"]["outcome"] == "missing"


def test_people_get_a_table_and_what_is_wrong_in_whole_sentences(
    tenant: Tenant, capsys: pytest.CaptureFixture[str]
) -> None:
    lacks(tenant, "User.Invite.All", "User.ReadWrite.All")
    assert run(["worker", "check"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split() == ["CHECK", "NAME", "STATUS", "ANSWER", "FUNCTIONS"]
    assert "missing: permission User.Invite.All: grant User.Invite.All (or " in printed.err
    assert " missing" in printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("tenant_id", "code"),
    [
        ("99999999-aaaa-4bbb-8ccc-000000000001", 0),
        ("contoso.onmicrosoft.com", 0),
        ("99999999-aaaa-4bbb-8ccc-000000000002", 4),
    ],
)
def test_a_token_of_another_tenant_is_a_sign_in_that_failed(
    tenant: Tenant, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tenant_id: str, code: int
) -> None:
    monkeypatch.setenv("TARGET_TENANT_ID", tenant_id)
    found = checked(capsys)
    assert found[0] == code
    assert ("TARGET_TENANT_ID is another" in found[1]["sign-in", "Graph"]["said"]) == (code == 4)


def test_a_worker_without_tenant_is_told_what_to_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["worker", "check"]) == 2
    said = capsys.readouterr().err
    assert "set TARGET_TENANT_ID, APP_ID, CERT_NAME, or SIMULATED_TENANT_URL" in said


def test_a_tenant_that_is_not_there_is_a_sign_in_that_failed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_TENANT_URL", "http://127.0.0.1:1")
    code, found = checked(capsys)
    assert code == 4
    assert found["sign-in", "Graph"]["outcome"] == "failed"
    assert found["permission", "User.Read.All"]["outcome"] == "unknown"
    assert not [name for kind, name in found if kind == "read"]


def test_a_sign_in_that_entra_refuses_is_told_without_anything_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from azure.core.exceptions import ClientAuthenticationError

    monkeypatch.setattr("azure.identity.CertificateCredential", Credential)
    monkeypatch.setattr(Credential, "fails_with", ClientAuthenticationError("AADSTS700027: the key is not known"))
    for name, value in {"TARGET_TENANT_ID": "t", "APP_ID": "a", "CERT_NAME": "cert"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MATOOLKIT_SECRET_CERT", "dG9wLXNlY3JldA==")
    assert run(["worker", "check"]) == 4
    printed = capsys.readouterr()
    assert "AADSTS700027" in printed.err
    assert "dG9wLXNlY3JldA==" not in printed.out + printed.err


def test_a_real_token_is_read_for_tenant_permissions_and_roles(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, clock: Any
) -> None:
    import jwt

    from matoolkit.worker.clients import CertificateTokens

    given = {"tid": "t-1", "roles": ["User.Read.All"], "wids": [ROLE_IDS["Global Reader"]]}
    token = jwt.encode(given, "k" * 32)
    tokens = CertificateTokens("t-1", "a", lambda: b"", "scope", clock)
    monkeypatch.setattr(tokens, "token", lambda: token)
    assert tokens.claims() == given
    monkeypatch.setattr(tokens, "token", lambda: "opaque")
    assert tokens.claims() == {}


def test_every_role_that_a_function_needs_can_be_found_in_a_token() -> None:
    roles = {name for one in built_in() for need in one.needs if need.kind is NeedKind.ROLE for name in need.any_of}
    assert roles <= ROLE_IDS.keys()
