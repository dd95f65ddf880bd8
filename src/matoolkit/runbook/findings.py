"""Every finding of the linter, by its code: how serious it is, what it means, how to fix it.

Codes are stable: a code never changes its meaning. The reference page is generated from here.
"""

from matoolkit.errors import Finding
from matoolkit.runbook.finding_errors import ERRORS
from matoolkit.runbook.finding_warnings import WARNINGS
from matoolkit.runbook.presentable import presentable
from matoolkit.runbook.templates import Path
from matoolkit.runbook.tree import Node, position_of

FINDING_KINDS = {kind.code: kind for kind in (*ERRORS, *WARNINGS)}


def finding(
    code: str, message: str, hint: str | None = None, *, line: int = 1, column: int = 1, path: Path = ()
) -> Finding:
    """Build a finding; its code decides how serious it is. Text from the document is made safe to show."""
    kind = FINDING_KINDS[code]
    return Finding(code, kind.severity, presentable(message), line, column, presentable(hint or kind.hint), path)


def finding_at(
    root: Node, code: str, path: Path, message: str, hint: str | None = None, *, key: bool = False
) -> Finding:
    """Build a finding about the value at a path, or about its key."""
    position = position_of(root, path, key=key)
    return finding(code, message, hint, line=position.line, column=position.column, path=path)
