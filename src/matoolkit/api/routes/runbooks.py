"""Runbooks: publishing, versions, automation, and what their query returns."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from matoolkit.admin.csvfiles import template_csv
from matoolkit.admin.including import include_member
from matoolkit.admin.previewing import preview_query
from matoolkit.admin.publishing import deactivate, publish, set_automation
from matoolkit.admin.queries import latest_runbook, runbook_status, versions_of, what_waits
from matoolkit.api.bodies import Body
from matoolkit.api.changing import Change, Changing
from matoolkit.api.conditions import TAGGED, IfNoneMatch, shown
from matoolkit.api.paging import Page, whole
from matoolkit.api.services import Admin, Reader, Serving
from matoolkit.api.shapes.naming import Reason, RowId
from matoolkit.api.shapes.operations import IncludedShape, IncludeRequest
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
from matoolkit.api.subjects import (
    automation_shown,
    automation_subject,
    publication_subject,
    runbook_shown,
    version_shown,
    version_subject,
)
from matoolkit.doors.bodies import YAML_TYPES, media_type
from matoolkit.doors.problems import flaws_of
from matoolkit.errors import InvalidRequest, InvalidRunbook, WrongContentType
from matoolkit.runbook.parse import lint_runbook, parse_runbook
from matoolkit.store import Store
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


@router.post(
    "",
    status_code=201,
    response_model=PublishedShape,
    openapi_extra=_PUBLISH_BODY,
    responses={200: {"model": PublishedShape}},
)
def publish_runbook(
    request: Request, change: Changing, body: Body, options: Annotated[PublishOptions, Query()]
) -> Response:
    """Publish a document as the next version of its runbook: as JSON, or as it is with its options in the address."""
    kind = media_type(request)
    if kind in YAML_TYPES:
        return _publish(change, body, options)
    if kind in ("application/json", ""):
        asked = _publish_request(body)
        return _publish(change, asked.yaml_content.encode(errors="replace"), asked)
    raise WrongContentType(kind, ("application/json", YAML_TYPES[0]))


@router.get("")
def list_runbooks(serving: Serving, _: Reader) -> Page[RunbookSummary]:
    """List the active version of every runbook."""
    with serving.store.reading() as tx:
        rows = active_runbooks(tx)
    return whole([RunbookSummary.model_validate(row) for row in rows])


@router.get("/{name}", response_model=RunbookDocument, responses=TAGGED)
def get_runbook(name: Name, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Return the active version of a runbook, or the newest if none is active."""
    return shown(runbook_shown(serving.store, name), known)


@router.get("/{name}/versions")
def list_versions(name: Name, serving: Serving, _: Reader) -> Page[RunbookSummary]:
    """List all versions of a runbook, newest first."""
    return whole([RunbookSummary.model_validate(row) for row in versions_of(serving.store, name)])


@router.get("/{name}/versions/{version}", response_model=RunbookDocument, responses=TAGGED)
def get_version(name: Name, version: RowId, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Return one version of a runbook."""
    return shown(version_shown(serving.store, name, version), known)


@router.delete("/{name}/versions/{version}", response_model=RunbookSummary)
def deactivate_version(
    name: Name, version: RowId, change: Changing, reason: Annotated[Reason, Query()] = None
) -> Response:
    """Deactivate the active version: no new members are found, batches in flight go on."""

    def put_out_of_use(store: Store) -> RunbookSummary:
        row = deactivate(store, name, version, by=change.by, reason=reason, now=change.services.clock.now())
        return RunbookSummary.model_validate(row)

    return change.made(("deactivate", name, version, reason), put_out_of_use, of=version_subject(name, version))


@router.get("/{name}/automation", response_model=AutomationShape, responses=TAGGED)
def get_automation(name: Name, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Say whether the scheduler queries a runbook's source, and who decided it."""
    return shown(automation_shown(serving.store, name), known)


@router.put("/{name}/automation", response_model=AutomationShape)
def put_automation(name: Name, asked: AutomationRequest, change: Changing) -> Response:
    """Let the scheduler query a runbook's source, or stop it."""

    def switch(store: Store) -> AutomationShape:
        row = set_automation(store, name, enabled=asked.enabled, by=change.by, now=change.services.clock.now())
        return AutomationShape.model_validate(row)

    return change.made(("automation", name, asked.enabled), switch, of=automation_subject(name))


@router.post("/{name}/members/include", response_model=IncludedShape)
def include(name: Name, asked: IncludeRequest, change: Changing) -> Response:
    """Include a row that the scheduler keeps outside because T has passed or it is done, or end an exclusion."""

    def let_in(store: Store) -> IncludedShape:
        now = change.services.clock.now()
        done = include_member(store, name, asked.member_key, by=change.by, reason=asked.reason, now=now)
        return IncludedShape(**asdict(done), waits_for=what_waits(store, done.runbook_name))

    return change.made(("include", name, asked.member_key, asked.reason), let_in)


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


@router.get("/{name}/status", response_model=StatusShape, responses=TAGGED)
def get_status(name: Name, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Say how a runbook is doing: its last tick, the rows that were set aside, its last error, its batches."""
    return shown(status_shape(runbook_status(serving.store, name)), known)


def _publish(change: Change, content: bytes, options: PublishOptions) -> Response:
    def put_in_use(store: Store) -> PublishedShape:
        done = publish(
            store,
            content,
            by=change.by,
            now=change.services.clock.now(),
            overdue_behavior=options.overdue_behavior,
            rerun_init=options.rerun_init,
            force=options.force,
            enable=options.enable,
            name=options.name,
            dry_run=options.dry_run,
        )
        return published_shape(done)

    # What JSON and YAML have in common, so that a request is the same in either.
    asked = ("publish", content, options.model_dump_json(include=set(PublishOptions.model_fields)))
    return change.made(
        asked,
        put_in_use,
        of=publication_subject(lambda: _name_in(content)),
        status=lambda done: 201 if done.is_new and not done.is_dry_run else 200,
    )


def _name_in(content: bytes) -> str:
    report = lint_runbook(content)
    if report.runbook is None:
        raise InvalidRunbook(report.findings)
    return report.runbook.name


def _publish_request(body: bytes) -> PublishRequest:
    try:
        return PublishRequest.model_validate_json(body)
    except ValidationError as invalid:
        flaws = flaws_of([{**error, "loc": ("body", *error["loc"])} for error in invalid.errors()])
        raise InvalidRequest(flaws) from None
