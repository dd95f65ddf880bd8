"""Making a manual batch: a file is looked at row by row, then the batch that it would make, and then it is made."""

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, File, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.csvfiles import CsvRows, read_csv, template_csv
from matoolkit.admin.manual import ManualChange, ManualUpload
from matoolkit.admin.manualpreview import ManualPreview, preview_manual_batch
from matoolkit.admin.queries import latest_runbook
from matoolkit.admin.uploads import Upload
from matoolkit.doors.problems import problem
from matoolkit.errors import InvalidMembers, MatoolkitError, MissingAnswer, PreviewChanged
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.runbooks import active_runbooks
from matoolkit.web.forms import Reason
from matoolkit.web.rendering import Frame, elsewhere, fragment, is_fragment, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.visiting import Changing, Deciding, Viewer
from matoolkit.words import made_told

router = APIRouter(prefix="/manual-batches")

_PURPOSE = "manual batch"
_PIECE = 1024 * 1024
_LONGEST_TEMPLATE = 2000

_Runbook = Annotated[str, Form(max_length=200, min_length=1)]
_Members = Annotated[UploadFile | None, File()]


@router.get("/new")
def get_form(request: Request, serving: Serving, viewer: Deciding, runbook: str = "") -> Response:
    """Show the form: which runbook, its template, and the file."""
    return _form(request, serving, viewer, runbook)


@router.post("/preview")
def look(request: Request, serving: Serving, viewer: Changing, runbook: _Runbook, file: _Members = None) -> Response:
    """Show what is wrong with a file, row by row, or the batch that it would make."""
    given = _given(file)
    try:
        rows = _rows(serving, runbook, given)
        seen = preview_manual_batch(serving.services.store, runbook, rows)
    except InvalidMembers as wrong:
        if is_fragment(request):
            return fragment(viewer, "manual/wrong.html", wrong=wrong)
        return _form(request, serving, viewer, runbook, status=wrong.http_status, wrong=wrong)
    mark = serving.seal.mark(_PURPOSE, *_facts(seen, given))
    told: dict[str, Any] = {"seen": seen, "warnings": rows.warnings, "mark": mark}
    if is_fragment(request):
        return fragment(viewer, "manual/preview.html", **told)
    return _form(request, serving, viewer, runbook, **told)


@router.post("")
def make(
    request: Request,
    serving: Serving,
    viewer: Changing,
    runbook: _Runbook,
    reason: Annotated[Reason, Form()],
    file: _Members = None,
    seen: Annotated[str, Form()] = "",
) -> Response:
    """Make the batch that was shown; without scripts nothing could be shown, because a form cannot keep its file."""
    services, given = serving.services, _given(file)
    try:
        rows = _rows(serving, runbook, given)
        planned = preview_manual_batch(services.store, runbook, rows)
        if seen and not serving.seal.is_mark(seen, _PURPOSE, *_facts(planned, given)):
            raise PreviewChanged
        upload = Upload(rows, planned.runbook.data_source.primary_key)
    except MatoolkitError as refused:
        if is_fragment(request):
            raise
        told = problem(refused)
        return _form(request, serving, viewer, runbook, status=told.status, problem=told, reason=reason)
    filling = ManualUpload(
        services.publisher, upload, by=viewer.identity.name, reason=reason, runbook_name=planned.row.name
    )
    made, broken = _filled(serving, filling)
    serving.looks.forget()
    told_of = made_told(made.batch.id, made.members, ", ".join(planned.phases))
    if broken is not None:
        missing = f"the others are missing: add the file again with `matoolkit batch add-members {made.batch.id} FILE`"
        told_of = f"batch {made.batch.id} has only {made.members:,} members, {missing} ({broken.code})"
    return elsewhere(request, f"/batches/{made.batch.id}", told_of)


def _filled(site: Site, filling: ManualUpload) -> tuple[ManualChange, MatoolkitError | None]:
    """Fill the batch part by part. If it breaks off after the first part, there is a batch, and the person is told."""
    made: ManualChange | None = None
    try:
        for part in filling.parts(lambda change: change):
            made = part(site.services.store) or made
    except MatoolkitError as broken:
        if made is None:
            raise
        return made, broken
    assert made is not None  # noqa: S101 - the last part has a batch, or refuses
    return made, None


def _given(file: UploadFile | None) -> BinaryIO:
    if file is None or not file.filename:
        raise MissingAnswer("choose the CSV file with the members")
    return file.file


def _rows(site: Site, runbook: str, file: BinaryIO) -> CsvRows:
    with site.services.store.reading() as tx:
        model = parse_runbook(latest_runbook(tx, runbook).yaml_content)
    return read_csv(file, model.data_source)


def _facts(seen: ManualPreview, file: BinaryIO) -> Iterator[str]:
    """List what a confirmation is about: the file, the version, and who joins."""
    digest = hashlib.sha256()
    file.seek(0)
    while piece := file.read(_PIECE):
        digest.update(piece)
    left_out = (f"{why}: {group.count}" for why, group in seen.left_out.items())
    yield from (seen.row.name, str(seen.row.version), digest.hexdigest(), str(seen.joining.count), *left_out)


def _form(request: Request, site: Site, viewer: Viewer, runbook: str, *, status: int = 200, **more: Any) -> Response:
    with site.services.store.reading() as tx:
        names = [row.name for row in active_runbooks(tx)]
        row = latest_runbook(tx, runbook) if runbook else None
    source = parse_runbook(row.yaml_content).data_source if row else None
    command = f"matoolkit batch create {row.name} FILE" if row else "matoolkit batch create RUNBOOK FILE"
    frame = Frame("New manual batch", "batches", command, styles=("runbook.css",))
    around: dict[str, Any] = {
        "names": names,
        "row": row,
        "source": source,
        "template": template_csv(source)[:_LONGEST_TEMPLATE] if source else "",
    }
    around |= {"seen": None, "wrong": None, "problem": None, "reason": "", **more}
    return page(request, viewer, "manual.html", frame, status=status, **around)
