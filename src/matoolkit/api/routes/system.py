"""The system itself: whether it works, what workers can do, and who changed what."""

from collections import defaultdict
from typing import Annotated

from fastapi import APIRouter, Query, Response

from matoolkit.admin.catalogue import known_catalogue
from matoolkit.api.metrics import metrics_text
from matoolkit.api.paging import Page, PageQuery, page, position, whole
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.naming import RowId
from matoolkit.api.shapes.operations import AuditShape, FunctionShape, Health, ParameterShape, audit_shape
from matoolkit.store.audit import audit_page
from matoolkit.store.catalogue import known_functions
from matoolkit.store.idempotency import require_writable
from matoolkit.store.upgrade import require_current_schema

router = APIRouter(tags=["system"])


class AuditQuery(PageQuery):
    """Which changes are wanted."""

    batch_id: RowId | None = None
    runbook: str | None = None
    subject_type: str | None = None
    subject_id: str | None = None
    actor: str | None = None


@router.get("/healthz")
async def health() -> Health:
    """Say that the process runs; needs no sign-in."""
    # As a coroutine it needs no thread, and other requests may keep all threads busy.
    return Health(status="ok")


@router.get("/readyz")
def readiness(serving: Serving) -> Health:
    """Say whether the database answers, has the right tables and can be written to; needs no sign-in."""
    require_current_schema(serving.store)
    require_writable(serving.store)
    return Health(status="ok")


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
def metrics(serving: Serving, _: Reader) -> Response:
    """Return counts for Prometheus."""
    return Response(metrics_text(serving.store), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/api/functions")
def list_functions(serving: Serving, _: Reader) -> Page[FunctionShape]:
    """List the functions that runbooks can call, and which workers announced them."""
    with serving.store.reading() as tx:
        catalogue, announced = known_catalogue(tx), known_functions(tx)
    workers: dict[str, list[str]] = defaultdict(list)
    for row in announced:
        workers[row.function_name.casefold()].append(row.worker_id)
    return whole(
        [
            FunctionShape(
                name=function.name,
                parameters=[ParameterShape.model_validate(one) for one in function.parameters],
                workers=workers[folded],
            )
            for folded, function in sorted(catalogue.items())
        ]
    )


@router.get("/api/audit")
def list_changes(serving: Serving, _: Reader, wanted: Annotated[AuditQuery, Query()]) -> Page[AuditShape]:
    """List what people changed, newest first. Reads are not recorded."""
    before = position(wanted.cursor, "audit")
    with serving.store.reading() as tx:
        rows = audit_page(
            tx,
            subject_type=wanted.subject_type,
            subject_id=wanted.subject_id,
            batch_id=wanted.batch_id,
            runbook_name=wanted.runbook,
            actor=wanted.actor,
            before=before,
            limit=wanted.limit + 1,
        )
    return page(rows, wanted.limit, "audit", lambda row: row.id, audit_shape)
