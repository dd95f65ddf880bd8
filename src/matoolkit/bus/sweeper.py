"""The timer for regular work: leftovers of the outbox, expired and undeliverable messages."""

import logging
import threading
from collections.abc import Callable, Sequence

from matoolkit.outages import Outage

log = logging.getLogger(__name__)


def sweep_regularly(sweeps: Sequence[Callable[[], object]], seconds: float, stop: threading.Event) -> None:
    """Call each of these every so often until told to stop; one that fails is tried again next time."""
    troubles = [Outage("a sweep", log) for _ in sweeps]
    while not stop.wait(seconds):
        for sweep, trouble in zip(sweeps, troubles, strict=True):
            try:
                sweep()
            except Exception as fault:  # noqa: BLE001 - it is told, and the next sweep is not to blame
                trouble.failed(fault)
            else:
                trouble.worked()
