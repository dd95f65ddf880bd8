"""Signing in (rule A3): a code that is typed elsewhere, a token that renews itself, and pipelines."""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msal_extensions import LockError

from matoolkit.cli.config import client_settings
from matoolkit.cli.program import run
from matoolkit.cli.signing_in import SignIn
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.errors import InvalidSettings, SignInFailed, SignInNeeded
from tests.databases import NOON
from tests.servers.entra import ANN, CODE, Entra, ManagedIdentity
from tests.servers.http import served


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that starts now: what msal keeps is dated by the machine's own."""
    return VirtualClock(SystemClock().now())


@pytest.fixture
def entra(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Entra]:
    service = Entra()
    with service.served(tmp_path) as trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        monkeypatch.setenv("MATOOLKIT_AUTHORITY", service.address)
        monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
        monkeypatch.setenv("MATOOLKIT_CLIENT_ID", "c-1")
        yield service


class Store:
    """Stands in for a platform's credential store, which a machine for tests does not have."""

    is_encrypted = True
    secrets: dict[str, str] = {}  # noqa: RUF012 - a fixture empties it

    def __init__(self, location: str) -> None:
        self._mark = Path(location)

    def save(self, content: str) -> None:
        self.secrets[str(self._mark)] = content
        self._mark.touch()

    def load(self) -> str:
        return self.secrets[str(self._mark)]

    def time_last_modified(self) -> float:
        return self._mark.stat().st_mtime

    def get_location(self) -> str:
        return str(self._mark)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> type[Store]:
    monkeypatch.setattr("msal_extensions.build_encrypted_persistence", Store)
    Store.secrets.clear()
    return Store


def kept_files(home: Path) -> list[Path]:
    return sorted(path for path in (home / ".matoolkit").glob("sign-in-*") if path.suffix != ".lockfile")


def test_a3_a_person_signs_in_with_a_code(
    entra: Entra, home: Path, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    entra.pending = ["authorization_pending", "authorization_pending"]
    assert run(["auth", "status"], clock) == 1
    assert run(["auth", "login"], clock) == 0
    said = capsys.readouterr().err
    assert "open https://login.example/device and enter the code ABC-123" in said
    assert f"signed in as {ANN}" in said
    assert [request.path for request in entra.requests][:2] == [
        "/contoso/v2.0/.well-known/openid-configuration",
        "/contoso/oauth2/v2.0/devicecode",
    ], "nobody else is asked whether the authority is genuine"
    (begun,), polled = entra.asked("/devicecode"), entra.asked("/token")
    assert begun["client_id"] == ["c-1"]
    assert set(begun["scope"][0].split()) == {"c-1/.default", "offline_access", "openid", "profile"}
    assert [form["device_code"] for form in polled] == [["d"]] * 3
    assert run(["auth", "status", "--json"], clock) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["way"], status["account"]) == ("person", ANN)
    assert status["until"] > clock.now().isoformat()
    assert run(["auth", "logout"], clock) == 0
    assert kept_files(home) == []
    assert run(["auth", "status"], clock) == 1
    assert run(["auth", "logout"], clock) == 0
    assert "nobody was signed in" in capsys.readouterr().err


def test_a3_without_a_credential_store_a_private_file_is_used_and_the_command_says_so(
    entra: Entra, home: Path, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["auth", "login"], clock) == 0
    (file,) = kept_files(home)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    said = capsys.readouterr().err
    assert "no credential store" in said
    assert file.name in said.replace("\n", "")
    file.chmod(0o644)
    assert run(["auth", "login"], clock) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    capsys.readouterr()
    assert run(["auth", "status", "--json"], clock) == 0
    assert json.loads(capsys.readouterr().out)["keptIn"] == str(file)


def test_a3_a_credential_store_holds_the_sign_in_and_no_file_does(
    entra: Entra, home: Path, store: type[Store], clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["auth", "login"], clock) == 0
    assert "no credential store" not in capsys.readouterr().err
    (mark,) = kept_files(home)
    assert mark.read_bytes() == b""
    assert "r-1" in store.secrets[str(mark)]
    sign_in = SignIn(client_settings(), clock)
    first = sign_in.token()
    clock.sleep(3500)
    assert sign_in.token() != first
    assert "r-2" in store.secrets[str(mark)], "what was renewed is kept"
    assert run(["auth", "status", "--json"], clock) == 0
    assert json.loads(capsys.readouterr().out)["keptIn"] == "the credential store"
    assert run(["auth", "logout"], clock) == 0
    assert store.secrets[str(mark)] == "{}"
    assert kept_files(home) == []


def test_a_credential_store_that_takes_nothing_is_as_good_as_none(
    entra: Entra, home: Path, store: type[Store], clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: Any) -> None:
        raise OSError("the keychain is locked")

    monkeypatch.setattr(Store, "save", locked)
    assert run(["auth", "login"], clock) == 0
    (file,) = kept_files(home)
    assert file.suffix == ".json"
    assert SignIn(client_settings(), clock).token()


