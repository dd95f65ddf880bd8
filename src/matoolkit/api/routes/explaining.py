"""Why nothing happens: batches, phases and members explained."""

from typing import Annotated

from fastapi import APIRouter, Query

from matoolkit.admin.explaining import explain_batch, explain_member
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.explaining import (
    BatchExplanationShape,
    MemberExplanationShape,
    batch_explanation_shape,
    member_explanation_shape,
)
from matoolkit.api.shapes.naming import RowId

router = APIRouter(prefix="/api/batches/{batch_id}", tags=["operations"])

Phase = Annotated[str | None, Query(max_length=100, description="Only what is about the phase of this name.")]


@router.get("/explain")
def explain(batch_id: RowId, serving: Serving, _: Reader, phase: Phase = None) -> BatchExplanationShape:
    """Say for what a batch waits: as a whole, phase by phase, its members in groups, and what comes next."""
    return batch_explanation_shape(explain_batch(serving.store, batch_id, phase))


@router.get("/members/{member_id}/explain")
def explain_one(batch_id: RowId, member_id: RowId, serving: Serving, _: Reader) -> MemberExplanationShape:
    """Say for what a member waits, each reason with what ends it, and what comes next for it."""
    return member_explanation_shape(explain_member(serving.store, batch_id, member_id))
