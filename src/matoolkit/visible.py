"""Writes out control characters where people read, so that they cannot control a terminal or fake a log line."""

import json


def visible(text: str, *, keep: str = "") -> str:
    """Write out every character that is not printable, such as `\\x1b`, except those to keep."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in keep else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


def visible_json(text: str) -> str:
    """Do the same for JSON without changing its meaning; line ends between its parts stay."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else json.dumps(letter)[1:-1] for letter in text)
