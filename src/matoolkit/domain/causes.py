"""What failures have in common: a fingerprint of an error that leaves out whom and what it was about.

Three people with one cause are one group, which is the unit in which people act on failures.
"""

import hashlib
import re

_LENGTH = 32
_MOST = 1_000  # what follows adds no cause, and would take long
_GUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
# Looked for only where a word begins: from each of its letters, a long word would take its length squared.
_ADDRESS = r"(?<![\w.%+-])[\w.%+-]+(?:'[\w.%+-]+)*@[\w.-]+"
_QUOTED = r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`|\u201c[^\u201d\n]*\u201d"
# A word with a digit in it is a number, an id or a key; codes of Entra tell causes apart.
_WITH_DIGITS = r"(?<![\w.%+-])(?!aadsts\d)[\w.%+-]*\d[\w.%+-]*"
_PARTICULARS = re.compile("|".join((_QUOTED, _GUID, _ADDRESS, _WITH_DIGITS)))
_SPACE = re.compile(r"\s+")


def fingerprint_of(error_type: str | None, message: str, *about: str | None) -> str:
    """Return the fingerprint of an error; `about` has names that tell causes apart although they are quoted."""
    alike = _SPACE.sub(" ", _PARTICULARS.sub("#", message[:_MOST].casefold())).strip()
    parts = (error_type or "", *(word or "" for word in about), alike)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:_LENGTH]
