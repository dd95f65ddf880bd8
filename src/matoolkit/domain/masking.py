"""Texts without the secrets in them, however a secret is written there (rule W8).

A secret is found as it is, and as JSON, Python, HTML, URLs and base64 write it. A short one is taken for the secret
only where it stands alone, or every text that happens to have its letters would be spoilt.
"""

import html
import json
import re
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import unquote, unquote_plus

MASK = "***"

_SHORT = 6
# A piece of base64 with fewer letters may be there by chance.
_LEAST_BASE64 = 8
_URL_SAFE = str.maketrans("+/", "-_")


class Mask:
    """Some secrets, with all the spellings in which they are looked for."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = frozenset(secret for secret in secrets if secret)
        spellings = {spelling for secret in self._secrets for spelling in _spellings(secret)}
        # The longest first: one secret may begin with another.
        self._spellings = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._lengths = [-len(spelling) for spelling in self._spellings]

    def text(self, text: str) -> str:
        """Mask what is secret in a text."""
        # Most texts are far shorter than a token.
        for spelling in self._spellings[bisect_left(self._lengths, -len(text)) :]:
            if spelling in text:
                text = text.replace(spelling, MASK) if len(spelling) >= _SHORT else _alone(spelling).sub(MASK, text)
        return self._without_quoted(text) if "%" in text and self._secrets else text

    def value(self, value: Any) -> Any:
        """Mask what is secret in a value of JSON, however deep."""
        if not self._secrets:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.value(key): self.value(item) for key, item in value.items()}
            case list():
                return [self.value(item) for item in value]
            case int() | float() if not isinstance(value, bool) and str(value) in self._secrets:
                return MASK
            case _:
                return value

    def _without_quoted(self, text: str) -> str:
        """Mask secrets with any letters percent-encoded: libraries differ in which letters they encode."""
        plain = (unquote(text), unquote_plus(text))
        for secret in self._secrets:
            if any(secret in one for one in plain):
                text = _quoted(secret).sub(MASK, text)
        return text


def texts_in(value: Any) -> Iterator[str]:
    """List what has to be masked when a whole value is secret: its texts and numbers, however deep."""
    match value:
        case None | bool():
            return
        case dict():
            for item in value.values():
                yield from texts_in(item)
        case list():
            for item in value:
                yield from texts_in(item)
        case _:
            yield str(value)


@lru_cache(maxsize=1024)
def _spellings(secret: str) -> frozenset[str]:
    raw = secret.encode(errors="surrogatepass")
    in_html = html.escape(secret)
    spellings = {
        secret,
        repr(secret)[1:-1],
        repr(raw)[2:-1],
        in_html,
        in_html.replace("&#x27;", "&#39;"),
        html.escape(secret, quote=False),
        *_in_base64(raw),
    }
    # In a log of JSON lines, what was JSON already is written as JSON once more.
    for _ in range(2):
        spellings |= {_in_json(spelling, is_ascii=is_ascii) for spelling in spellings for is_ascii in (True, False)}
    return frozenset(spellings)


def _in_json(text: str, *, is_ascii: bool) -> str:
    return json.dumps(text, ensure_ascii=is_ascii)[1:-1]


def _in_base64(raw: bytes) -> Iterator[str]:
    """List what base64 makes of bytes that stand alone, or behind others, as in `name:password`."""
    for before, shared in ((0, 0), (1, 2), (2, 3)):
        written = b64encode(bytes(before) + raw).decode()
        letters = written.rstrip("=")
        # The first letters also depend on what stands before, and the last on what follows.
        own = letters[shared:] if len(letters) == len(written) else letters[shared:-1]
        found = {own} if before else {own, written, letters}
        for one in found:
            if len(one) >= _LEAST_BASE64:
                yield one
                yield one.translate(_URL_SAFE)


@lru_cache(maxsize=256)
def _alone(spelling: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(spelling)}(?!\w)")


@lru_cache(maxsize=256)
def _quoted(secret: str) -> re.Pattern[str]:
    pattern = "".join(_quoted_letter(letter) for letter in secret)
    return re.compile(pattern if len(secret) >= _SHORT else rf"(?<!\w){pattern}(?!\w)")


def _quoted_letter(letter: str) -> str:
    escaped = "".join(f"%{byte:02X}" for byte in letter.encode(errors="surrogatepass"))
    forms = [re.escape(letter), f"(?i:{escaped})", *([r"\+"] if letter == " " else [])]
    return f"(?:{'|'.join(forms)})"
