"""A decision: what it would do, shown before it is made, and the form that makes it.

A refusal leaves the form standing, with what was typed, and shows what would happen as it is now.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from matoolkit.doors.problems import problem
from matoolkit.errors import MatoolkitError, PreviewChanged
from matoolkit.web.rendering import Frame, fragment, is_fragment, page
from matoolkit.web.sealing import Seal
from matoolkit.web.visiting import Viewer

_PURPOSE = "decision"


@dataclass(frozen=True, slots=True)
class Decision:
    """What would happen, and the button that lets it happen; without a button nothing can.

    `template` says what would happen, and lets people choose other terms. `plan` is what the decision is bound to.
    """

    title: str
    address: str
    template: str
    back: str
    command: str
    plan: object = None
    button: str | None = None
    is_risk: bool = False
    asked: Mapping[str, object] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def mark(self, seal: Seal) -> str:
        """Return a sign that only this plan has."""
        return seal.mark(_PURPOSE, *self._facts())

    def require(self, seal: Seal, given: str) -> None:
        """Refuse if something else was shown than would be done."""
        if not seal.is_mark(given, _PURPOSE, *self._facts()):
            raise PreviewChanged

    def _facts(self) -> tuple[str, ...]:
        return self.address, repr(sorted(self.asked.items())), sha256(repr(self.plan).encode()).hexdigest()


def decide(
    request: Request,
    viewer: Viewer,
    seal: Seal,
    decision: Decision,
    *,
    refused: MatoolkitError | None = None,
    reason: str = "",
) -> Response:
    """Show a decision below the link that asked for it, or as a page; after a refusal with what was refused."""
    context: dict[str, Any] = {
        "decision": decision,
        "mark": decision.mark(seal),
        "problem": problem(refused) if refused else None,
        "reason": reason,
        "is_part": is_fragment(request),
    }
    # A decision that cannot be made yet is still an answer to somebody who only looks.
    status = refused.http_status if refused and request.method == "POST" else 200
    if not is_fragment(request):
        frame = Frame(decision.title, "batches", decision.command, styles=("batch.css",))
        return page(request, viewer, "decision.html", frame, status=status, **context)
    answer = fragment(viewer, "decide.html", status=status, **context)
    if request.method == "POST":
        # The form is replaced as a whole, for it says what would happen now.
        answer.headers["HX-Retarget"] = "closest .deciding"
    return answer