def test_logging_out_clears_the_credential_store_also_after_a_sign_in_while_it_was_locked(
    entra: Entra,
    home: Path,
    store: type[Store],
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def locked(*_: Any) -> None:
        raise OSError("the keychain is locked")

    assert run(["auth", "login"], clock) == 0
    (mark,) = kept_files(home)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Store, "save", locked)
        assert run(["auth", "login"], clock) == 0
        assert run(["auth", "logout"], clock) == 4
        assert "unlock the credential store" in capsys.readouterr().err.replace("\n", " ")
        assert kept_files(home) == [mark], "the file is gone, and the store is still to be cleared"
    assert run(["auth", "logout"], clock) == 0
    assert store.secrets[str(mark)] == "{}"
    assert kept_files(home) == []


def test_a_credential_store_that_cannot_be_opened_any_more_asks_for_another_sign_in(
    entra: Entra, home: Path, store: type[Store], clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["auth", "login"], clock) == 0
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MATOOLKIT_AUTHORITY", entra.address)
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
    monkeypatch.setenv("MATOOLKIT_CLIENT_ID", "c-1")
    with pytest.raises(SignInNeeded, match="cannot be opened"):
        SignIn(client_settings(), clock).token()


def test_a_token_renews_itself_before_it_ends(entra: Entra, clock: VirtualClock) -> None:
    assert run(["auth", "login"], clock) == 0
    sign_in = SignIn(client_settings(), clock)
    asked = len(entra.requests)
    first = sign_in.token()
    clock.sleep(3200)
    assert sign_in.token() == first
    assert SignIn(client_settings(), clock).token() == first
    assert len(entra.requests) == asked, "a token that is good is used without asking anybody"
    clock.sleep(200)
    second = sign_in.token()
    assert second != first
    assert entra.asked("/token")[-1]["refresh_token"] == ["r-1"]


def test_what_was_renewed_is_kept_for_the_next_command(entra: Entra, clock: VirtualClock) -> None:
    entra.seconds = 200
    assert run(["auth", "login"], clock) == 0
    entra.seconds = 3600
    renewed = SignIn(client_settings(), clock).token()
    asked = len(entra.requests)
    assert SignIn(client_settings(), clock).token() == renewed
    assert len(entra.requests) == asked


def test_a3_a_sign_in_that_was_withdrawn_is_told_as_such(
    entra: Entra, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["auth", "login"], clock) == 0
    clock.sleep(4000)
    entra.error = "invalid_grant"
    with pytest.raises(SignInNeeded, match=r"has run out \(AADSTS1: invalid_grant\)") as refused:
        SignIn(client_settings(), clock).token()
    assert refused.value.exit_code == 4
    assert "auth login" in str(refused.value.hint)
    with pytest.raises(SignInNeeded, match="has run out"):
        SignIn(client_settings(), clock).token()


def test_an_authority_that_is_away_when_a_token_ends_takes_no_sign_in_away(entra: Entra, clock: VirtualClock) -> None:
    assert run(["auth", "login"], clock) == 0
    clock.sleep(3500)
    entra.status = 503
    with pytest.raises(SignInFailed, match="503"):
        SignIn(client_settings(), clock).token()
    entra.status = 200
    assert SignIn(client_settings(), clock).token()


@pytest.mark.parametrize("fault", [LockError("taken"), OSError(13, "the store is locked")])
def test_a_renewal_that_cannot_be_kept_is_an_error_in_words(
    entra: Entra, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(_: Any) -> None:
        raise fault

    assert run(["auth", "login"], clock) == 0
    clock.sleep(3500)
    monkeypatch.setattr("msal_extensions.token_cache.CrossPlatLock.__enter__", fails)
    with pytest.raises(SignInFailed, match="cannot be kept"):
        SignIn(client_settings(), clock).token()


def test_another_person_replaces_the_one_who_was_signed_in(
    entra: Entra, clock: VirtualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["auth", "login"], clock) == 0
    entra.username = "bob@contoso.example"
    assert run(["auth", "login"], clock) == 0
    capsys.readouterr()
    assert run(["auth", "status", "--json"], clock) == 0
    assert json.loads(capsys.readouterr().out)["account"] == "bob@contoso.example"


def test_a_sign_in_is_for_one_tenant(
    entra: Entra, home: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["auth", "login"], clock) == 0
    entra.tenant = "fabrikam"
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "fabrikam")
    assert run(["auth", "status"], clock) == 1
    assert run(["auth", "login"], clock) == 0
    assert len(kept_files(home)) == 2
    assert run(["auth", "logout"], clock) == 0
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
    assert run(["auth", "status"], clock) == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("authorization_declined", "it was declined"),
        ("expired_token", "the code was not used in time"),
        ("invalid_client", "AADSTS1: invalid_client$"),
    ],
)
def test_a_sign_in_that_is_refused_says_why(
    entra: Entra, home: Path, clock: VirtualClock, error: str, told: str
) -> None:
    entra.error = error
    with pytest.raises(SignInFailed, match=told):
        SignIn(client_settings(), clock).log_in(lambda _: None)
    assert kept_files(home) == []


