"""From text to runbook: all code reads runbooks through this module."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from matoolkit.errors import Finding, InvalidRunbook, Severity
from matoolkit.runbook.catalogue import BUILT_IN, Catalogue
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.reader import read_yaml
from matoolkit.runbook.rules import check_rules
from matoolkit.runbook.source import MAX_BYTES, Source, read_source
from matoolkit.runbook.structure import read_structure
from matoolkit.runbook.suggestions import Suggestions


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a document, in its order; and the runbook, if no finding is an error."""

    findings: Sequence[Finding]
    runbook: Runbook | None
    source: Source

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(found.is_error for found in self.findings)


def lint_runbook(content: str | bytes, catalogue: Catalogue = BUILT_IN) -> Report:
    """Check a document and report all problems; never raises, whatever the content."""
    source = read_source(content)
    if isinstance(source, Finding):
        return Report((source,), None, Source(_shown(content)))
    root, findings = read_yaml(source)
    runbook = None
    suggestions = Suggestions()
    if root is not None:
        runbook, parts, structural = read_structure(root, suggestions)
        findings = [*findings, *structural, *check_rules(root, parts, catalogue, suggestions)]
    unique = sorted({_identity(found): found for found in findings}.values(), key=_identity)
    if any(found.is_error for found in unique):
        runbook = None
    return Report(tuple(unique), runbook, source)


def strictly(report: Report) -> Report:
    """Take every warning for an error."""
    findings = [replace(found, severity=Severity.ERROR) for found in report.findings]
    return replace(report, findings=findings, runbook=None if findings else report.runbook)


def _shown(content: str | bytes) -> str:
    """Return as much of an unreadable text as can be shown."""
    beginning = content[:MAX_BYTES]
    return beginning if isinstance(beginning, str) else beginning.decode(errors="replace").removeprefix("\ufeff")


def _identity(found: Finding) -> tuple[int, int, str, str]:
    """What makes two findings the same to a reader: an aliased value is found once for each of its uses."""
    return found.line, found.column, found.code, found.message


# Versions never change and are read often. No code changes a runbook object, so all callers can share it.
@lru_cache(maxsize=128)
def parse_runbook(content: str | bytes) -> Runbook:
    """Read a runbook, or raise `InvalidRunbook` with all findings."""
    report = lint_runbook(content)
    if report.runbook is None:
        raise InvalidRunbook(report.findings)
    return report.runbook
