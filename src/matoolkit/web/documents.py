"""Runbooks as pages show them: numbered lines, what the linter found in place, and as much as is readable."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matoolkit.errors import Finding
from matoolkit.runbook.findings import FINDING_KINDS
from matoolkit.runbook.parse import Report
from matoolkit.runbook.pointing import Pointed, pointed
from matoolkit.runbook.presentable import plain_line

# A page stays small however long a document is.
_MOST_LINES = 300
_MOST_LETTERS = 20_000
_MOST_FINDINGS = 40
_LONGEST_LINE = 400
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a line; what a finding is about has its severity."""

    text: str
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a document, and what was found in it."""

    number: int
    pieces: Sequence[Piece]
    findings: Sequence[Finding] = ()


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines that are not shown."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a document, and where its neighbours begin."""

    lines: Sequence[Line | Fold]
    first: int
    last: int
    total: int
    before: int | None
    following: int | None
    unshown_findings: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self.before is None and self.following is None


def slice_of(report: Report, first: int = 1) -> Slice:
    """Return a document from a line on, as much as a page takes."""
    texts = _texts(report)
    first = min(first, len(texts))
    last, letters = first - 1, 0
    for text in texts[first - 1 : first - 1 + _MOST_LINES]:
        letters += min(len(text), _LONGEST_LINE)
        if letters > _MOST_LETTERS and last >= first:
            break
        last += 1
    found, unshown = _by_line(report.findings, range(first, last + 1), len(texts))
    lines = [_line(report, number, found.get(number, ())) for number in range(first, last + 1)]
    before = max(1, first - _MOST_LINES) if first > 1 else None
    return Slice(lines, first, last, len(texts), before, last + 1 if last < len(texts) else None, unshown)


def around_findings(report: Report) -> Slice:
    """Return the lines in which something was found, and a few around each; the others are folded."""
    total = len(_texts(report))
    found, unshown = _by_line(report.findings, range(1, total + 1), total)
    shown = sorted({n for at in found for n in range(max(1, at - _AROUND), min(total, at + _AROUND) + 1)})
    lines: list[Line | Fold] = []
    following = 1
    for number in [*shown, total + 1]:
        if number > following:
            lines.append(Fold(following, number - following))
        if number <= total:
            lines.append(_line(report, number, found.get(number, ())))
        following = number + 1
    return Slice(lines, 1, total, total, None, None, unshown)


def shown_line(text: str) -> str:
    """Return a line as it may be shown: cut if it is very long, and without characters that are not printable."""
    return plain_line(text if len(text) <= _LONGEST_LINE else f"{text[:_LONGEST_LINE]}…")


def shown_texts(report: Report) -> Sequence[str]:
    """Return all lines as they may be shown."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for one in report.findings:
        if FINDING_KINDS[one.code].hides_value:
            found[one.line].append(one)
    return [
        "".join(piece.text for piece in _line(report, number, found[number]).pieces)
        if number in found
        else shown_line(text)
        for number, text in enumerate(_texts(report), start=1)
    ]


def _texts(report: Report) -> Sequence[str]:
    texts = report.source.lines
    # A document ends with a line end, after which there is no line.
    return texts[:-1] if len(texts) > 1 and not texts[-1] else texts


def _by_line(findings: Iterable[Finding], wanted: range, total: int) -> tuple[dict[int, list[Finding]], int]:
    """Return findings by their line, and how many are too many to be shown; warnings are left out first."""
    # A finding about what is missing may point past the last line.
    inside = [found for found in findings if min(found.line, total) in wanted]
    kept = sorted(inside, key=lambda found: not found.is_error)[:_MOST_FINDINGS]
    by_line: dict[int, list[Finding]] = defaultdict(list)
    for found in sorted(kept, key=lambda found: (found.line, found.column)):
        by_line[min(found.line, total)].append(found)
    return by_line, len(inside) - len(kept)


def _line(report: Report, number: int, findings: Sequence[Finding]) -> Line:
    written = report.source.line(number)
    # One that hides a value comes first: its line is the one without the secret.
    first_hiding = sorted(findings, key=lambda found: not FINDING_KINDS[found.code].hides_value)
    about = [(found, place) for found in first_hiding if (place := pointed(report.source, found))]
    if findings and not about:
        return Line(number, [Piece(f"… {len(written):,} characters")], findings)
    text = about[0][1].line if about else shown_line(written)
    return Line(number, list(_pieces(text, about)), findings)


def _pieces(text: str, about: Iterable[tuple[Finding, Pointed]]) -> Iterable[Piece]:
    at = 0
    for found, place in sorted(about, key=lambda one: one[1].begin):
        begin, end = max(at, place.begin), min(place.end, len(text))
        if begin < end:
            yield from (Piece(text[at:begin]), Piece(text[begin:end], found.severity))
            at = end
    yield Piece(text[at:])
