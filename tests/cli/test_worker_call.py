"""`matoolkit worker call`: one call of a function, without a batch and without a database."""

import json
from pathlib import Path
from typing import Any

import pytest

from matoolkit.cli.program import run
from matoolkit.clock import SystemClock
from matoolkit.worker.tenant import Tenant, TenantServer

GROUP = "22222222-aaaa-4bbb-8ccc-00000000000a"
ENABLE = ("Set-EntraUserEnabled", "--param", "UserId=ada@fabrikam.com", "--param", "Enabled=true")
OWN = '''
from matoolkit.worker import Context, FunctionFailed, Secret, function

@function("Show-Job")
def show_job(context: Context, api_key: Secret, things: list = (), fails: bool = False) -> dict:
    """Show what it gets."""
    if fails:
        raise FunctionFailed(f"no door opens with {api_key}", "NoDoor")
    return {"Key": api_key, "Things": things, "Step": context.job.step, "Attempt": context.job.attempt}
'''


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "sqlite:////nowhere/at/all.db")
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "own.py").write_text(OWN, encoding="utf-8")
    return functions


def called(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    ended = run(["worker", "call", "--json", *arguments])
    shown = capsys.readouterr()
    assert ended == code, shown.err
    found: dict[str, Any] = json.loads(shown.out)
    return found


def test_a_function_meets_a_tenant_that_knows_whom_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    done = called(capsys, *ENABLE)
    assert (done["outcome"], done["result"], done["error"]) == ("done", True, None)
    assert done["tenant"] == "simulated, made for this call"
    assert run(["worker", "call", *ENABLE]) == 0
    assert "outcome   done" in capsys.readouterr().out


def test_work_that_is_polled_is_complete_or_not(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    member = ("--param", f"GroupId={GROUP}", "--param", "UserId=ada@fabrikam.com")
    assert called(capsys, "Test-EntraGroupMembership", *member)["outcome"] == "complete"
    (folder / "own.py").write_text(
        "from matoolkit.worker import Context, function\n\n@function('Wait-Long')\ndef wait_long(context: Context)"
        " -> dict:\n    '''Wait.'''\n    return {'complete': False}\n",
        encoding="utf-8",
    )
    done = called(capsys, "Wait-Long", "--functions", str(folder))
    assert done["outcome"].startswith("not complete yet")


def test_a_tenant_that_runs_is_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tenant = Tenant(SystemClock())
    with TenantServer(tenant) as server:
        monkeypatch.setenv("SIMULATED_TENANT_URL", server.url)
        failed = called(capsys, *ENABLE, code=1)
    assert failed["outcome"] == "failed"
    assert failed["errorType"] == "ObjectMissing"
    assert failed["tenant"] == server.url
    assert tenant.calls


def test_a_function_of_your_own_gets_secrets_lists_and_its_job_and_no_secret_is_shown(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATOOLKIT_SECRET_DOOR", "open-sesame")
    given = ("--functions", str(folder), "--param", "ApiKey=secret:door")
    done = called(capsys, "show-job", *given, "--param-json", 'Things=["a", 1]')
    assert done["result"] == {"Key": "***", "Things": ["a", 1], "Step": "call", "Attempt": 1}
    failed = called(capsys, "Show-Job", *given, "--param", "Fails=true", code=1)
    assert (failed["error"], failed["errorType"]) == ("no door opens with ***", "NoDoor")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Set-EntraUserEnabld",), "did you mean 'Set-EntraUserEnabled'?"),
        (("Set-EntraUserEnabled", "--param", "UserId=a"), "needs --param Enabled=BOOLEAN"),
        ((*ENABLE, "--param", "Enabeld=1"), "did you mean 'Enabled'?"),
        ((*ENABLE, "--param", "nothing"), "is not NAME=VALUE"),
        ((*ENABLE, "--param-json", "Enabled={"), "Enabled is not JSON"),
        (("Set-EntraUserPassword", "--param", "UserId=a", "--param", "Password=x"), "Password=secret:NAME"),
    ],
)
def test_what_cannot_be_called_is_said_before_anything_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run(["worker", "call", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_real_tenant_is_changed_only_after_a_yes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TARGET_TENANT_ID", "APP_ID", "CERT_NAME"):
        monkeypatch.setenv(name, "11111111-2222-4333-8444-555555555555")
    monkeypatch.setenv("KEY_VAULT_NAME", "vault")
    monkeypatch.setenv("TARGET_ORGANIZATION", "contoso.onmicrosoft.com")
    assert run(["worker", "call", *ENABLE]) == 2
    assert "may change the tenant 11111111" in capsys.readouterr().err
