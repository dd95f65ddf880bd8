"""What needs a person, of everything, and what of that waits for a decision."""

from fastapi import APIRouter

from matoolkit.admin.attention import what_needs_a_person
from matoolkit.admin.decisions import inbox
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.attention import AttentionShape, InboxShape, attention_shape, inbox_shape

router = APIRouter(prefix="/api", tags=["operations"])


@router.get("/attention")
def get_attention(serving: Serving, _: Reader) -> AttentionShape:
    """Say what needs a person, the most urgent first, and what comes next by itself."""
    return attention_shape(what_needs_a_person(serving.store))


@router.get("/inbox")
def get_inbox(serving: Serving, _: Reader) -> InboxShape:
    """List all that waits for a person's decision, the oldest deadline first; what has none comes last."""
    return inbox_shape(inbox(serving.store))
