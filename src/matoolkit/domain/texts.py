"""Texts that every database can store: without NUL, and without halves of characters.

Both come from outside: a worker's error message may hold a NUL, and JSON can spell half of a surrogate pair.
"""

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def is_storable(text: str) -> bool:
    """Tell whether a text can be stored as it is."""
    return "\0" not in text and (text.isascii() or _is_whole(text))


def storable(text: str) -> str:
    """Return a text with a replacement character for whatever cannot be stored."""
    if is_storable(text):
        return text
    # Two halves that belong together become one character again.
    units = text.replace("\0", _REPLACEMENT).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def utf16_length(text: str) -> int:
    """Count as SQL Server does, where a character beyond the basic plane takes the place of two."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
