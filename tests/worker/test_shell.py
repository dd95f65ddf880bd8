"""W5: PowerShell that stays signed in, tried with a stand-in for `pwsh` that speaks as session.ps1 does."""

import base64
import json
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidSettings
from matoolkit.settings import WorkerSettings
from matoolkit.worker.clients.failures import (
    Forbidden,
    ObjectMissing,
    ObjectTaken,
    Rejected,
    SignInFailed,
    Unanswered,
    UnreadableAnswer,
)
from matoolkit.worker.context import Context
from matoolkit.worker.failures import FunctionFailed, Throttled
from matoolkit.worker.powershell import script_function
from matoolkit.worker.shell import Connection, SecureExchange, Shell, ShellExchange, ShellSignIn
from matoolkit.worker.shell.choice import exchange_of, open_shell
from tests.threads import in_threads
from tests.waiting import until
from tests.worker.functions.office import Concealed

CERTIFICATE = b"the certificate and its key"
GRAPH = (Connection.GRAPH,)

# What stands in for a script is Python; `arguments` are its parameters, `answer` ends it.
PWSH = f"""#!{sys.executable}
import base64, json, os, sys, time
assert sys.argv[1:5] == ["-NoLogo", "-NoProfile", "-NonInteractive", "-File"], sys.argv
assert sys.argv[5].endswith("session.ps1") and os.path.exists(sys.argv[5]) and len(sys.argv) == 6
journal = open(os.path.join(os.path.dirname(sys.argv[0]), "journal"), "a")
print("a banner", flush=True)
for line in sys.stdin:
    request = json.loads(line)
    journal.write(json.dumps([os.getpid(), request]) + "\\n")
    journal.flush()
    def answer(**given):
        print(json.dumps({{"id": request["id"], **given}}), flush=True)
    if "connect" in request:
        is_known = base64.b64decode(request["certificate"]) == {CERTIFICATE!r}
        answer(result=None) if is_known else answer(error="AADSTS700027: no such certificate", type="MsalException")
        continue
    arguments = request["arguments"]
    if "cmdlet" in request:
        exec(open(os.path.join(os.path.dirname(sys.argv[0]), "cmdlet")).read())
    else:
        exec(open(request["script"]).read().split("#>", 1)[-1])
"""


