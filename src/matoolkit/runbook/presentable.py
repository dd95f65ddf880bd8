"""Makes text of a document safe to show: not too long, no control characters, no secrets."""

import re

from matoolkit.visible import visible

_LONGEST = 300
_MASK = "•••"

# Addresses and connection strings contain credentials, wherever they appear.
_CREDENTIALS = re.compile(
    r"(?i)(://)[^/@\s]{1,200}@|\b(password|pwd|\w{0,20}(?:key|secret|token))(\s{0,3}=\s{0,3})[^;\s]{1,500}"
)
# The value of a key that is likely to hold a secret.
_SENSITIVE = re.compile(
    r"(?i)(pass(?:wor[dt]|phrase)?|pas+wor[dt]|pwd|secret|token|api.?key|credential|conn|connection)"
    r"[\w.-]{0,40}[\"']?\s{0,20}[:=]\s{0,20}(?P<value>\S.*)$"
)
# A reference, a template that is the whole value, or the name of an environment variable.
_HARMLESS = re.compile(r"""["']?(?:secret:[^"']*|\{\{[^{}]*\}\}|[A-Z][A-Z0-9_]*)["']?[\s,}\]]*""")


def presentable(text: str) -> str:
    """Make a text safe to print: one line, printable, not too long, credentials masked."""
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return visible(_CREDENTIALS.sub(_mask, shown))


def presentable_line(line: str, *, hidden_from: int | None = None) -> str | None:
    """Return a line of the document as it may be shown, or none if it is too long to be read.

    Everything from column `hidden_from` on, counted from 0, is masked. Columns before it stay where they are.
    """
    if len(line) > _LONGEST:
        return None
    if hidden_from is not None:
        line = line[:hidden_from] + _MASK
    elif (found := _SENSITIVE.search(line)) and not _HARMLESS.fullmatch(found["value"]):
        line = line[: found.start("value")] + _MASK
    return plain_line(_CREDENTIALS.sub(_mask, line))


def plain_line(line: str) -> str:
    """Return a line with a sign in place of every character that is not printable; the others stay where they are."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in line)


def _mask(found: re.Match[str]) -> str:
    return f"{found[1]}{_MASK}@" if found[1] else f"{found[2]}{found[3]}{_MASK}"
