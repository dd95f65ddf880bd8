"""W8: a secret is fetched by the worker, given to the function that needs it, and is nowhere else."""

import base64
import html
import io
import json
import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import ResultStatus
from matoolkit.ports import Outgoing
from matoolkit.settings import WorkerSettings
from matoolkit.system import build_worker
from matoolkit.telemetry import configure_logging
from matoolkit.worker import Context, FunctionFailed, Registry, Secret, function
from matoolkit.worker.clients.api import told
from matoolkit.worker.failures import SecretsBusy, SecretUnavailable
from matoolkit.worker.masking import Masking
from matoolkit.worker.secrets import EnvironmentSecrets, KeyVault, WorkerSecrets, key_vault
from matoolkit.worker.streams import guarded_streams
from tests.servers.http import Answer, Request, served
from tests.workshop import Workshop, job

pytestmark = pytest.mark.on("sqlite")

SECRET = 'Tr0ub4dor&"3 /\\ü'
# Variables of the system, of Azure, of a source, and of a runbook that was written for an older version.
OTHERS = {
    "MATOOLKIT_DATABASE_URL": "postgres://x",
    "APP_ID": "app",
    "AZURE_CLIENT_SECRET": "azure",
    "PEOPLE_URL": "sqlite://",
    "OLD_PASSWORD": "old",
}


@pytest.fixture
def workshop(workshop: Workshop) -> Workshop:
    workshop.environ = {"MATOOLKIT_SECRET_INITIAL_PASSWORD": SECRET, **OTHERS}
    return workshop


@contextmanager
def logged(masking: Masking, log_format: str = "json") -> Iterator[io.StringIO]:
    logger = logging.getLogger("matoolkit")
    last_resort = logging.lastResort
    formatter = last_resort.formatter if last_resort else None
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    configure_logging("DEBUG", log_format, stream)
    masking.guard(logger)
    try:
        yield stream
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
        if last_resort:
            last_resort.setFormatter(formatter)


def database_text(workshop: Workshop) -> str:
    with workshop.store.engine.connect() as connection:
        tables = ("bus_messages", "dead_letters", "outbox")
        return str([connection.exec_driver_sql(f"SELECT * FROM {table}").all() for table in tables])


@pytest.mark.parametrize("name", ["INITIAL_PASSWORD", "initial-password", " INITIAL_PASSWORD "])
def test_w8_a_secret_parameter_that_names_a_secret_gets_it(workshop: Workshop, name: str) -> None:
    assert workshop.result_of("Return-It", Value=1, Password=f"secret:{name}").status is ResultStatus.SUCCESS
    assert workshop.calls == [("Return-It", (1, SECRET, ""))]


def test_w8_a_password_is_resolved_at_any_depth(workshop: Workshop) -> None:
    value = {"profile": [{"password": "secret:INITIAL_PASSWORD", "name": "secret"}]}
    result = workshop.result_of("Return-It", Value=value)
    assert workshop.calls[0][1][0] == {"profile": [{"password": SECRET, "name": "secret"}]}
    assert result.result == {"profile": [{"password": "***", "name": "secret"}]}


def test_w8_a_reference_in_any_other_parameter_fetches_nothing(workshop: Workshop) -> None:
    result = workshop.result_of("Show-Secret", Password="p", Name="secret:INITIAL_PASSWORD")
    assert result.error is not None
    assert result.error.type == "InvalidParameters"
    assert "Name is not a secret parameter" in result.error.message
    assert workshop.calls == []


@pytest.mark.parametrize("name", ["NOT_THERE", "matoolkit-database-url", "azure.client-secret", *OTHERS])
def test_w8_only_variables_with_the_prefix_of_secrets_are_secrets(workshop: Workshop, name: str) -> None:
    result = workshop.result_of("Show-Secret", Password=f"secret:{name}")
    assert result.error is not None
    assert result.error.type == "SecretUnavailable"
    variable = f"MATOOLKIT_SECRET_{name.replace('-', '_').replace('.', '_').upper()}"
    assert result.error.message == f"the secret {name} is not in the worker's environment: it is read from {variable}"
    assert workshop.calls == []


