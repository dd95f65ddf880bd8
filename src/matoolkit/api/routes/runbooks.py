"""Runbooks: publishing, versions, automation, and what their query returns."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from matoolkit.admin.csvfiles import template_csv
from matoolkit.admin.previewing import preview_query
from matoolkit.admin.publishing import Published, deactivate, publish, set_automation
from matoolkit.admin.queries import automation_status, latest_runbook, one_version, runbook_status, versions_of
from matoolkit.api.bodies import YAML_TYPES, Body, media_type
from matoolkit.api.paging import Page
from matoolkit.api.problems import flaws_of
from matoolkit.api.services import Admin, Reader, Services, Serving
from matoolkit.api.shapes.naming import Reason, RowId
from matoolkit.api.shapes.runbooks import (
    AutomationRequest,
    AutomationShape,
    BatchGroup,
    PreviewShape,
    PublishedShape,
    PublishOptions,
    PublishRequest,
    RunbookDocument,
    RunbookSummary,
    SetAsideShape,
    StatusShape,
    published_shape,
    status_shape,
)
from matoolkit.errors import InvalidRequest, WrongContentType
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.runbooks import active_runbooks

router = APIRouter(prefix="/api/runbooks", tags=["runbooks"])

Name = Annotated[str, Path(max_length=200)]
_CSV: dict[int | str, dict[str, Any]] = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_PUBLISH_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/PublishRequest"}},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}


@router.post("", status_code=201, openapi_extra=_PUBLISH_BODY, responses={200: {"model": PublishedShape}})
def publish_runbook(
    request: Request,
    response: Response,
    serving: Serving,
    admin: Admin,
    body: Body,
    options: Annotated[PublishOptions, Query()],
) -> PublishedShape:
    """Publish a document as the next version of its runbook: as JSON, or as it is with its options in the address."""
    kind = media_type(request)
    if kind in YAML_TYPES:
        published = _publish(serving, admin, body, options)
    elif kind in ("application/json", ""):
        asked = _publish_request(body)
        published = _publish(serving, admin, asked.yaml_content.encode(errors="replace"), asked)
    else:
        raise WrongContentType(kind, ("application/json", YAML_TYPES[0]))
    if published.is_dry_run or not published.is_new:
        response.status_code = 200
    return published_shape(published)


@router.get("")
def list_runbooks(serving: Serving, _: Reader) -> Page[RunbookSummary]:
    """List the active version of every runbook."""
    with serving.store.reading() as tx:
        rows = active_runbooks(tx)
    return Page(items=[RunbookSummary.model_validate(row) for row in rows])


@router.get("/{name}")
def get_runbook(name: Name, serving: Serving, _: Reader) -> RunbookDocument:
    """Return the active version of a runbook, or the newest if none is active."""
    with serving.store.reading() as tx:
        return RunbookDocument.model_validate(latest_runbook(tx, name))


@router.get("/{name}/versions")
def list_versions(name: Name, serving: Serving, _: Reader) -> Page[RunbookSummary]:
    """List all versions of a runbook, newest first."""
    return Page(items=[RunbookSummary.model_validate(row) for row in versions_of(serving.store, name)])


@router.get("/{name}/versions/{version}")
def get_version(name: Name, version: RowId, serving: Serving, _: Reader) -> RunbookDocument:
    """Return one version of a runbook."""
    return RunbookDocument.model_validate(one_version(serving.store, name, version))


@router.delete("/{name}/versions/{version}")
def deactivate_version(
    name: Name, version: RowId, serving: Serving, admin: Admin, reason: Annotated[Reason, Query()] = None
) -> RunbookSummary:
    """Put the active version out of use: nobody new is discovered, batches in flight go on."""
    row = deactivate(serving.store, name, version, by=admin, reason=reason, now=serving.clock.now())
    return RunbookSummary.model_validate(row)


@router.get("/{name}/automation")
def get_automation(name: Name, serving: Serving, _: Reader) -> AutomationShape:
    """Say whether the scheduler queries a runbook's source, and who decided it."""
    with serving.store.reading() as tx:
        return AutomationShape.model_validate(automation_status(tx, name))


@router.put("/{name}/automation")
def put_automation(name: Name, asked: AutomationRequest, serving: Serving, admin: Admin) -> AutomationShape:
    """Let the scheduler query a runbook's source, or keep it from doing so."""
    row = set_automation(serving.store, name, enabled=asked.enabled, by=admin, now=serving.clock.now())
    return AutomationShape.model_validate(row)


@router.post("/{name}/query/preview")
def preview(name: Name, serving: Serving, _: Admin, limit: Annotated[int, Query(ge=0, le=100)] = 10) -> PreviewShape:
    """Run a runbook's query and say which batches its rows would make; nothing is changed."""
    found = preview_query(serving.store, serving.open_source, name, limit)
    return PreviewShape(
        total_rows=found.total_rows,
        sample_rows=[dict(row) for row in found.sample_rows],
        batch_groups=[BatchGroup(batch_time=time, member_count=count) for time, count in found.groups.items()],
        rows_set_aside={str(reason): count for reason, count in found.set_aside.items()},
        set_aside_samples=[SetAsideShape.model_validate(sample) for sample in found.set_aside_samples],
    )


@router.get("/{name}/template", response_class=Response, responses=_CSV)
def download_template(name: Name, serving: Serving, _: Reader) -> Response:
    """Return a CSV file to start from: the query's columns, and a row that shows how several values are packed."""
    with serving.store.reading() as tx:
        runbook = latest_runbook(tx, name)
    text = template_csv(parse_runbook(runbook.yaml_content).data_source)
    headers = {"Content-Disposition": f'attachment; filename="{runbook.name}.csv"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/{name}/status")
def get_status(name: Name, serving: Serving, _: Reader) -> StatusShape:
    """Say how a runbook is doing: its last tick, the rows that were set aside, its last error, its batches."""
    return status_shape(runbook_status(serving.store, name))


def _publish(serving: Services, admin: str, content: bytes, options: PublishOptions) -> Published:
    return publish(
        serving.store,
        content,
        by=admin,
        now=serving.clock.now(),
        overdue_behavior=options.overdue_behavior,
        rerun_init=options.rerun_init,
        force=options.force,
        enable=options.enable,
        name=options.name,
        dry_run=options.dry_run,
    )


def _publish_request(body: bytes) -> PublishRequest:
    try:
        return PublishRequest.model_validate_json(body)
    except ValidationError as invalid:
        flaws = flaws_of([{**error, "loc": ("body", *error["loc"])} for error in invalid.errors()])
        raise InvalidRequest(flaws) from None
