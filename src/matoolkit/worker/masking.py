"""Nothing secret leaves the worker: every text that goes out is searched for the secrets that are known (rule W8).

A secret is found as it is and as JSON, URLs, HTML and Python write it. A short one is taken for the secret only where
it stands alone, or every text that happens to have its letters would be spoilt.
"""

import html
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_plus

MASK = "***"

_SHORT = 6
# Tokens are renewed by the hour; what is older than so many others is of no use to anybody.
_MOST_KEPT = 1000


class Masking:
    """The secrets that a process knows: some as long as it lives, others while a job runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self._kept: dict[str, None] = {}
        self._kept_spellings: tuple[str, ...] = ()
        self._passing: Counter[str] = Counter()
        self._all: tuple[str, ...] | None = ()

    def conceal(self, value: str) -> None:
        """Mask a value from now on."""
        if not value or value in self._kept:
            return
        with self._lock:
            kept = {**self._kept, value: None}
            for oldest in list(kept)[:-_MOST_KEPT]:
                del kept[oldest]
            self._kept, self._kept_spellings = kept, _spellings_of(kept)
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
        """Let go of the secrets of the job that this thread began."""
        self._here.secrets = None
        self._count(secrets, -1)

    def text(self, text: str) -> str:
        """Mask all that is secret at the moment: for logs, where any job may be told of."""
        spellings = self._all
        if spellings is None:
            with self._lock:
                spellings = self._all = _spellings_of([*self._kept, *self._passing])
        return _masked_text(text, spellings)

    def outgoing(self, value: Any, secrets: Collection[str] = ()) -> Any:
        """Mask what goes out for one job, however deep: the lasting secrets and the job's own, not other jobs'."""
        # Most jobs have no secrets of their own.
        spellings = _spellings_of([*self._kept, *secrets]) if secrets else self._kept_spellings
        return _masked(value, spellings) if spellings else value

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
            self._all = None


class _MaskingFormatter(logging.Formatter):
    """Masks a whole line once it is written, tracebacks and fields included."""

    def __init__(self, formatter: logging.Formatter, masking: Masking) -> None:
        super().__init__()
        self._formatter = formatter
        self._masking = masking

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as before, and mask it."""
        return self._masking.text(self._formatter.format(record))


def _masked(value: Any, spellings: Sequence[str]) -> Any:
    match value:
        case str():
            return _masked_text(value, spellings)
        case dict():
            return {_masked(key, spellings): _masked(item, spellings) for key, item in value.items()}
        case list():
            return [_masked(item, spellings) for item in value]
        case _:
            return value


def _masked_text(text: str, spellings: Sequence[str]) -> str:
    for spelling in spellings:
        if spelling in text:
            if len(spelling) >= _SHORT:
                text = text.replace(spelling, MASK)
            else:
                text = re.sub(rf"(?<!\w){re.escape(spelling)}(?!\w)", MASK, text)
    return text


def _spellings_of(secrets: Iterable[str]) -> tuple[str, ...]:
    """Return every spelling of secrets, the longest first: one may begin with another."""
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    return tuple(sorted(spellings, key=lambda spelling: (-len(spelling), spelling)))


@lru_cache(maxsize=256)
def _spellings(secret: str) -> frozenset[str]:
    return frozenset(
        {
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            repr(secret)[1:-1],
            html.escape(secret),
            quote(secret, safe="", errors="replace"),
            quote_plus(secret, errors="replace"),
        }
    )