@pytest.mark.parametrize("given", ["secret:INITIAL_PASSWORD", SECRET])
@pytest.mark.parametrize("log_format", ["text", "json"])
def test_w8_secrets_are_masked_in_results_errors_and_logs(workshop: Workshop, given: str, log_format: str) -> None:
    with logged(workshop.masking, log_format) as stream:
        workshop.send("Show-Secret", 1, Password=given, Name=f"x{SECRET}y")
        workshop.send("Raise-It", 2, Password=given, Kind="failed")
        workshop.send("Raise-It", 3, Password=given, Kind="wrong:")
        jobs = database_text(workshop)
        workshop.runner().turn()
    assert len(workshop.calls) == 1
    assert workshop.calls[0][1][0] == SECRET
    pile = workshop.bus.receive(RESULTS_OF_ORCHESTRATOR, 10)
    told = "".join(one.body for one in pile) + stream.getvalue() + database_text(workshop)
    for piece in ("Tr0ub4dor", "dor&", '"3 /'):
        assert piece not in told
    assert ("Tr0ub4dor" in jobs) is True
    assert "it is ***." in told
    assert "no such user ***" in told
    assert "wrong: ***" in told
    assert "ValueError" in stream.getvalue()


def test_w8_the_password_of_one_job_does_not_spoil_the_result_of_another(workshop: Workshop) -> None:
    workshop.send("Show-Secret", 1, Password="contoso", Name="n")
    workshop.send("Return-It", 2, Value="ada@contoso.example")
    workshop.runner().turn()
    results = workshop.results()
    assert results["step-2-attempt-1"].result == "ada@contoso.example"
    assert results["step-1-attempt-1"].result == {"Said": "it is ***.", "***": ["***", {"deep": "***"}], "Name": "n"}


def test_w8_a_short_secret_is_masked_only_where_it_stands_alone(workshop: Workshop) -> None:
    result = workshop.result_of("Show-Secret", Password="a", Name="anna and a")
    assert result.result == {"Said": "it is ***.", "***": ["***", {"deep": "***"}], "Name": "anna and ***"}


def test_w8_a_password_that_a_function_makes_up_is_masked_until_the_job_ends(workshop: Workshop) -> None:
    @function("New-Password")
    def new_password(context: Context) -> str:
        """Make up a password, and be careless with it."""
        context.secrets.conceal("made-up-password")
        context.secrets.conceal("made-up-password")
        logging.getLogger("matoolkit.worker").info("it is made-up-password")
        return "made-up-password"

    workshop.registry.register(new_password)
    with logged(workshop.masking) as stream:
        sent = job(1, "New-Password")
        workshop.bus.send([Outgoing(sent.job_id, sent)])
        workshop.runner().turn()
    assert "it is ***" in stream.getvalue()
    assert [one.result for one in workshop.results().values()] == ["***"]
    assert workshop.masking.outgoing("made-up-password") == "made-up-password"


def test_w8_a_token_is_masked_from_then_on() -> None:
    masking = Masking()
    masking.conceal("eyJ0eXAi.token")
    masking.conceal("")
    WorkerSecrets(EnvironmentSecrets({}), masking).conceal("outside of any job")
    assert masking.text("outside of any job") == "***"
    assert masking.outgoing({"a": ["Bearer eyJ0eXAi.token"]}) == {"a": ["Bearer ***"]}
    assert masking.text("Bearer eyJ0eXAi.token") == "Bearer ***"


@pytest.mark.parametrize(
    "written",
    [
        '{"p": "Tr0ub4dor&\\"3 /\\\\\\u00fc"}',
        "p=Tr0ub4dor%26%223%20%2F%5C%C3%BC",
        "p=Tr0ub4dor%26%223+%2F%5C%C3%BC",
        "p=Tr0ub4dor%26%223%20/%5c%c3%bc",
        "p=Tr0ub4dor&%223%20%2f\\%C3%BC",
        repr({"p": SECRET}),
        repr({"p": SECRET.encode()}),
        json.dumps({"said": json.dumps({"p": SECRET})}),
        json.dumps({"said": repr(SECRET.encode())}),
        html.escape(f"<b>{SECRET}</b>"),
        "<b>Tr0ub4dor&amp;&#34;3 /\\ü</b>".replace("&#34;", "&quot;"),
    ],
)
def test_w8_a_secret_is_recognised_however_it_is_written(written: str) -> None:
    masking = Masking()
    masking.conceal(SECRET)
    assert "Tr0ub4dor" not in masking.text(written)


