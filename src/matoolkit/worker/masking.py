"""Nothing secret leaves the worker: every text that goes out is searched for the secrets that are known (rule W8)."""

import logging
import threading
from collections import Counter
from collections.abc import Collection
from typing import Any

from matoolkit.domain.masking import Mask

# Tokens are renewed by the hour, so a secret that is older than this many others is no longer valid.
_MOST_KEPT = 1000
# Threads that a function started may speak of a job after its end.
_MOST_ENDED = 200


class Masking:
    """The secrets that a process knows: some as long as it lives, others while a job runs and for a while after."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._kept: dict[str, None] = {}
        self._lasting = Mask()
        self._passing: Counter[str] = Counter()
        self._ended: dict[str, None] = {}
        self._all: Mask | None = Mask()

    def conceal(self, value: str) -> None:
        """Mask a value from now on."""
        if not value or value in self._kept:
            return
        with self._lock:
            self._kept = _latest({**self._kept, value: None}, _MOST_KEPT)
            self._lasting = Mask(self._kept)
            self._all = None

    def conceal_here(self, value: str) -> None:
        """Mask a value until the end of the job that this thread does; from now on if it does none."""
        secrets: set[str] | None = getattr(self._here, "secrets", None)
        if secrets is None:
            self.conceal(value)
        elif value and value not in secrets:
            secrets.add(value)
            self._count([value], 1)

    def begin(self, secrets: set[str]) -> None:
        """Mask a job's secrets in everything that is logged until it ends; what it conceals joins them."""
        self._here.secrets = secrets
        self._count(secrets, 1)

    def end(self, secrets: set[str]) -> None:
        """Let go of the secrets of the job that this thread began, except in what is still logged of it."""
        self._here.secrets = None
        self._count(secrets, -1)

    def text(self, text: str) -> str:
        """Mask all that is secret at the moment: for logs, where any job may be told of."""
        mask = self._all
        if mask is None:
            with self._lock:
                mask = self._all = Mask([*self._kept, *self._passing, *self._ended])
        return mask.text(text)

    def outgoing(self, value: Any, secrets: Collection[str] = ()) -> Any:
        """Mask what goes out for one job, however deep: the lasting secrets and the job's own, not other jobs'."""
        # Most jobs have no secrets of their own.
        return (Mask([*self._kept, *secrets]) if secrets else self._lasting).value(value)

    def guard(self, logger: logging.Logger) -> None:
        """Mask what a logger's handlers write, and what those of all others do, such as a library's."""
        spoken = [*logger.handlers, *logging.getLogger().handlers, logging.lastResort]
        for handler in filter(None, spoken):
            if not isinstance(handler.formatter, _MaskingFormatter):
                handler.setFormatter(_MaskingFormatter(handler.formatter or logging.Formatter(), self))

    def _count(self, secrets: Collection[str], by: int) -> None:
        if not secrets:
            return
        with self._lock:
            for secret in secrets:
                self._passing[secret] += by
                if not self._passing[secret]:
                    del self._passing[secret]
                    self._ended.pop(secret, None)
                    self._ended[secret] = None
            self._ended = _latest(self._ended, _MOST_ENDED)
            self._all = None


def _latest(values: dict[str, None], most: int) -> dict[str, None]:
    return values if len(values) <= most else dict.fromkeys(list(values)[-most:])


class _MaskingFormatter(logging.Formatter):
    """Masks a whole line once it is written, tracebacks and fields included."""

    def __init__(self, formatter: logging.Formatter, masking: Masking) -> None:
        super().__init__()
        self._formatter = formatter
        self._masking = masking

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as before, and mask it."""
        return self._masking.text(self._formatter.format(record))
