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
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
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
        self._kept: dict[str, None] = {}
        self._passing: Counter[str] = Counter()
        self._pattern: re.Pattern[str] | None = None
        self._kept_pattern: re.Pattern[str] | None = None

    def conceal(self, value: str) -> None:
        """Mask a value from now on."""
        if not value or value in self._kept:
            return
        with self._lock:
            kept = {**self._kept, value: None}
            for oldest in list(kept)[:-_MOST_KEPT]:
                del kept[oldest]
            self._kept = kept
            self._kept_pattern = _pattern(kept)
            self._pattern = _pattern({*kept, *self._passing})

    @contextmanager
    def during(self, values: Collection[str]) -> Iterator[None]:
        """Mask values in everything that is logged until the end of a job."""
        if not values:
            yield
            return
        self._count(values, 1)
        try:
            yield
        finally:
            self._count(values, -1)

    def text(self, text: str) -> str:
        """Mask all that is secret at the moment: for logs, where any job may be told of."""
        pattern = self._pattern
        return text if pattern is None else pattern.sub(MASK, text)

    def outgoing(self, value: Any, secrets: Collection[str] = ()) -> Any:
        """Mask what goes out for one job, however deep: the lasting secrets and the job's own, not other jobs'."""
        pattern = _pattern({*self._kept, *secrets}) if secrets else self._kept_pattern
        return value if pattern is None else _masked(value, pattern)

    def guard(self, logger: logging.Logger) -> None:
        """Mask what a logger's handlers write."""
        for handler in logger.handlers:
            if not isinstance(handler.formatter, _MaskingFormatter):
                handler.setFormatter(_MaskingFormatter(handler.formatter or logging.Formatter(), self))

    def _count(self, values: Iterable[str], by: int) -> None:
        with self._lock:
            for value in values:
                self._passing[value] += by
            self._passing = +self._passing
            self._pattern = _pattern({*self._kept, *self._passing})


class _MaskingFormatter(logging.Formatter):
    """Masks a whole line once it is written, tracebacks and fields included."""

    def __init__(self, formatter: logging.Formatter, masking: Masking) -> None:
        super().__init__()
        self._formatter = formatter
        self._masking = masking

    def format(self, record: logging.LogRecord) -> str:
        """Write the record as before, and mask it."""
        return self._masking.text(self._formatter.format(record))


def _masked(value: Any, pattern: re.Pattern[str]) -> Any:
    match value:
        case str():
            return pattern.sub(MASK, value)
        case dict():
            return {_masked(key, pattern): _masked(item, pattern) for key, item in value.items()}
        case list():
            return [_masked(item, pattern) for item in value]
        case _:
            return value


def _pattern(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Match any of the secrets in any spelling, the longest first: one may begin with another."""
    spellings = {spelling for secret in secrets if secret for spelling in _spellings(secret)}
    ordered = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    return re.compile("|".join(map(_expression, ordered))) if ordered else None


def _spellings(secret: str) -> set[str]:
    return {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        html.escape(secret),
        quote(secret, safe="", errors="replace"),
        quote_plus(secret, errors="replace"),
    }


def _expression(spelling: str) -> str:
    escaped = re.escape(spelling)
    return escaped if len(spelling) >= _SHORT else rf"(?<!\w){escaped}(?!\w)"
