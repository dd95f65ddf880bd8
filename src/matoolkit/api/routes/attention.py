"""What needs a person, of everything."""

from fastapi import APIRouter

from matoolkit.admin.attention import what_needs_a_person
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.attention import AttentionShape, attention_shape

router = APIRouter(prefix="/api", tags=["operations"])


@router.get("/attention")
def get_attention(serving: Serving, _: Reader) -> AttentionShape:
    """Say what needs a person, the most urgent first, and what comes next by itself."""
    return attention_shape(what_needs_a_person(serving.store))
