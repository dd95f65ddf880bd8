"""What keys and values mean together: the rules that no single field can know."""

from collections.abc import Callable, Sequence

from matoolkit.errors import Finding
from matoolkit.runbook.catalogue import Catalogue
from matoolkit.runbook.rules import approvals, cohorts, functions, names, source, timing, variables, windows
from matoolkit.runbook.rules.context import Check
from matoolkit.runbook.structure import ReadableParts
from matoolkit.runbook.suggestions import Suggestions
from matoolkit.runbook.tree import Node

RULES: Sequence[Callable[[Check], None]] = (
    *names.RULES,
    *source.RULES,
    *timing.RULES,
    *cohorts.RULES,
    *windows.RULES,
    *variables.RULES,
    *functions.RULES,
    *approvals.RULES,
)


def check_rules(root: Node, parts: ReadableParts, catalogue: Catalogue, suggestions: Suggestions) -> list[Finding]:
    """Apply every rule."""
    check = Check(root, parts, catalogue, suggestions)
    for rule in RULES:
        rule(check)
    return check.findings
