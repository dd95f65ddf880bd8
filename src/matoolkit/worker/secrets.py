"""Where secrets come from: a Key Vault, or the environment when there is none (rule W8)."""

import threading
from collections.abc import Callable, Mapping
from typing import Protocol

import httpx

from matoolkit.backoff import BUSY_STATUSES, Backoff, Tries, asked_wait
from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.pauses import Pause
from matoolkit.settings import secret_variable
from matoolkit.tokens import KeptToken, LibraryMissing, NoToken, Token, token_of_process
from matoolkit.worker.failures import SecretsBusy, SecretUnavailable
from matoolkit.worker.masking import Masking

_API_VERSION = "7.4"
_TIMEOUT_SECONDS = 10
# The total is short because the secret's other readers wait as well.
_BACKOFF = Backoff(count=3, first_seconds=1, longest_seconds=4, total_seconds=30)
# Threads that wait for a vault without an answer do not ask it again one after the other.
_BUSY_SECONDS = 15
# A secret that was renewed in the vault is used after this long at the latest.
_FRESH_SECONDS = 300


class SecretReader(Protocol):
    """A place that holds secrets."""

    def read(self, name: str) -> str:
        """Return a secret; one that cannot be had is a `SecretUnavailable`."""

    def sign_in(self) -> None:
        """Make sure that secrets can be asked for; if not, that is a `SecretUnavailable`."""

    def close(self) -> None:
        """Let go of connections."""


class WorkerSecrets:
    """The secrets of a worker: once read, their values are masked wherever they turn up.

    `own` is the one by which the worker itself signs in, which it gives to no job.
    """

    def __init__(self, reader: SecretReader, masking: Masking, own: str | None = None) -> None:
        self._reader = reader
        self._masking = masking
        self._own = own

    def get(self, name: str) -> str:
        """Return a secret that a job may have."""
        # Names of one variable are names of one secret.
        if self._own and secret_variable(name) == secret_variable(self._own):
            raise SecretUnavailable(f"the secret {name} is the worker's own")
        return self.read(name)

    def read(self, name: str) -> str:
        """Return any secret."""
        value = self._reader.read(name)
        self._masking.conceal(value)
        return value

    def conceal(self, value: str) -> None:
        """Mask a value until the end of the job."""
        self._masking.conceal_here(value)


class EnvironmentSecrets:
    """Secrets in environment variables of their own: `initial-password` is `MATOOLKIT_SECRET_INITIAL_PASSWORD`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def read(self, name: str) -> str:
        """Return the value of the secret's variable; no other variable is ever handed out."""
        variable = secret_variable(name)
        if value := self._environ.get(variable):
            return value
        raise SecretUnavailable(f"the secret {name} is not in the worker's environment: it is read from {variable}")

    def sign_in(self) -> None:
        """An environment needs no sign-in."""

    def close(self) -> None:
        """There is nothing to let go of."""


class KeyVault:
    """Secrets in an Azure Key Vault, kept for a few minutes."""

    def __init__(self, address: str, token: Callable[[], str], clock: Clock) -> None:
        self._client = httpx.Client(base_url=address, timeout=_TIMEOUT_SECONDS)
        self._token = token
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, str]] = {}
        self._pause = Pause(clock)

    def read(self, name: str) -> str:
        """Return the current version of a secret."""
        with self._lock:
            at, value = self._known.get(name, (float("-inf"), ""))
            if self._clock.monotonic() - at > _FRESH_SECONDS:
                value = self._fetched(name)
                self._known[name] = (self._clock.monotonic(), value)
            return value

    def sign_in(self) -> None:
        """Get a token, if there is none that lasts."""
        with self._lock:
            self._token()

    def close(self) -> None:
        """Let go of connections."""
        self._client.close()

    def _fetched(self, name: str) -> str:
        if not name.replace("-", "").isalnum() or not name.isascii():
            raise SecretUnavailable(f"no Key Vault holds a secret of the name {name}: letters, digits and - only")
        response = self._answer(f"/secrets/{name}")
        match response.status_code:
            case httpx.codes.OK:
                return _value(name, response)
            case httpx.codes.NOT_FOUND:
                raise SecretUnavailable(f"the Key Vault has no secret {name}")
            case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN as refused:
                why = f"the Key Vault refuses the worker (HTTP {refused}): it needs the role Key Vault Secrets User"
                raise SecretUnavailable(f"the secret {name} cannot be read: {why}")
            case status:
                raise SecretUnavailable(f"the secret {name} cannot be read: the Key Vault answers HTTP {status}")

    def _answer(self, path: str) -> httpx.Response:
        """Ask until there is an answer other than 'busy', a few times."""
        if self._pause.is_on:
            raise SecretsBusy("the Key Vault gave no answer a moment ago")
        tries = Tries(_BACKOFF, self._clock)
        while True:
            asked = None
            try:
                headers = {"Authorization": f"Bearer {self._token()}"}
                response = self._client.get(path, params={"api-version": _API_VERSION}, headers=headers)
                if response.status_code not in BUSY_STATUSES:
                    return response
                trouble, asked = f"it answers HTTP {response.status_code}", asked_wait(response.headers, self._clock)
            except httpx.RequestError as fault:
                trouble = str(fault) or type(fault).__name__
            seconds = tries.failed(asked)
            if tries.are_used_up:
                self._pause.extend(max(seconds, _BUSY_SECONDS))
                raise SecretsBusy(f"the Key Vault does not give its secrets: {trouble}", attempts=tries.count)
            self._clock.sleep(seconds)


def key_vault(name: str, clock: Clock, cloud: Cloud = PUBLIC) -> KeyVault:
    """Open a Key Vault by its name, with the process's own Entra identity."""
    return KeyVault(f"https://{name}.{cloud.key_vault}", KeptToken(lambda: _issued(cloud), clock).token, clock)


def _issued(cloud: Cloud) -> Token:
    try:
        return token_of_process(f"https://{cloud.key_vault}/.default", cloud)
    except LibraryMissing as missing:
        raise SecretUnavailable(f"{missing}: install matoolkit[azure]") from None
    except NoToken as fault:
        raise SecretsBusy(f"no token for the Key Vault: {fault}") from fault


def _value(name: str, response: httpx.Response) -> str:
    try:
        value = response.json()["value"]
    except (ValueError, KeyError, TypeError):
        value = None
    if not isinstance(value, str) or not value:
        raise SecretUnavailable(f"the Key Vault's answer for the secret {name} has no value")
    return value
