"""How a function app begins: settings and logs when it is imported, the rest with its first call."""

import atexit
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic, TypeVar

from matoolkit.errors import MatoolkitError
from matoolkit.hosting.functions.logs import send_logs_to_host
from matoolkit.hosting.process import spare_the_collector
from matoolkit.hosting.telemetry import telemetry_of
from matoolkit.settings import Settings, load_settings
from matoolkit.store import Store
from matoolkit.system import Messaging, open_bus, open_state

# Timers of the host have six fields: seconds first.
EVERY_FIVE_MINUTES = "0 */5 * * * *"
EVERY_HALF_MINUTE = "*/30 * * * * *"

log = logging.getLogger(__name__)

MadeT = TypeVar("MadeT")


def settings_of_app(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings, and let the log go where the host looks for it. What every process sets up is set up here."""
    settings = load_settings(Settings, environ)
    send_logs_to_host(settings.log_level, settings.log_format)
    return settings


class Lazily(Generic[MadeT]):
    """Something that the first call makes and all others share; if making it fails, the next call tries again."""

    def __init__(self, make: Callable[[], MadeT]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: MadeT | None = None

    def __call__(self) -> MadeT:
        """Return it."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made


@dataclass(frozen=True, slots=True)
class Opened:
    """The state and the bus of a process."""

    store: Store
    messaging: Messaging

    def close(self) -> None:
        """Let go of both; only tests do, because the host just ends the process."""
        self.messaging.bus.stop()
        self.store.close()


OpenParts = Callable[[Settings], Opened]


def opened(settings: Settings) -> Opened:
    """Open the state and the bus; what was opened is closed again if the other cannot be opened."""
    with ExitStack() as stack:
        store = open_state(settings)
        stack.callback(store.close)
        messaging = open_bus(settings, store)
        stack.pop_all()
        spare_the_collector()
        return Opened(store, messaging)


def begun(
    settings: Settings, part: str, environ: Mapping[str, str], open_parts: OpenParts, *, is_watching: bool = False
) -> Opened:
    """Open the parts of an app, and send its telemetry from then on; one that watches also sends what the state says.

    The host ends a process without a word, and then what was not sent yet is lost.
    """
    parts, sending = open_parts(settings), ExitStack()
    watched = parts.store if is_watching else None
    try:
        sending.enter_context(telemetry_of(settings, part, watched=watched, environ=environ))
    except MatoolkitError:
        parts.close()
        raise
    atexit.register(sending.close)
    return parts


def sweep_each(sweeps: Sequence[Callable[[], object]]) -> None:
    """Call every sweep, even after one that failed; then raise the first error, so that the host shows it."""
    failures: list[Exception] = []
    for sweep in sweeps:
        try:
            sweep()
        except Exception as failure:
            log.exception("a sweep failed, and the next timer tries again")
            failures.append(failure)
    if failures:
        raise failures[0]
