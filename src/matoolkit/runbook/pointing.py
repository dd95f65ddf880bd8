"""Where a finding points in its line, and the line as it may be shown beside it."""

import re
from dataclasses import dataclass

from matoolkit.errors import Finding
from matoolkit.runbook.findings import FINDING_KINDS
from matoolkit.runbook.presentable import presentable_line
from matoolkit.runbook.source import Source

_KEY = re.compile(r"[\"']?[\w.-]+[\"']?\s{0,20}:\s{0,20}")
_WORD = re.compile(r"[\w.-]+")


@dataclass(frozen=True, slots=True)
class Pointed:
    """A line without its secrets, and the part of it that a finding is about, counted from 0."""

    line: str
    begin: int
    end: int


def pointed(source: Source, found: Finding) -> Pointed | None:
    """Say what a finding is about; nothing if its line is too long to be read."""
    written, begin = source.line(found.line), found.column - 1
    hidden_from = _start_of_value(written, begin) if FINDING_KINDS[found.code].hides_value else None
    line = presentable_line(written, hidden_from=hidden_from)
    if line is None:
        return None
    word = _WORD.match(line, begin)
    return Pointed(line, begin, word.end() if word else begin + 1)


def _start_of_value(line: str, begin: int) -> int:
    """Say where the value begins if a finding points at it or at its key."""
    key = _KEY.match(line, begin)
    return key.end() if key else begin