@pytest.mark.parametrize("before", ["", "u:", "user:", "ada@contoso.example:"])
@pytest.mark.parametrize("after", ["", "\n", ":x"])
def test_w8_a_secret_is_recognised_in_base64_wherever_it_stands(before: str, after: str) -> None:
    masking = Masking()
    masking.conceal("Tr0ub4dor&3?>~battery")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        written = encode(f"{before}Tr0ub4dor&3?>~battery{after}".encode()).decode()
        told = masking.text(f"Authorization: Basic {written}")
        assert "***" in told
        # What is left of it are the letters that the texts before and after share with it.
        assert len(told) <= len("Authorization: Basic ***") + 2 * len(before + after) + 6


def test_w8_text_that_only_looks_quoted_stays_as_it_is() -> None:
    masking = Masking()
    masking.conceal(SECRET)
    assert masking.text("100% of Tr0ub4dor%26 + 5%2") == "100% of Tr0ub4dor%26 + 5%2"


def test_w8_the_kind_of_an_error_is_masked_like_its_message(workshop: Workshop) -> None:
    @function("Fail-With")
    def fail_with(context: Context, password: Secret) -> None:
        """Fail, and name the failure after the password."""
        raise FunctionFailed("no", f"Wrong_{password}")

    workshop.registry.register(fail_with)
    result = workshop.result_of("Fail-With", Password=SECRET)
    assert result.error is not None
    assert result.error.type == "Wrong_***"


@pytest.mark.parametrize("before", range(280, 301))
def test_w8_what_a_service_says_is_never_cut_in_the_middle_of_a_secret(before: int) -> None:
    masking = Masking()
    masking.conceal("Correct-Horse-9")
    said = masking.text(told(f"{'x' * (before - 1)} Correct-Horse-9 is wrong"))
    assert said.endswith(" …")
    assert "Corr" not in said


def test_w8_a_number_in_a_secret_place_is_a_secret_too(workshop: Workshop) -> None:
    result = workshop.result_of("Return-It", Value={"Pin": 271828, "Said": "it is 271828", "Other": 5}, Password=271828)
    assert result.result == {"Pin": "***", "Said": "it is ***", "Other": 5}


def test_w8_all_that_stands_in_a_secret_place_is_secret(workshop: Workshop) -> None:
    given = {"password": {"old": "Correct-Horse-1", "new": ["secret:initial-password"]}}
    result = workshop.result_of("Return-It", Value=given)
    assert workshop.calls[0][1][0] == {"password": {"old": "Correct-Horse-1", "new": [SECRET]}}
    assert result.result == {"password": {"old": "***", "new": ["***"]}}


