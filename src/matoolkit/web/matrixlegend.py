"""What the cells of a matrix are called, and how each is drawn."""

from collections.abc import Mapping
from dataclasses import dataclass

from matoolkit.domain.matrix import CellState
from matoolkit.words import LOOKS, Role

_AS_TEXT = "\ufe0e"


@dataclass(frozen=True, slots=True)
class Sign:
    """The role, the glyph and the words of a state of a cell."""

    role: Role
    glyph: str
    text: str


def _like(word: str, text: str | None = None) -> Sign:
    look = LOOKS[word]
    return Sign(look.role, f"{look.glyph}{_AS_TEXT}", text or word.replace("_", " "))


# The order is that of the legend.
LEGEND: Mapping[CellState, Sign] = {
    CellState.NOT_BEGUN: Sign("wait", "\u00a0", "not begun"),
    CellState.PENDING: _like("pending"),
    CellState.DISPATCHED: _like("dispatched"),
    CellState.POLLING: _like("polling"),
    CellState.SUCCEEDED: _like("succeeded"),
    CellState.FAILED: _like("failed"),
    CellState.POLL_TIMEOUT: _like("poll_timeout"),
    CellState.UNDONE: _like("undone"),
    CellState.CANCELLED: _like("cancelled"),
    CellState.DONE_BEFORE: _like("succeeded", "done before"),
    CellState.NOT_CONCERNED: Sign("gone", "·", "takes no part"),
}

# Why somebody has no such step.
WITHOUT_STEP: Mapping[CellState, str] = {
    CellState.NOT_BEGUN: "the phase has not come to this member yet",
    CellState.DONE_BEFORE: "done in an earlier go; this one began with a later phase",
    CellState.NOT_CONCERNED: "this member had left, failed or not yet joined when the phase ran",
}
