"""Signing in (rule A3): a code that is typed elsewhere, a token that renews itself, and pipelines."""

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest

from matoolkit.cli.config import client_settings
from matoolkit.cli.main import run
from matoolkit.cli.signing_in import SignIn
from matoolkit.clock import VirtualClock
from matoolkit.errors import InvalidSettings, SignInFailed, SignInNeeded
from tests.databases import NOON
from tests.servers.entra import ManagedIdentity
from tests.servers.http import Answer, Request, served

CODE = {"device_code": "d", "user_code": "ABC-123", "verification_uri": "https://login.example/device", "interval": 5}


@dataclass
class Entra:
    """Issues tokens, after it was asked a few times, or refuses with an error."""

    pending: list[str] = field(default_factory=list)
    error: str | None = None
    requests: list[Request] = field(default_factory=list)
    code: Any = field(default_factory=lambda: {**CODE, "expires_in": 900})
    seconds: int = 3600

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        if request.path.endswith("/devicecode"):
            return Answer(self.code)
        if self.pending:
            return Answer({"error": self.pending.pop(0)}, 400)
        if self.error:
            return Answer({"error": self.error, "error_description": f"AADSTS1: {self.error}\r\nTrace: 1"}, 400)
        claims = {"preferred_username": "ann@contoso.example", "exp": int(NOON.timestamp()) + self.seconds}
        token = jwt.encode({**claims, "n": len(self.requests)}, "k" * 32)
        return Answer({"access_token": token, "refresh_token": "r-1", "expires_in": self.seconds})


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def entra(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    service = Entra()
    with served(service) as address:
        monkeypatch.setenv("MATOOLKIT_AUTHORITY", address)
        monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
        monkeypatch.setenv("MATOOLKIT_CLIENT_ID", "c-1")
        yield service


def test_a3_a_person_signs_in_with_a_code(
    entra: Entra, home: Path, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    entra.pending = ["authorization_pending", "slow_down", "authorization_pending"]
    assert run(["auth", "status"], clock) == 1
    assert run(["auth", "login"], clock) == 0
    said = capsys.readouterr().err
    assert "open https://login.example/device and enter the code ABC-123" in said
    assert "signed in as ann@contoso.example" in said
    assert clock.monotonic() == 5 + 5 + 10 + 10
    begun, *polled = entra.requests
    assert begun.path == "/contoso/oauth2/v2.0/devicecode"
    assert begun.body == {"client_id": ["c-1"], "scope": ["c-1/.default offline_access"]}
    assert polled[0].body["device_code"] == ["d"]
    path = home / ".matoolkit" / "tokens.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert run(["auth", "status", "--json"], clock) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["way"], status["account"], status["until"]) == (
        "person",
        "ann@contoso.example",
        "2026-03-03T13:00:00+00:00",
    )
    assert run(["auth", "logout"]) == 0
    assert run(["auth", "status"], clock) == 1
    assert run(["auth", "logout"]) == 0
    assert "nobody was signed in" in capsys.readouterr().err


def test_a_token_renews_itself_before_it_ends(entra: Entra, clock: VirtualClock) -> None:
    assert run(["auth", "login"], clock) == 0
    sign_in = SignIn(client_settings(), clock)
    first = sign_in.token()
    clock.sleep(3000)
    assert sign_in.token() == first
    clock.sleep(500)
    second = sign_in.token()
    assert second != first
    assert entra.requests[-1].body["refresh_token"] == ["r-1"]
    assert SignIn(client_settings(), clock).token() == second
    clock.sleep(4000)
    entra.error = "invalid_grant"
    with pytest.raises(SignInNeeded, match="has run out") as refused:
        sign_in.token()
    assert refused.value.exit_code == 4


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("authorization_declined", "it was declined"),
        ("expired_token", "the code was not used in time"),
        ("invalid_client", "AADSTS1: invalid_client"),
    ],
)
def test_a_sign_in_that_is_refused_says_why(entra: Entra, clock: VirtualClock, error: str, told: str) -> None:
    entra.error = error
    sign_in = SignIn(client_settings(), clock)
    with pytest.raises(SignInFailed, match=told):
        sign_in.log_in(sign_in.device_code(lambda _: None))