def test_w8_what_a_function_prints_is_masked_in_its_threads_too(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    @function("Say-It")
    def say_it(context: Context, password: Secret) -> None:
        """Be careless in every way."""

        def in_a_thread() -> None:
            print("the thread has", password)  # noqa: T201
            raise LookupError(password)

        print("printed:", password)  # noqa: T201
        print("to stderr:", password, file=sys.stderr)  # noqa: T201
        sys.stdout.writelines([f"line: {password}\n"])
        sys.stdout.flush()
        sys.stdout.buffer.write(f"bytes: {password}\n".encode())
        sys.stdout.buffer.flush()
        thread = threading.Thread(target=in_a_thread)
        thread.start()
        thread.join()

    workshop.registry.register(say_it)
    hook, threading.excepthook = threading.excepthook, threading.__excepthook__
    try:
        with guarded_streams(workshop.masking):
            workshop.result_of("Say-It", Password=SECRET)
    finally:
        threading.excepthook = hook
    said = capsys.readouterr()
    assert "Tr0ub4dor" not in said.out + said.err
    for line in ("printed: ***", "line: ***", "bytes: ***", "the thread has ***"):
        assert line in said.out
    for line in ("to stderr: ***", "LookupError: ***"):
        assert line in said.err


class Broken(logging.Handler):
    """A handler that fails, which logging tells on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            raise OSError("the disk is full")
        except OSError:
            self.handleError(record)


def test_w8_with_json_logs_what_a_function_prints_to_stderr_is_json_too(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @function("Say-It")
    def say_it(context: Context, password: Secret) -> None:
        """Print in pieces, and leave the last line open."""
        print("one", password, file=sys.stderr)  # noqa: T201
        sys.stderr.writelines(["two\n", "\n"])
        print("three", end="", file=sys.stderr, flush=True)  # noqa: T201

    workshop.registry.register(say_it)
    with logged(workshop.masking) as stream, guarded_streams(workshop.masking):
        monkeypatch.setattr(logging.getLogger("matoolkit.worker.streams"), "handlers", [Broken()])
        workshop.result_of("Say-It", Password=SECRET)
    events = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    printed = [event for event in events if event.startswith("a function printed")]
    assert printed == [f"a function printed: {line}" for line in ("one ***", "two", "three")]
    assert "Logging error" in capsys.readouterr().err


def test_w8_a_thread_that_outlives_its_job_is_masked_as_well(workshop: Workshop) -> None:
    go, done = threading.Event(), threading.Event()

    @function("Leave-AThread")
    def leave_a_thread(context: Context, password: Secret) -> None:
        """Let a thread speak later."""

        def later() -> None:
            go.wait(30)
            logging.getLogger("matoolkit.worker").info("at last: %s", password)
            done.set()

        threading.Thread(target=later).start()

    workshop.registry.register(leave_a_thread)
    with logged(workshop.masking) as stream:
        workshop.result_of("Leave-AThread", Password=SECRET)
        go.set()
        assert done.wait(30)
    assert "at last: ***" in stream.getvalue()


def test_w8_the_longer_of_two_secrets_is_masked_whole() -> None:
    masking = Masking()
    masking.conceal("password1")
    masking.conceal("password123")
    assert masking.text("password123 password1") == "*** ***"


@pytest.mark.parametrize("name", ["The-Certificate", "the_certificate", "THE.CERTIFICATE"])
def test_w8_the_worker_gives_its_own_certificate_to_no_job(workshop: Workshop, name: str) -> None:
    settings = WorkerSettings(cert_name="the-certificate")
    environ = {"MATOOLKIT_SECRET_THE_CERTIFICATE": "pfx"}
    runner = build_worker(workshop.bus, settings, "w", Registry(), Masking(), environ, workshop.clock)
    with pytest.raises(SecretUnavailable, match="the worker's own"):
        runner._execution.context.secrets.get(name)  # noqa: SLF001


@dataclass
class Vault:
    """A Key Vault that may have trouble first."""

    secrets: dict[str, Any] = field(default_factory=dict)
    trouble: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if self.trouble:
            return self.trouble.pop(0)
        name = request.path.removeprefix("/secrets/").removesuffix("?api-version=7.4")
        if request.headers.get("Authorization") != "Bearer vault-token":
            return Answer({"error": {"code": "Unauthorized"}}, 401)
        if name not in self.secrets:
            return Answer({"error": {"code": "SecretNotFound", "message": f"{name} was not found"}}, 404)
        return Answer({"value": self.secrets[name], "id": f"https://v.vault.azure.net/secrets/{name}/1"})


@contextmanager
def opened(vault: Vault, clock: VirtualClock, token: str = "vault-token") -> Iterator[KeyVault]:
    with served(vault) as address:
        client = KeyVault(address, lambda: token, clock)
        yield client
        client.close()


def test_w8_a_secret_is_read_from_the_key_vault_and_kept_for_a_while(clock: VirtualClock) -> None:
    vault = Vault({"initial-password": SECRET})
    with opened(vault, clock) as client:
        assert [client.read("initial-password") for _ in range(3)] == [SECRET] * 3
        assert [request.path for request in vault.requests] == ["/secrets/initial-password?api-version=7.4"]
        vault.secrets["initial-password"] = "renewed"
        clock.advance(timedelta(seconds=301))
        assert client.read("initial-password") == "renewed"


def test_w8_a_key_vault_that_is_busy_or_breaks_off_is_asked_again(clock: VirtualClock) -> None:
    vault = Vault({"p": SECRET}, [Answer(status=429), Answer(is_reset=True), Answer(status=503)])
    with opened(vault, clock) as client:
        assert client.read("p") == SECRET
    assert len(vault.requests) == 4


def test_w8_a_key_vault_that_gives_no_answer_is_left_alone_for_a_while(clock: VirtualClock) -> None:
    vault = Vault({"p": SECRET}, [Answer(status=503)] * 4)
    with opened(vault, clock) as client:
        for _ in range(3):
            with pytest.raises(SecretsBusy) as caught:
                client.read("p")
            assert caught.value.is_throttled
        assert len(vault.requests) == 4
        clock.advance(timedelta(seconds=16))
        assert client.read("p") == SECRET


def test_w8_a_key_vault_gets_the_time_it_asks_for(clock: VirtualClock) -> None:
    vault = Vault({"p": SECRET}, [Answer(status=429, headers={"Retry-After": "12"})])
    with opened(vault, clock) as client:
        assert client.read("p") == SECRET
    assert clock.monotonic() == 12


def test_w8_nobody_waits_long_for_a_key_vault_but_all_leave_it_alone_as_long_as_it_asks(clock: VirtualClock) -> None:
    vault = Vault({"p": SECRET}, [Answer(status=429, headers={"Retry-After": "100"})])
    with opened(vault, clock) as client:
        for seconds in (0, 99):
            clock.advance(timedelta(seconds=seconds))
            with pytest.raises(SecretsBusy):
                client.read("p")
        assert len(vault.requests) == 1
        clock.advance(timedelta(seconds=1))
        assert client.read("p") == SECRET


@pytest.mark.parametrize(
    ("vault", "name", "token", "why"),
    [
        (Vault(), "p", "vault-token", "the Key Vault has no secret p"),
        (Vault({"p": "x"}), "p", "another", "Key Vault Secrets User"),
        (Vault({"p": ""}), "p", "vault-token", "has no value"),
        (Vault({"p": 5}), "p", "vault-token", "has no value"),
        (Vault({}, [Answer(b"<html>", 200)]), "p", "vault-token", "has no value"),
        (Vault({}, [Answer(status=400)]), "p", "vault-token", "answers HTTP 400"),
        (Vault({}, [Answer(status=503)] * 4), "p", "vault-token", "answers HTTP 503"),
        (Vault({}, [Answer(is_reset=True)] * 4), "p", "vault-token", "does not give its secrets"),
        (Vault(), "../keys/k", "vault-token", "letters, digits and - only"),
        (Vault(), "under_score", "vault-token", "letters, digits and - only"),
    ],
)
def test_w8_what_a_key_vault_does_not_give_is_a_clear_failure(
    clock: VirtualClock, vault: Vault, name: str, token: str, why: str
) -> None:
    with opened(vault, clock, token) as client, pytest.raises(SecretUnavailable, match=why) as caught:
        client.read(name)
    assert token not in str(caught.value)


def test_w8_a_named_vault_is_asked_with_the_identity_of_the_process(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, workshop: Workshop
) -> None:
    class Signs:
        def answer(self, request: Request) -> Answer:
            assert "resource=https://vault.azure.net" in request.path
            return Answer({"access_token": "vault-token", "expires_on": "4102444800", "token_type": "Bearer"})

    with served(Signs()) as identity:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{identity}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "h")
        client = key_vault("contoso", clock)
        assert str(client._client.base_url) == "https://contoso.vault.azure.net"  # noqa: SLF001
        assert client._token() == "vault-token"  # noqa: SLF001
        client.close()


def test_w8_without_a_vault_the_environment_is_read(workshop: Workshop) -> None:
    environ = {"MATOOLKIT_SECRET_PIN": "1234", "PIN": "4321"}
    runner = build_worker(workshop.bus, WorkerSettings(), "w", Registry(), Masking(), environ, workshop.clock)
    assert runner._execution.context.secrets.get("Pin") == "1234"  # noqa: SLF001
