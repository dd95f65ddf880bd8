"""The text of a document: bytes to lines, before any parsing."""

import re

from matoolkit.errors import Finding
from matoolkit.runbook.findings import finding

MAX_BYTES = 1024 * 1024

# What YAML counts as the end of a line; positions agree with the parser's only if we cut lines where it does.
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Everything that YAML does not allow in a document.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


class Source:
    """A text and its lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = _LINE_BREAK.split(text)

    def line(self, number: int) -> str:
        """Return a line, counted from 1; past the end there is an empty one."""
        return self.lines[number - 1] if number <= len(self.lines) else ""


def read_source(content: str | bytes) -> Source | Finding:
    """Decode and check the text; a problem here stops everything else, so there is only one finding."""
    encoded = content if isinstance(content, bytes) else content.encode(errors="replace")
    if len(encoded) > MAX_BYTES:
        return finding("RB003", f"the document has more than {MAX_BYTES:,} bytes")
    try:
        text = content if isinstance(content, str) else content.decode()
    except UnicodeDecodeError as broken:
        line, column = _end_of(encoded[: broken.start].decode())
        return finding("RB001", f"byte 0x{encoded[broken.start]:02x} is not valid UTF-8", line=line, column=column)
    text = text.removeprefix("\ufeff")
    if unprintable := _UNPRINTABLE.search(text):
        line, column = _end_of(text[: unprintable.start()])
        code = ord(unprintable[0])
        return finding("RB002", f"character U+{code:04X} is not allowed in a document", line=line, column=column)
    return Source(text)


def _end_of(text: str) -> tuple[int, int]:
    lines = _LINE_BREAK.split(text)
    return len(lines), len(lines[-1]) + 1
