"""Publishing a runbook: a document is typed or uploaded, looked at with what it would do, and then put in use."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.drafting import Draft, Options, draft_of, publish_as_shown
from matoolkit.admin.publishing import content_hash
from matoolkit.admin.queries import latest_runbook
from matoolkit.domain.states import OverdueBehavior
from matoolkit.doors.problems import problem
from matoolkit.errors import MatoolkitError
from matoolkit.runbook.source import MAX_BYTES
from matoolkit.web.differing import compared
from matoolkit.web.documents import around_findings
from matoolkit.web.rendering import Frame, elsewhere, fragment, is_fragment, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer
from matoolkit.words import published_told, repeats_told

router = APIRouter(prefix="/publications")

_PURPOSE = "publish"
_Flag = Annotated[bool, Form()]


@dataclass(frozen=True, slots=True)
class ToPublish:
    """A document and how it is to be published, as the form has it; a file goes before what is typed."""

    text: str
    content: str | bytes
    is_file: bool
    runbook: str
    options: Options


def _asked(
    text: Annotated[str, Form()] = "",
    file: Annotated[UploadFile | None, File()] = None,
    runbook: Annotated[str, Form(max_length=200)] = "",
    overdue: Annotated[OverdueBehavior, Form()] = OverdueBehavior.RERUN,
    rerun_init: _Flag = False,
    enable: _Flag = False,
    again: _Flag = False,
    strict: _Flag = False,
) -> ToPublish:
    options = Options(runbook or None, overdue, rerun_init, again, enable, strict)
    # Browsers send typed lines with the line ends of the standard of forms.
    typed = text.replace("\r\n", "\n")
    if file is None or not file.filename:
        return ToPublish(typed, typed, False, runbook, options)
    content = file.file.read(MAX_BYTES + 1)
    return ToPublish(_readable(content) or typed, content, True, runbook, options)


def _readable(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig") if len(content) <= MAX_BYTES else ""
    except UnicodeDecodeError:
        return ""


Given = Annotated[ToPublish, Depends(_asked)]


@router.get("/new")
def get_form(request: Request, serving: Serving, viewer: Deciding, runbook: str = "") -> Response:
    """Show the form, with the active version in it."""
    text, name = "", ""
    if runbook:
        with serving.services.store.reading() as tx:
            row = latest_runbook(tx, runbook)
        text, name = row.yaml_content, row.name
    return _form(request, viewer, ToPublish(text, text, False, name, Options()))


@router.post("/check")
def check(request: Request, serving: Serving, viewer: Changing, asked: Given) -> Response:
    """Show what the linter finds in a document, and what publishing it would do."""
    try:
        seen = _seen(serving, viewer, asked)
    except MatoolkitError as refused:
        return _refused(request, viewer, asked, refused)
    if is_fragment(request):
        return fragment(viewer, "publication/checked.html", asked=asked, is_part=True, **seen)
    return _form(request, viewer, asked, **seen)


@router.post("")
def put_in_use(
    request: Request, serving: Serving, viewer: Changing, asked: Given, seen: Annotated[str, Form()] = ""
) -> Response:
    """Publish a document that was looked at."""
    services = serving.services

    def is_as_shown(draft: Draft) -> bool:
        return serving.seal.is_mark(seen, _PURPOSE, viewer.identity.name, *_facts(asked, draft))

    try:
        done = publish_as_shown(
            services.store,
            asked.content,
            asked.options,
            by=viewer.identity.name,
            now=services.clock.now(),
            is_as_shown=is_as_shown,
        )
    except MatoolkitError as refused:
        return _refused(request, viewer, asked, refused)
    serving.looks.forget()
    told = published_told(
        done.name,
        done.version,
        len(done.impacts),
        is_new=done.is_new,
        is_dry_run=False,
        enables=asked.options.enable,
    )
    return elsewhere(request, f"/runbooks/{done.name}", told)


def _seen(site: Site, viewer: Viewer, asked: ToPublish) -> Mapping[str, Any]:
    """Return what a check shows."""
    services, by = site.services, viewer.identity.name
    draft = draft_of(services.store, asked.content, asked.options, by=by, now=services.clock.now())
    planned, against = draft.planned, draft.against
    repeating = [impact for impact in planned.impacts if impact.transition.repeated] if planned else []
    phases = [phase.name for impact in repeating for phase in impact.transition.repeated]
    return {
        "draft": draft,
        "excerpt": around_findings(draft.report) if draft.report.findings else None,
        "difference": compared(against.report, draft.report) if against else None,
        "repeats": repeats_told(phases, [str(impact.batch_id) for impact in repeating]) if repeating else "",
        "mark": site.seal.mark(_PURPOSE, by, *_facts(asked, draft)),
        "command": _command(asked),
    }


def _facts(asked: ToPublish, draft: Draft) -> tuple[str, ...]:
    """List what a confirmation is about: the document, how it is published, and what that does."""
    planned = draft.planned
    if planned is None:
        return (draft.report.source.text,)
    impacts = [f"{impact.batch_id}: {impact.transition.in_words()}" for impact in planned.impacts]
    kept = (planned.name, planned.version, planned.is_new, planned.is_automated, asked.options)
    return (content_hash(draft.report.source.text), *map(str, kept), *impacts)


def _command(asked: ToPublish) -> str:
    options = asked.options
    flags = [
        f" --overdue {options.overdue_behavior}" if options.overdue_behavior is not OverdueBehavior.RERUN else "",
        " --rerun-init" if options.rerun_init else "",
        " --enable" if options.enable else "",
        " --again" if options.force else "",
    ]
    return f"matoolkit runbook publish {asked.runbook or 'FILE'}{'.yaml' if asked.runbook else ''}{''.join(flags)}"


def _form(request: Request, viewer: Viewer, asked: ToPublish, *, status: int = 200, **seen: Any) -> Response:
    title = f"Publish {asked.runbook}" if asked.runbook else "New runbook"
    frame = Frame(title, "runbooks", f"{_command(asked)} --dry-run", styles=("runbook.css",))
    around: dict[str, Any] = {"asked": asked, "is_part": False, "problem": None, "draft": None, **seen}
    return page(request, viewer, "publication.html", frame, status=status, **around)


def _refused(request: Request, viewer: Viewer, asked: ToPublish, refused: MatoolkitError) -> Response:
    """Say why not; without scripts the page comes again with all that was typed."""
    if is_fragment(request):
        raise refused
    told = problem(refused)
    return _form(request, viewer, asked, status=told.status, problem=told)