def test_a_code_that_nobody_uses_runs_out(entra: Entra, clock: VirtualClock) -> None:
    entra.pending = ["authorization_pending"] * 500
    entra.code = {**CODE, "expires_in": 60}
    sign_in = SignIn(client_settings(), clock)
    with pytest.raises(SignInFailed, match="not used in time"):
        sign_in.log_in(sign_in.device_code(lambda _: None))
    assert clock.monotonic() == 60


@pytest.mark.parametrize("answer", [{"error": "bad"}, [], "x", {"device_code": 5, "user_code": "x"}])
def test_an_authority_that_answers_nonsense_is_an_error(entra: Entra, clock: VirtualClock, answer: Any) -> None:
    entra.code = answer
    assert run(["auth", "login"], clock) == 4


def test_an_authority_that_is_down_is_an_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATOOLKIT_AUTHORITY", "http://127.0.0.1:1")
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
    monkeypatch.setenv("MATOOLKIT_CLIENT_ID", "c-1")
    assert run(["auth", "login"]) == 4
    assert "connection refused" in capsys.readouterr().err
    monkeypatch.setenv("MATOOLKIT_AUTHORITY", "http://login.example")
    assert run(["auth", "login"]) == 2


def test_without_a_tenant_nobody_needs_to_sign_in(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SignIn(client_settings(), VirtualClock(NOON)).token() is None
    assert run(["auth", "status"]) == 0
    assert "needs no sign-in" in capsys.readouterr().out
    with pytest.raises(InvalidSettings, match="nobody says where to sign in"):
        SignIn(client_settings(), VirtualClock(NOON)).device_code(lambda _: None)


def test_a3_a_pipeline_gives_its_token(
    entra: Entra, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["auth", "login"], clock) == 0
    monkeypatch.setenv("MATOOLKIT_ACCESS_TOKEN", "opaque\n")
    assert SignIn(client_settings(), clock).token() == "opaque"
    capsys.readouterr()
    assert run(["auth", "status"], clock) == 0
    out = capsys.readouterr().out
    assert "opaque" not in out
    assert "MATOOLKIT_ACCESS_TOKEN" in out


def test_a3_a_pipeline_has_the_identity_of_its_machine(
    home: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    identity = ManagedIdentity(expires_on=2_000_000_000)
    with served(identity) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "secret")
        monkeypatch.setenv("MATOOLKIT_API_SCOPE", "api://admin/.default")
        sign_in = SignIn(client_settings(), clock)
        assert (sign_in.token(), sign_in.token()) == ("token-1", "token-1")
        assert identity.resources == ["api://admin"]
        identity.is_unknown = True
        monkeypatch.setenv("PATH", "/nowhere")
        with pytest.raises(SignInNeeded, match="this machine has no identity"):
            SignIn(client_settings(), clock).token()


def test_a3_a_token_of_the_machine_is_asked_for_again_before_it_ends(
    home: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    end = 2_000_000_000
    identity = ManagedIdentity(expires_on=end)
    with served(identity) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", address)
        monkeypatch.setenv("IDENTITY_HEADER", "secret")
        monkeypatch.setenv("MATOOLKIT_API_SCOPE", "api://admin/.default")
        sign_in = SignIn(client_settings(), clock)
        sign_in.token()
        clock.sleep(end - 310 - clock.now().timestamp())
        assert sign_in.token() == "token-1"
        clock.sleep(20)
        identity.expires_on = end + 3600
        assert (sign_in.token(), sign_in.token()) == ("token-2", "token-2")


def test_a_cache_that_is_broken_is_no_sign_in_and_is_replaced(entra: Entra, home: Path, clock: VirtualClock) -> None:
    path = home / ".matoolkit" / "tokens.json"
    path.parent.mkdir(parents=True)
    for content in ("{", "[]", '{"x": 5}', '{"x": {"access_token": 1}}'):
        path.write_text(content, encoding="utf-8")
        assert run(["auth", "status"], clock) == 1
    assert run(["auth", "login"], clock) == 0
    assert run(["auth", "status"], clock) == 0
