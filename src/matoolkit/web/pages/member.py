"""One member: what it waits for and what comes next, every step, its data, and what can be done for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Annotated, Any

import orjson
from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.admin.memberlook import MemberLook, look_at_member
from matoolkit.domain.secrecy import row_without_secrets
from matoolkit.domain.states import ENDED_BATCHES, FAILED_STEPS, MemberStatus, StepStatus
from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.store.executions import RollbackRow, StepRow
from matoolkit.web.files import csv_file
from matoolkit.web.forms import RowNumber
from matoolkit.web.pages.batch import BatchId, number_of
from matoolkit.web.rendering import Frame, page
from matoolkit.web.serving import Serving, Site
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import Looking

router = APIRouter(prefix="/batches/{batch_id}/members/{member_id}")

MemberId = Annotated[RowNumber, InPath()]

_PARTS = {
    "head": "member/head.html",
    "waits": "member/waits.html",
    "steps": "member/steps.html",
    "data": "member/data.html",
}
_HEADING = ("epoch", "kind", "phase", "step", "status", "attempt", "worker", "function", "sent", "ended", "error")


@dataclass(frozen=True, slots=True)
class PhaseSteps:
    """The steps of a member in a phase, with the phase's offset."""

    name: str
    offset_minutes: int
    version: int
    steps: Sequence[StepRow]


@dataclass(frozen=True, slots=True)
class Epoch:
    """What a member did in an epoch: its steps phase by phase, and its rollbacks, sequence by sequence."""

    number: int
    phases: Sequence[PhaseSteps]
    rollbacks: Sequence[tuple[str, str, Sequence[RollbackRow]]]


def topic_of(site: Site, key: str) -> Topic:
    """Return a member as something to watch; its key is the numbers of its batch and its own."""
    batch, _, member = key.partition("-")
    if not member:
        raise InvalidRequest([Flaw("/path", "names no member")])
    numbers = number_of(batch), number_of(member)

    def look() -> Mapping[str, Any]:
        return site.looks.taken(("member", *numbers), lambda: _seen(look_at_member(site.services.store, *numbers)))

    return Topic(f"member/{numbers[0]}-{numbers[1]}", _PARTS, look)


@router.get("")
def get_member(request: Request, serving: Serving, viewer: Looking, batch_id: BatchId, member_id: MemberId) -> Response:
    """Show a member."""
    topic = topic_of(serving, f"{batch_id}-{member_id}")
    seen = topic.look()
    frame = Frame(
        f"Member {member_id} of batch {batch_id}",
        "batches",
        f"matoolkit member history {member_id} --batch {batch_id}",
        f"/batches/{batch_id}/members/{member_id}/steps.csv",
        topic,
        styles=("batch.css",),
    )
    return page(request, viewer, "member.html", frame, **seen)


@router.get("/steps.csv")
def steps_as_file(serving: Serving, _: Looking, batch_id: BatchId, member_id: MemberId) -> Response:
    """Return all that was done for a member as a file."""
    history = look_at_member(serving.services.store, batch_id, member_id).history
    steps = [_row(step, "step", history.phases.get(step.phase_execution_id, "")) for step in history.steps]
    undone = [_row(row, row.cause, row.sequence_name) for row in history.rollbacks]
    return csv_file(f"batch-{batch_id}-member-{member_id}", _HEADING, [*steps, *undone])


def _seen(look: MemberLook) -> dict[str, Any]:
    row, secret = look.history.member.row, look.history.secret_columns
    epochs = sorted({step.epoch for step in look.history.steps} | {row.epoch} | _epochs_undone(look), reverse=True)
    steps = look.steps
    return {
        "look": look,
        "batch": look.batch,
        "member": look.history.member,
        "explained": look.explained,
        "epochs": [_epoch(look, number) for number in epochs],
        "succeeded": sum(step.status is StepStatus.SUCCEEDED for step in steps),
        "total": len(steps),
        "data": _texts(row.data_json, secret),
        "outputs": _texts(row.worker_data_json, secret),
        "failed_steps": FAILED_STEPS,
        "can": _can(look),
    }


def _can(look: MemberLook) -> dict[str, bool]:
    """Say what can be asked for here; whether it is done is decided when somebody asks."""
    row, batch = look.history.member.row, look.batch
    return {
        "retry": row.status is MemberStatus.FAILED,
        "undo": row.undone_at is None,
        "exclude": not batch.is_manual and look.exclusion is None,
        "remove": batch.is_manual and row.status is MemberStatus.ACTIVE and batch.status not in ENDED_BATCHES,
    }


def _epochs_undone(look: MemberLook) -> set[int]:
    return {rollback.epoch for rollback in look.history.rollbacks if rollback.epoch is not None}


def _epoch(look: MemberLook, number: int) -> Epoch:
    phases = {phase.id: phase for phase in look.phases}
    steps = look.in_order([step for step in look.history.steps if step.epoch == number])
    rollbacks = [row for row in look.history.rollbacks if row.epoch == number]
    in_phases = [(phases[key], list(group)) for key, group in groupby(steps, attrgetter("phase_execution_id"))]
    by_sequence = sorted(rollbacks, key=lambda row: (row.sequence_key, row.step_index))
    sequences = [list(group) for _, group in groupby(by_sequence, attrgetter("sequence_key"))]
    return Epoch(
        number,
        [PhaseSteps(one.phase_name, one.offset_minutes, one.runbook_version, rows) for one, rows in in_phases],
        [(rows[0].sequence_name, rows[0].cause.replace("_", " "), rows) for rows in sequences],
    )


def _texts(stored: str, secret: frozenset[str]) -> list[tuple[str, str]]:
    """Return stored values by name as texts, with the secret ones masked (rule W8)."""
    values = row_without_secrets(orjson.loads(stored), secret)
    return [(name, value if isinstance(value, str) else orjson.dumps(value).decode()) for name, value in values.items()]


def _row(row: StepRow | RollbackRow, kind: str, where: str) -> list[object]:
    work = (row.step_name, row.status, row.attempt, row.worker_id, row.function_name, row.dispatched_at)
    return [row.epoch, kind, where, *work, row.completed_at, row.error_message]
