"""One runbook: its document with what the linter finds, how it is doing, and its versions."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.csvfiles import template_csv
from matoolkit.admin.drafting import changes_between
from matoolkit.admin.queries import latest_runbook, runbook_status, versions_of
from matoolkit.admin.runbooks import document_of, rows_left_alone, rows_set_aside
from matoolkit.domain.keys import folded
from matoolkit.runbook.parse import parse_runbook
from matoolkit.web.differing import compared
from matoolkit.web.documents import slice_of
from matoolkit.web.files import csv_file
from matoolkit.web.forms import LARGEST_ID, RowNumber
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking, Viewer
from matoolkit.words import CHANGES, changes_told, rows_told

router = APIRouter(prefix="/runbooks/{name}")

RunbookName = Annotated[str, InPath(max_length=200)]
VersionNumber = Annotated[RowNumber, InPath()]
FirstLine = Annotated[int, Query(ge=1, le=LARGEST_ID)]

STYLES = ("runbook.css",)
_PARTS = {"head": "runbook/head.html", "status": "runbook/status.html"}


def topic_of(site: Site, key: str) -> Topic:
    """Return a runbook as something to watch."""
    with site.services.store.reading() as tx:
        name = latest_runbook(tx, key).name

    def look() -> Mapping[str, Any]:
        seen = site.looks.taken(("runbook", folded(name)), lambda: runbook_status(site.services.store, name))
        tick = seen.tick
        return {
            "seen": seen,
            "tick": tick,
            "rows": rows_told(tick.rows_read, tick.rows_set_aside, tick.rows_ignored) if tick else "",
            "changes": changes_told({word: getattr(tick, f"members_{word}") for word in CHANGES}) if tick else "",
            "aside": rows_set_aside(tick),
            "left_alone": rows_left_alone(tick),
        }

    return Topic(f"runbook/{name}", _PARTS, look)


@router.get("")
def get_runbook(
    request: Request, serving: Serving, viewer: Looking, name: RunbookName, line: FirstLine = 1
) -> Response:
    """Show a runbook: its active version, or the newest if none is active."""
    return _shown(request, serving, viewer, name, None, line)


@router.get("/versions/{version}")
def get_version(
    request: Request, serving: Serving, viewer: Looking, name: RunbookName, version: VersionNumber, line: FirstLine = 1
) -> Response:
    """Show one version of a runbook."""
    return _shown(request, serving, viewer, name, version, line)


def _shown(request: Request, serving: Serving, viewer: Viewer, name: str, version: int | None, line: int) -> Response:
    document = document_of(serving.services.store, name, version)
    row = document.row
    topic = topic_of(serving, row.name)
    place = f"/runbooks/{row.name}"
    frame = Frame(
        f"{row.name} v{row.version}" if version else row.name,
        "runbooks",
        f"matoolkit runbook get {row.name} --version {version}" if version else f"matoolkit runbook status {row.name}",
        f"{place}/set-aside.csv",
        topic,
        styles=STYLES,
    )
    around: dict[str, Any] = {"document": document, "row": row, "place": place, "is_version": version is not None}
    return page(request, viewer, "runbook.html", frame, slice=slice_of(document.report, line), **around, **topic.look())


@router.get("/versions/{version}/changes")
def get_changes(
    request: Request,
    serving: Serving,
    viewer: Looking,
    name: RunbookName,
    version: VersionNumber,
    since: Annotated[RowNumber, Query()],
) -> Response:
    """Show what a version does differently than an earlier one."""
    document, against = changes_between(serving.services.store, name, version, since)
    row = document.row
    old, new = (f"<(matoolkit runbook get {row.name} --version {number})" for number in (since, row.version))
    frame = Frame(f"{row.name} v{row.version} since v{since}", "runbooks", f"diff {old} {new}", styles=STYLES)
    around: dict[str, Any] = {"document": document, "row": row, "against": against, "place": f"/runbooks/{row.name}"}
    difference = compared(against.report, document.report)
    return page(request, viewer, "changes.html", frame, difference=difference, **around)


@router.get("/versions.csv")
def versions_as_file(serving: Serving, _: Looking, name: RunbookName) -> Response:
    """Return the list of all versions as a file."""
    rows = versions_of(serving.services.store, name)
    heading = ["version", "active", "published", "by", "overdue", "rerun init", "last error", "error at"]
    cells = (
        [
            row.version,
            row.is_active,
            row.created_at,
            row.published_by,
            row.overdue_behavior,
            row.rerun_init,
            row.last_error,
            row.last_error_at,
        ]
        for row in rows
    )
    return csv_file(f"{rows[0].name}-versions", heading, cells)


@router.get("/document.yaml")
def document_as_file(
    serving: Serving, _: Looking, name: RunbookName, version: Annotated[RowNumber | None, Query()] = None
) -> Response:
    """Return the document of a version as it was published."""
    row = document_of(serving.services.store, name, version).row
    file = f'attachment; filename="{row.name}-v{row.version}.yaml"'
    return Response(row.yaml_content, media_type="application/yaml", headers={"Content-Disposition": file})


@router.get("/set-aside.csv")
def set_aside_as_file(serving: Serving, _: Looking, name: RunbookName) -> Response:
    """Return rows that the last tick set aside as a file: some of them, as the status has them."""
    status = runbook_status(serving.services.store, name)
    samples = rows_set_aside(status.tick)["samples"]
    cells = ([one.get("reason"), one.get("key"), one.get("detail")] for one in samples)
    return csv_file(f"{status.runbook.name}-set-aside", ["reason", "key", "detail"], cells)


@router.get("/template.csv")
def template_as_file(serving: Serving, _: Looking, name: RunbookName) -> Response:
    """Return a file to start a manual batch from: the query's columns, and a row that shows how values are packed."""
    with serving.services.store.reading() as tx:
        row = latest_runbook(tx, name)
    text = template_csv(parse_runbook(row.yaml_content).data_source)
    file = f'attachment; filename="{row.name}.csv"'
    return Response(text, media_type="text/csv; charset=utf-8", headers={"Content-Disposition": file})
