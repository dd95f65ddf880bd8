"""Undoing members and keeping people out, as it is asked for and answered (rules U2 and U3)."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from matoolkit.api.shapes.naming import GivenReason, Shape
from matoolkit.domain.keys import MAX_KEY_LENGTH
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import BatchStatus, MemberState, StepStatus
from matoolkit.domain.undoing import NothingToRun, NotUndoneBecause

_Key = Annotated[str, Field(min_length=1, max_length=MAX_KEY_LENGTH)]
_Version = Annotated[
    VersionChoice | None,
    Field(description="`active`: the steps of the active version; otherwise those of the version the batch follows."),
]


class UndoSelection(Shape):
    """Selects members of a batch: everybody, by key, by state, or by how they failed."""

    member_keys: Annotated[list[_Key] | None, Field(min_length=1, max_length=100_000)] = None
    state: Annotated[MemberState | None, Field(description="Only members in this state.")] = None
    phase_name: str | None = None
    step_name: str | None = None
    error: Annotated[str | None, Field(description="The beginning of an error, up to 200 characters.")] = None
    fingerprint: Annotated[str | None, Field(description="`fingerprint` of a group of failures.")] = None
    version: _Version = None


class UndoRequest(UndoSelection):
    """Members to be undone, and why."""

    reason: GivenReason


class StepToRunShape(Shape):
    """A step that runs for those who are undone."""

    name: str
    function: str


class NothingRunsShape(Shape):
    """Members that are undone and for whom nothing runs, for the same reason."""

    because: NothingToRun
    members: list[str]


class NotUndoneShape(Shape):
    """Members that are left out for the same reason."""

    because: NotUndoneBecause
    members: list[str]


class UndoShape(Shape):
    """Which steps of which version run for whom, for whom nothing runs, and who is left out.

    `rolledBack` are undone although a rollback has undone some of their work already.
    """

    batch_id: int
    batch_status: BatchStatus
    version: int
    active_version: int | None
    steps: list[StepToRunShape]
    running: list[str]
    nothing_to_run: list[NothingRunsShape]
    rolled_back: list[str]
    left_out: list[NotUndoneShape]


class UndoProgressShape(Shape):
    """How many members of a batch were undone, for how many of them something is still to come, and their steps."""

    batch_id: int
    members: int
    undoing: int
    steps: dict[StepStatus, int]


class ExcludeSelection(Shape):
    """Somebody to keep out of all batches of a runbook."""

    member_key: _Key
    undo: Annotated[bool, Field(description="Whether what was done for it is undone.")] = False
    version: _Version = None


class ExcludeRequest(ExcludeSelection):
    """Somebody to keep out, and why."""

    reason: GivenReason


class ExcludedShape(Shape):
    """Somebody who is kept out: the batches that it leaves, and what is undone for it."""

    runbook_name: str
    member_key: str
    is_known: bool = Field(description="Whether the last reading of the source or any batch has this key.")
    leaves: list[int]
    undo: UndoShape | None


class ExclusionShape(Shape):
    """Somebody who is excluded, since when, by whom and why."""

    id: int
    runbook_name: str
    member_key: str
    excluded_at: datetime
    excluded_by: str
    reason: str
