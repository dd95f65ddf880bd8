"""W1: a worker that cannot sign in takes no job, and no job fails because of it."""

import base64
from types import SimpleNamespace
from typing import Any, Self

import httpx
import pytest
from azure.core.exceptions import ClientAuthenticationError

from matoolkit.clock import SystemClock
from matoolkit.domain.messages import ResultStatus
from matoolkit.store import Store
from matoolkit.worker import Context, function
from matoolkit.worker.health import health_served
from matoolkit.worker.runner import Runner
from tests.databases import Database
from tests.waiting import until
from tests.workshop import Workshop, job_id_of

TENANT = {"target_tenant_id": "t", "app_id": "a", "cert_name": "the-certificate"}
VARIABLE = "MATOOLKIT_SECRET_THE_CERTIFICATE"
PFX = base64.b64encode(b"pfx").decode()


class Entra:
    """Stands in for Entra: signs in, or not."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.tries = 0
        self.seconds = 3600.0

    def credential(self, *_: Any, **__: Any) -> "Entra":
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_token(self, scope: str) -> SimpleNamespace:
        self.tries += 1
        if self.fault:
            raise self.fault
        return SimpleNamespace(token=f"{scope}-{self.tries}", expires_on=SystemClock().now().timestamp() + self.seconds)


@pytest.fixture
def entra(monkeypatch: pytest.MonkeyPatch) -> Entra:
    made = Entra()
    monkeypatch.setattr("azure.identity.CertificateCredential", made.credential)
    monkeypatch.setattr("matoolkit.worker.clients.tokens._FAILED_SECONDS", 0)
    monkeypatch.setattr("matoolkit.worker.runner._FIRST_SIGN_IN_SECONDS", 0.01)
    monkeypatch.setattr("matoolkit.worker.runner._LONGEST_SIGN_IN_SECONDS", 0.01)
    return made


@pytest.fixture
def store(database: Database) -> Store:
    """A store on the real clock: the worker's threads wait for it."""
    return database.open()


@pytest.fixture
def workshop(store: Store, entra: Entra) -> Workshop:
    made = Workshop(store, SystemClock(), environ={VARIABLE: PFX})

    @function("Call-Graph")
    def call_graph(context: Context, user_id: str) -> str:
        """Do what every call does first."""
        return str(context.graph._api.tokens.token())  # noqa: SLF001

    made.registry.register(call_graph)
    return made


def status(port: int, path: str) -> int:
    return httpx.get(f"http://127.0.0.1:{port}{path}").status_code


def takes_nothing_until(workshop: Workshop, runner: Runner, entra: Entra, caplog: pytest.LogCaptureFixture) -> None:
    """See that a worker takes no job while its sign-in fails, and says so."""
    before = entra.tries
    with health_served(runner, 0, "127.0.0.1") as port:
        until(lambda: entra.tries > before + 3 or len(caplog.messages) > 0)
        assert workshop.deliveries() == [0]
        assert not runner.is_ready
        assert (status(port, "/healthz"), status(port, "/readyz")) == (200, 503)


def test_w1_a_worker_takes_no_job_before_it_has_signed_in(
    workshop: Workshop, entra: Entra, caplog: pytest.LogCaptureFixture
) -> None:
    entra.fault = ClientAuthenticationError("AADSTS700027: the certificate is not known")
    workshop.send("Do-It", 1)
    runner = workshop.runner(**TENANT)
    with workshop.running(runner):
        until(lambda: entra.tries > 5)
        takes_nothing_until(workshop, runner, entra, caplog)
        entra.fault = None
        workshop.until_settled()
        until(lambda: runner.is_ready)
    assert workshop.results()[job_id_of(1)].status is ResultStatus.SUCCESS
    began, ended = [told for told in caplog.messages if told.startswith("signing in")]
    assert began.startswith("signing in fails, and is tried again: the worker's application cannot sign in")
    assert ended.startswith("signing in works again")


def test_w1_a_worker_takes_no_job_while_its_certificate_cannot_be_read(
    workshop: Workshop, entra: Entra, caplog: pytest.LogCaptureFixture
) -> None:
    certificate = workshop.environ.pop(VARIABLE)
    workshop.send("Do-It", 1)
    runner = workshop.runner(**TENANT)
    with workshop.running(runner):
        until(lambda: caplog.messages)
        takes_nothing_until(workshop, runner, entra, caplog)
        assert "the worker's certificate cannot be read" in caplog.messages[0]
        workshop.environ[VARIABLE] = certificate
        workshop.until_settled()


def test_w1_a_worker_takes_no_other_job_once_it_can_no_longer_sign_in(workshop: Workshop, entra: Entra) -> None:
    entra.seconds = 0  # a token is asked for at every turn
    runner = workshop.runner(**TENANT, max_parallelism=1)
    workshop.send("Wait-ForDoor", 1)
    with workshop.running(runner):
        workshop.until_begun("u1")
        entra.fault = ClientAuthenticationError("AADSTS90033: a transient error has occurred")
        until(lambda: not runner.is_ready)
        workshop.send("Call-Graph", 2)
        workshop.gates.open("u1")
        tries = entra.tries
        until(lambda: workshop.deliveries() == [0] and entra.tries > tries + 3)
        entra.fault = None
        workshop.until_settled()
    assert {one.status for one in workshop.results().values()} == {ResultStatus.SUCCESS}


def test_w1_a_job_whose_sign_in_fails_does_not_fail_for_good(workshop: Workshop, entra: Entra) -> None:
    entra.fault = ClientAuthenticationError("AADSTS90033: a transient error has occurred")
    workshop.send("Call-Graph", 1)
    workshop.runner(**TENANT).turn()
    error = workshop.results()[job_id_of(1)].error
    assert error is not None
    assert (error.type, error.is_throttled) == ("SignInFailed", True)


def test_w1_a_worker_with_nothing_to_sign_in_to_takes_jobs_at_once(workshop: Workshop, entra: Entra) -> None:
    workshop.send("Do-It", 1)
    with workshop.running(workshop.runner()):
        workshop.until_settled()
    assert entra.tries == 0
