"""A decision: what it would do, shown before it is made, and the form that makes it.

A refusal leaves the form standing, with what was typed, and shows what would happen as it is now.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any, Generic, TypeVar

from pydantic import StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.doors.problems import problem
from matoolkit.errors import MatoolkitError, MissingAnswer, PreviewChanged, Refused
from matoolkit.store import Store
from matoolkit.web.rendering import Frame, elsewhere, fragment, is_fragment, page
from matoolkit.web.sealing import Seal
from matoolkit.web.serving import Site
from matoolkit.web.visiting import Viewer

_PURPOSE = "decision"

MeantT = TypeVar("MeantT")
# A reason that was not given is refused in the form, not before it.
TypedReason = Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000)]


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


@dataclass(frozen=True, slots=True)
class Act(Generic[MeantT]):
    """What a person does after having seen what it would do.

    `meant` finds out what is asked for, before any transaction begins: it may read a source. Nothing is meant until a
    person has chosen. `decision` plans it, and shows the form without a plan if there is nothing to plan from. `work`
    does it and says what was done.
    """

    meant: Callable[[], MeantT | None]
    decision: Callable[[Store, MeantT | None], Decision]
    work: Callable[[Store, MeantT], str]


def preview(request: Request, viewer: Viewer, site: Site, act: Act[Any], reason: str = "") -> Response:
    """Show what an act would do, and ask for the reason."""
    decision, refused = _planned(site, act)
    return decide(request, viewer, site.seal, decision, refused=refused, reason=reason)


def carry_out(request: Request, viewer: Viewer, site: Site, act: Act[Any], *, reason: str, shown: str) -> Response:
    """Do what was shown; if that would no longer happen, or cannot, show the form again with what was typed."""
    try:
        if not reason:
            raise MissingAnswer("a reason is missing")
        meant = act.meant()
        if meant is None:
            raise MissingAnswer("nobody is chosen")
        with site.services.store.transaction() as tx:
            store = site.services.store.within(tx)
            decision = act.decision(store, meant)
            decision.require(site.seal, shown)
            told = act.work(store, meant)
    except Refused as refused:
        decision, again = _planned(site, act)
        return decide(request, viewer, site.seal, decision, refused=again or refused, reason=reason)
    site.looks.forget()
    return elsewhere(request, decision.back, done=told)


def _planned(site: Site, act: Act[Any]) -> tuple[Decision, Refused | None]:
    store = site.services.store
    try:
        return act.decision(store, act.meant()), None
    except Refused as refused:
        return act.decision(store, None), refused


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
