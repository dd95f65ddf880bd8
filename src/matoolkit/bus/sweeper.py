"""The timer behind what is done now and then: leftovers of the outbox, expired and undeliverable messages."""

import logging
import threading
from collections.abc import Callable, Sequence

log = logging.getLogger(__name__)


def sweep_regularly(sweeps: Sequence[Callable[[], object]], seconds: float, stop: threading.Event) -> None:
    """Call each of these every so often until told to stop; one that fails is tried again next time."""
    while not stop.wait(seconds):
        for sweep in sweeps:
            try:
                sweep()
            except Exception:
                log.exception("a sweep failed; it is tried again in %s seconds", seconds)