def test_a_code_that_nobody_uses_runs_out(entra: Entra, clock: VirtualClock) -> None:
    entra.pending = ["authorization_pending"] * 500
    entra.code = {**CODE, "interval": 1, "expires_in": -1}
    with pytest.raises(SignInFailed, match="not used in time"):
        SignIn(client_settings(), clock).log_in(lambda _: None)


@pytest.mark.parametrize("answer", [{"error": "bad"}, [], "x", None])
def test_an_authority_that_answers_nonsense_is_an_error(entra: Entra, clock: VirtualClock, answer: Any) -> None:
    entra.code = answer
    assert run(["auth", "login"], clock) == 4


def test_a_tenant_that_is_not_known_is_an_error(
    entra: Entra, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "typo")
    assert run(["auth", "login"], clock) == 4
    assert "does not know the tenant typo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("authority", "code", "told"),
    [
        ("https://127.0.0.1:1", 4, "connection refused"),
        ("http://login.example", 2, "https://"),
        ("http://127.0.0.1:1", 2, "https://"),
    ],
)
def test_an_authority_that_is_away_or_not_encrypted_is_an_error(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    authority: str,
    code: int,
    told: str,
) -> None:
    monkeypatch.setenv("MATOOLKIT_AUTHORITY", authority)
    monkeypatch.setenv("MATOOLKIT_TENANT_ID", "contoso")
    monkeypatch.setenv("MATOOLKIT_CLIENT_ID", "c-1")
    assert run(["auth", "login"]) == code
    assert told in capsys.readouterr().err


def test_an_authority_whose_certificate_is_not_trusted_gets_nothing(
    entra: Entra, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(SignInFailed, match="certificate"):
        SignIn(client_settings(), clock).log_in(lambda _: None)
    assert entra.requests == []


def test_without_a_tenant_nobody_needs_to_sign_in(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert SignIn(client_settings(), VirtualClock(NOON)).token() is None
    assert run(["auth", "status"]) == 0
    assert "needs no sign-in" in capsys.readouterr().out
    with pytest.raises(InvalidSettings, match="nobody says where to sign in"):
        SignIn(client_settings(), VirtualClock(NOON)).log_in(lambda _: None)


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


@pytest.mark.parametrize("content", ["[]", '{"AccessToken": {"x": {"secret": "s"}}}', "{"])
def test_a_sign_in_that_cannot_be_read_is_none_and_is_replaced(
    entra: Entra, home: Path, clock: VirtualClock, content: str
) -> None:
    assert run(["auth", "login"], clock) == 0
    (file,) = kept_files(home)
    file.write_text(content, encoding="utf-8")
    assert run(["auth", "status"], clock) == 1
    with pytest.raises(SignInNeeded, match="cannot be read"):
        SignIn(client_settings(), clock).token()
    assert run(["auth", "login"], clock) == 0
    assert run(["auth", "status"], clock) == 0


@pytest.mark.parametrize("command", ["status", "login", "logout"])
def test_a_sign_in_of_an_earlier_version_is_removed_with_a_word(
    entra: Entra, home: Path, clock: VirtualClock, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    old = home / ".matoolkit" / "tokens.json"
    old.parent.mkdir(parents=True)
    old.write_text('{"x": {"access_token": "old-secret", "refresh_token": "r-0", "expires_at": 1}}', encoding="utf-8")
    run(["auth", command], clock)
    assert not old.exists()
    said = capsys.readouterr()
    assert "tokens.json is removed" in said.err.replace("\n", " ")
    assert "old-secret" not in said.out + said.err


def test_a_token_is_in_no_output_and_no_log(
    entra: Entra, clock: VirtualClock, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    assert run(["auth", "login"], clock) == 0
    first = SignIn(client_settings(), clock).token()
    clock.sleep(4000)
    second = SignIn(client_settings(), clock).token()
    assert run(["auth", "status"], clock) == 0
    told = capsys.readouterr()
    for secret in (first, second, "r-1", "r-2"):
        assert secret
        assert secret not in told.out + told.err + caplog.text


def test_only_a_command_that_signs_in_or_renews_imports_what_it_needs_for_that(
    entra: Entra, clock: VirtualClock
) -> None:
    """Importing takes a tenth of a second, which every other command would lose."""
    code = (
        "import sys; from matoolkit.cli.config import client_settings; from matoolkit.cli.signing_in import SignIn;"
        "from matoolkit.cli.program import run; from matoolkit.clock import SystemClock;"
        "status = run(['auth', 'status']);"
        "assert status or SignIn(client_settings(), SystemClock()).token(); print(status);"
        "assert not {'msal', 'msal_extensions', 'requests', 'azure.identity'} & set(sys.modules)"
    )
    for status in ("1", "0"):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip().endswith(status)
        assert run(["auth", "login"], clock) == 0