@pytest.fixture
def pwsh(tmp_path: Path) -> Path:
    program = tmp_path / "bin" / "pwsh"
    program.parent.mkdir()
    program.write_text(PWSH, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    return program


@pytest.fixture
def shell(pwsh: Path, clock: VirtualClock) -> Iterator[Shell]:
    shell = Shell(str(pwsh), sign_in(), clock, job_seconds=60)
    yield shell
    shell.close()


def sign_in(certificate: bytes = CERTIFICATE) -> ShellSignIn:
    return ShellSignIn("tenant-1", "app-1", "contoso.onmicrosoft.com", lambda: certificate)


def asked(pwsh: Path) -> list[tuple[int, dict[str, Any]]]:
    """What sessions were asked, each with the process that was."""
    lines = (pwsh.parent / "journal").read_text(encoding="utf-8").splitlines()
    return [(pid, request) for pid, request in map(json.loads, lines)]


def script(folder: Path, code: str, name: str = "Get-Thing.ps1") -> Path:
    path = folder / name
    path.write_text(code, encoding="utf-8")
    return path


def cmdlet(pwsh: Path, code: str) -> None:
    (pwsh.parent / "cmdlet").write_text(code, encoding="utf-8")


def test_w5_a_session_signs_in_once_and_does_many_jobs(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    doubled = script(tmp_path, "answer(result={'Twice': arguments['Number'] * 2})")
    for number in range(5):
        assert shell.run_script(doubled, {"Number": number}, GRAPH) == {"Twice": 2 * number}
    assert shell.run_script(doubled, {"Number": 7}, tuple(Connection)) == {"Twice": 14}
    calls = asked(pwsh)
    assert len({pid for pid, _ in calls}) == 1
    connects = [request for _, request in calls if "connect" in request]
    assert [request["connect"] for request in connects] == ["Graph", "Exchange"]
    assert connects[0] | {"id": ""} == {
        "id": "",
        "connect": "Graph",
        "tenantId": "tenant-1",
        "appId": "app-1",
        "organization": "contoso.onmicrosoft.com",
        "environment": "Global",
        "certificate": base64.b64encode(CERTIFICATE).decode(),
    }


def test_w5_each_thread_has_a_session_for_itself(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waits = script(
        tmp_path, f"open({str(gate)!r}, 'a').write('x')\nwhile len(open({str(gate)!r}).read()) < 3: pass\nanswer()"
    )
    in_threads([lambda: shell.run_script(waits, {}, GRAPH)] * 3)
    assert len({pid for pid, _ in asked(pwsh)}) == 3
    shell.run_script(script(tmp_path, "answer()", "Get-Other.ps1"), {}, GRAPH)
    assert len({pid for pid, _ in asked(pwsh)}) == 3, "one of those that wait is used"


def test_w5_lines_that_are_no_answer_are_ignored(shell: Shell, tmp_path: Path) -> None:
    chatty = script(
        tmp_path, "print('Working...')\nprint('{\"id\": \"another\", \"result\": 1}')\nprint('[]')\nanswer(result='ö')"
    )
    assert shell.run_script(chatty, {}, GRAPH) == "ö"


@pytest.mark.parametrize(
    ("given", "type_", "message"),
    [
        ("error='no such ticket', type='TicketException'", "TicketException", "Get-Thing: no such ticket"),
        ("error='', type=''", "ScriptFailed", "Get-Thing: no reason given"),
    ],
)
def test_w5_a_script_that_fails_is_told_and_its_session_goes_on(
    shell: Shell, pwsh: Path, tmp_path: Path, given: str, type_: str, message: str
) -> None:
    with pytest.raises(FunctionFailed) as caught:
        shell.run_script(script(tmp_path, f"answer({given})"), {}, GRAPH)
    assert (caught.value.type, caught.value.message) == (type_, message)
    assert shell.run_script(script(tmp_path, "answer(result=1)"), {}, GRAPH) == 1
    assert len({pid for pid, _ in asked(pwsh)}) == 1


def test_w4_a_script_that_is_throttled_says_so(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(Throttled, match="Too many requests"):
        shell.run_script(script(tmp_path, "answer(error='Too many requests', throttled=True)"), {}, GRAPH)


def test_w5_a_session_that_dies_in_mid_job_fails_that_job_alone(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    dies = script(tmp_path, "print('out of memory', file=sys.stderr); sys.exit(9)")
    with pytest.raises(FunctionFailed, match=r"may be done \(exit code 9: out of memory\)") as caught:
        shell.run_script(dies, {}, GRAPH)
    assert caught.value.type == "SessionEnded"
    assert shell.run_script(script(tmp_path, "answer(result=1)"), {}, GRAPH) == 1
    assert len({pid for pid, _ in asked(pwsh)}) == 2


def test_w8_a_session_that_dies_tells_nothing_of_the_job_before(shell: Shell, tmp_path: Path) -> None:
    careless = script(tmp_path, "print('it is Correct-Horse-9', file=sys.stderr, flush=True)\nanswer(result=1)")
    shell.run_script(careless, {}, GRAPH)
    (member,) = shell._idle  # noqa: SLF001
    until(lambda: member.session._trouble)  # noqa: SLF001
    with pytest.raises(FunctionFailed, match=r"\(exit code 9\)$"):
        shell.run_script(script(tmp_path, "sys.exit(9)"), {}, GRAPH)


def test_w8_what_a_session_said_last_is_cut_between_words(shell: Shell, tmp_path: Path) -> None:
    dies = script(tmp_path, "print('Correct-Horse-9' + ' x' * 245, file=sys.stderr)\nsys.exit(9)")
    with pytest.raises(FunctionFailed) as caught:
        shell.run_script(dies, {}, GRAPH)
    assert "rse-9" not in caught.value.message
    assert "exit code 9: … x x" in caught.value.message


def test_w5_a_session_that_died_while_it_waited_is_replaced(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    last = script(tmp_path, "answer(result=1); sys.exit(0)")
    assert shell.run_script(last, {}, GRAPH) == 1
    (member,) = shell._idle  # noqa: SLF001
    member.session._process.wait(30)  # noqa: SLF001
    assert shell.run_script(last, {}, GRAPH) == 1
    assert len({pid for pid, _ in asked(pwsh)}) == 2


def test_w5_a_session_that_takes_too_long_is_ended(pwsh: Path, tmp_path: Path, clock: VirtualClock) -> None:
    shell = Shell(str(pwsh), sign_in(), clock, job_seconds=0.2)
    with pytest.raises(FunctionFailed, match="took longer than") as caught:
        shell.run_script(script(tmp_path, "time.sleep(600)"), {}, GRAPH)
    assert caught.value.type == "SessionEnded"
    shell.close()


def test_w5_a_session_is_replaced_after_an_hour_so_that_a_renewed_certificate_is_used(
    shell: Shell, pwsh: Path, tmp_path: Path, clock: VirtualClock
) -> None:
    one = script(tmp_path, "answer()")
    for seconds in (0, 3599, 1):
        clock.sleep(seconds)
        shell.run_script(one, {}, GRAPH)
    assert len({pid for pid, _ in asked(pwsh)}) == 2


def test_w5_a_sign_in_that_fails_is_told_as_one(pwsh: Path, tmp_path: Path, clock: VirtualClock) -> None:
    shell = Shell(str(pwsh), sign_in(b"another"), clock)
    with pytest.raises(SignInFailed, match="could not be connected to Graph: AADSTS700027") as caught:
        shell.run_script(script(tmp_path, "answer()"), {}, GRAPH)
    assert base64.b64encode(b"another").decode() not in caught.value.message
    shell.close()


def test_w5_a_program_that_is_gone_is_told(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    pwsh.unlink()
    with pytest.raises(FunctionFailed, match="Get-Thing could not be started: No such file"):
        shell.run_script(script(tmp_path, "answer()"), {}, GRAPH)


def test_w5_closing_ends_every_session(shell: Shell, pwsh: Path, tmp_path: Path) -> None:
    shell.run_script(script(tmp_path, "answer()"), {}, GRAPH)
    (member,) = shell._idle  # noqa: SLF001
    shell.close()
    assert not member.session.is_alive
    assert "pwsh" not in {thread.name for thread in threading.enumerate()}


def test_w5_a_cmdlet_runs_with_its_password_apart(shell: Shell, pwsh: Path) -> None:
    cmdlet(pwsh, "answer(result=[{'Name': arguments['Name']}])")
    found = ShellExchange(shell).run("New-MailUser", {"Name": "jane"}, password="top-secret")
    assert found == [{"Name": "jane"}]
    _, request = asked(pwsh)[-1]
    assert (request["cmdlet"], request["arguments"], request["password"]) == (
        "New-MailUser",
        {"Name": "jane"},
        "top-secret",
    )


@pytest.mark.parametrize(("result", "rows"), [("None", []), ("{'A': 1}", [{"A": 1}]), ("[{'A': 1}]", [{"A": 1}])])
def test_w5_a_cmdlet_returns_objects_however_many(shell: Shell, pwsh: Path, result: str, rows: Any) -> None:
    cmdlet(pwsh, f"answer(result={result})")
    assert ShellExchange(shell).run("Get-MailUser", {}) == rows


@pytest.mark.parametrize(
    ("answered", "failure"),
    [
        ("answer(error='x', type='ManagementObjectNotFoundException')", ObjectMissing),
        ("answer(error='x', type='ProxyAddressExistsException')", ObjectTaken),
        ("answer(error='x', type='PropertyValidationException')", Rejected),
        ("answer(error='x', type='CommandNotFoundException')", Forbidden),
        ("sys.exit(1)", Unanswered),
        ("answer(error='x', throttled=True)", Throttled),
        ("answer(result='text')", UnreadableAnswer),
    ],
)
def test_w5_a_cmdlet_fails_as_it_would_over_https(
    shell: Shell, pwsh: Path, answered: str, failure: type[FunctionFailed]
) -> None:
    cmdlet(pwsh, answered)
    with pytest.raises(FunctionFailed) as caught:
        ShellExchange(shell).run("Set-MailUser", {"Identity": "jane"})
    assert type(caught.value) is failure


class Https:
    """Exchange over HTTPS, which notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, cmdlet: str, parameters: Any, *, password: str | None = None) -> list[dict[str, Any]]:  # noqa: ARG002
        self.asked.append(cmdlet)
        return []


REAL = {"target_tenant_id": "t", "app_id": "a", "cert_name": "c"}


def test_a_setting_sends_passwords_through_powershell(
    shell: Shell, pwsh: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(pwsh.parent))
    https = Https()
    assert exchange_of(WorkerSettings.model_validate(REAL), https, shell) is https
    chosen = WorkerSettings.model_validate({**REAL, "create_mail_users_with": "powershell"})
    opened = open_shell(chosen, str, clock)
    assert opened is not None
    exchange = exchange_of(chosen, https, shell)
    assert isinstance(exchange, SecureExchange)
    cmdlet(pwsh, "answer(result=None)")
    exchange.run("Get-MailUser", {"Identity": "jane"})
    exchange.run("New-MailUser", {"Name": "jane"}, password="top-secret")
    assert https.asked == ["Get-MailUser"]
    assert asked(pwsh)[-1][1]["cmdlet"] == "New-MailUser"


def test_powershell_that_is_chosen_and_not_there_is_refused_at_start(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    chosen = WorkerSettings.model_validate({**REAL, "create_mail_users_with": "powershell"})
    assert open_shell(chosen, str, clock) is None
    with pytest.raises(InvalidSettings, match="CREATE_MAIL_USERS_WITH is powershell"):
        exchange_of(chosen, Https(), None)


HELP = "<#\n.SYNOPSIS\n  Gets it.\n.PARAMETER UserId\n  string, mandatory.\n#>\n"


@pytest.mark.parametrize(
    ("requires", "connections"),
    [
        ("#Requires -Modules Microsoft.Graph.Users", ["Graph"]),
        ("#requires -module ExchangeOnlineManagement", ["Exchange"]),
        (
            "#Requires -Modules @{ ModuleName = 'Microsoft.Graph.Authentication' }, ExchangeOnlineManagement",
            ["Graph", "Exchange"],
        ),
    ],
)
def test_w5_a_script_that_requires_a_module_runs_signed_in(
    shell: Shell, pwsh: Path, tmp_path: Path, clock: VirtualClock, requires: str, connections: list[str]
) -> None:
    path = script(tmp_path, f"{requires}\n{HELP}answer(result=arguments)")
    context = Context(None, None, clock, "t", Concealed(), shell)
    assert script_function(path, str(pwsh)).run(context, {"userid": "ada"}) == {"UserId": "ada"}
    assert [request["connect"] for _, request in asked(pwsh) if "connect" in request] == connections


def test_w5_a_script_that_needs_a_tenant_says_that_there_is_none(
    tmp_path: Path, pwsh: Path, clock: VirtualClock
) -> None:
    path = script(tmp_path, f"#Requires -Modules Microsoft.Graph.Users\n{HELP}answer()")
    with pytest.raises(FunctionFailed, match="Get-Thing needs a session that is signed in"):
        script_function(path, str(pwsh)).run(Context(None, None, clock, "t", Concealed()), {"UserId": "ada"})
