"""The keys that Entra signs tokens with: fetched beside the requests, so that none of them waits for long (rule A2)."""

import logging
import math
import threading
from collections.abc import Mapping

from jwt import PyJWK, PyJWKClient

from matoolkit.clock import Clock
from matoolkit.errors import MatoolkitError, NotSignedIn, SignInUnavailable
from matoolkit.outages import Outage
from matoolkit.pauses import Pause

_FETCH_SECONDS = 10
# Made-up tokens name keys that do not exist; such tokens must not cause a fetch each time.
SECONDS_BETWEEN_FETCHES = 30
SECONDS_AFTER_FAILURE = 10
# They are fetched again in good time before they are too old: a key that Entra has withdrawn is good for a day at most.
SECONDS_FRESH = 12 * 60 * 60
SECONDS_KEPT = 24 * 60 * 60
# Requests share few threads, so only some of them may wait for a fetch; the others are told to come again.
_MOST_WAITING = 4

log = logging.getLogger(__name__)


class SigningKeys:
    """The keys of a tenant. Known keys are returned at once, even while a fetch fails."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._outage = Outage("fetching the signing keys", log, clock)
        self._places = threading.BoundedSemaphore(_MOST_WAITING)
        self._lock = threading.Lock()
        self._known: Mapping[str, PyJWK] = {}
        self._fetched_at = -math.inf
        self._pause = Pause(clock)
        self._has_failed = False
        self._fetch: threading.Event | None = None

    def key(self, name: str) -> PyJWK:
        """Return the key of a name; if it is not known, the keys are fetched, but not each time."""
        with self._lock:
            key, fetch = self._found(name), self._begun(name)
        if key is None and fetch is not None:
            self._wait(fetch)
            key = self._found(name)
        if key is not None:
            return key
        # It may be a new key: we cannot know while the keys cannot be fetched.
        if self._has_failed or self._age() >= SECONDS_KEPT:
            raise SignInUnavailable
        raise NotSignedIn("the token is signed with an unknown key")

    def _age(self) -> float:
        return self._clock.monotonic() - self._fetched_at

    def _found(self, name: str) -> PyJWK | None:
        return self._known.get(name) if self._age() < SECONDS_KEPT else None

    def _begun(self, name: str) -> threading.Event | None:
        """Return the fetch that is under way, perhaps one that begins now."""
        is_wanted = self._found(name) is None or self._age() >= SECONDS_FRESH
        if is_wanted and not self._pause.is_on:
            self._fetch = threading.Event()
            # A fetch that hangs for longer than this is given up for another one.
            self._pause.restart(SECONDS_BETWEEN_FETCHES)
            threading.Thread(target=self._fetched, args=(self._fetch,), name="signing-keys", daemon=True).start()
        return self._fetch

    def _wait(self, fetch: threading.Event) -> None:
        if not self._places.acquire(blocking=False):
            raise SignInUnavailable
        try:
            if not fetch.wait(_FETCH_SECONDS):
                raise SignInUnavailable
        finally:
            self._places.release()

    def _fetched(self, fetch: threading.Event) -> None:
        """Fetch the keys, in a thread of its own."""
        known: Mapping[str, PyJWK] | None = None
        try:
            found = PyJWKClient(self._url, cache_keys=False, timeout=_FETCH_SECONDS).get_jwk_set(refresh=True).keys
            known = {key.key_id: key for key in found if key.key_id and key.key_type == "RSA"}
        except Exception as fault:  # noqa: BLE001 - another program answers, and may answer anything
            self._outage.failed(MatoolkitError(f"{type(fault).__name__}: {fault}"))
        with self._lock:
            self._has_failed = known is None
            self._pause.restart(SECONDS_AFTER_FAILURE if self._has_failed else SECONDS_BETWEEN_FETCHES)
            if known is not None:
                self._known, self._fetched_at = known, self._clock.monotonic()
                self._outage.worked()
            if self._fetch is fetch:
                self._fetch = None
        fetch.set()
