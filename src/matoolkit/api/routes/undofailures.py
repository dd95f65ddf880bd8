"""Steps of rollbacks and removals that failed: finding them and trying them again."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from matoolkit.admin.queries import existing_batch
from matoolkit.admin.undoretries import preview_undo_retry, retry_undo
from matoolkit.api.changing import OperatingOn
from matoolkit.api.paging import Count, Page, PageQuery, page, position
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.naming import RowId
from matoolkit.api.shapes.operations import UndoFailureShape, UndoRetryRequest, UndoRetryShape
from matoolkit.api.subjects import batch_subject
from matoolkit.store import Store
from matoolkit.store.undofailures import count_undo_failures, undo_failures_page

router = APIRouter(prefix="/api", tags=["operations"])


class UndoFailureQuery(PageQuery):
    """Which failed undo steps are wanted."""

    batch_id: RowId | None = None


@router.get("/undo-failures")
def list_undo_failures(
    serving: Serving, _: Reader, wanted: Annotated[UndoFailureQuery, Query()]
) -> Page[UndoFailureShape]:
    """List steps of rollbacks and removals that failed, newest first."""
    before = position(wanted.cursor, "undo-failures")
    with serving.store.reading() as tx:
        if wanted.batch_id is not None:
            existing_batch(tx, wanted.batch_id)
        rows = undo_failures_page(tx, batch_id=wanted.batch_id, before=before, limit=wanted.limit + 1)
        everything = count_undo_failures(tx)
        mine = everything if wanted.batch_id is None else count_undo_failures(tx, batch_id=wanted.batch_id)
    count = Count(mine, everything)
    return page(rows, wanted.limit, "undo-failures", lambda row: row.id, UndoFailureShape.model_validate, count)


@router.post("/batches/{batch_id}/undo-failures/retry", response_model=UndoRetryShape)
def retry_failed_undo(batch_id: RowId, change: OperatingOn, asked: UndoRetryRequest | None = None) -> Response:
    """Retry failed undo steps of a batch, all or some; the batch may have ended."""
    wanted = asked or UndoRetryRequest()

    def try_again(store: Store) -> UndoRetryShape:
        if wanted.dry_run:
            return UndoRetryShape.model_validate(preview_undo_retry(store, batch_id, wanted.step_ids))
        done = retry_undo(
            store, change.services.publisher, batch_id, wanted.step_ids, by=change.by, reason=wanted.reason
        )
        return UndoRetryShape.model_validate(done)

    return change.made(("retry-undo", batch_id, wanted.model_dump_json()), try_again, of=batch_subject(batch_id))
