"""Gates: pausing, resuming, and what keeps work from going on."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Paused, existing_gate, open_gate, resume, shut_pause
from matoolkit.announcing.gatekeeping import TakenBack, take_back_all
from matoolkit.api.changing import Change, Operating, OperatingOn, Part
from matoolkit.api.conditions import TAGGED, IfNoneMatch, shown
from matoolkit.api.paging import Page, PageQuery, page, position
from matoolkit.api.services import Reader, Serving
from matoolkit.api.shapes.gates import (
    FreezeRequest,
    GateShape,
    OpenRequest,
    PausedShape,
    PauseRequest,
    ResumedShape,
    ResumeRequest,
    gate_shape,
    paused_shape,
    resumed_shape,
)
from matoolkit.api.shapes.naming import RowId
from matoolkit.api.subjects import gate_shown, gate_subject
from matoolkit.domain.gates import GateKind
from matoolkit.store import Store
from matoolkit.store.gatekeeping import GateRow, gates_page

router = APIRouter(prefix="/api", tags=["operations"])


class GatesQuery(PageQuery):
    """Which gates are wanted."""

    in_force: bool = Field(True, description="Only those that have not been opened, freezes that are to come too.")
    batch_id: RowId | None = Field(None, description="Only those of this batch.")
    kind: GateKind | None = Field(None, description="Only those of this kind.")


@router.get("/gates")
def list_gates(serving: Serving, _: Reader, wanted: Annotated[GatesQuery, Query()]) -> Page[GateShape]:
    """List gates, newest first: holds, pauses, freezes and others that stand, or all that there were."""
    before = position(wanted.cursor, "gates")
    with serving.store.reading() as tx:
        found = gates_page(
            tx,
            is_unopened=wanted.in_force,
            batch_id=wanted.batch_id,
            kind=wanted.kind,
            before=before,
            limit=wanted.limit + 1,
        )
    return page(found, wanted.limit, "gates", lambda gate: gate.id, gate_shape)


@router.get("/gates/{gate_id}", response_model=GateShape, responses=TAGGED)
def get_gate(gate_id: RowId, serving: Serving, _: Reader, known: IfNoneMatch = None) -> Response:
    """Return one gate."""
    return shown(gate_shown(serving.store, gate_id), known)


@router.post("/gates", response_model=PausedShape, status_code=201)
def pause(asked: PauseRequest, change: Operating) -> Response:
    """Pause: from the answer on no job that the gate covers leaves. Those that workers have finish, and are counted."""

    def shut(store: Store) -> GateRow:
        subject, until = asked.subject(), asked.until
        return shut_pause(store, subject, by=change.by, reason=asked.reason, let_finish=asked.let_finish, until=until)

    return _shutting(("pause", asked.model_dump_json()), change, shut)


@router.post("/gates/freeze", response_model=PausedShape, status_code=201)
def freeze(asked: FreezeRequest, change: Operating) -> Response:
    """Freeze: from its beginning to its end no job leaves that it covers. One that begins now takes jobs back."""

    def shut(store: Store) -> GateRow:
        return shut_freeze(
            store,
            asked.subject(),
            by=change.by,
            reason=asked.reason,
            begins=asked.begins,
            until=asked.until,
            zone=asked.zone,
        )

    return _shutting(("freeze", asked.model_dump_json()), change, shut)


def _shutting(asked: Sequence[str], change: Change, shut: Callable[[Store], GateRow]) -> Response:
    known: list[int] = []
    return change.made_in_parts(
        asked,
        _parts(change, shut, known),
        resume=lambda told: known.append(int(told["id"])),
        status=lambda _: 201,
    )


def _parts(change: Change, shut: Callable[[Store], GateRow], known: list[int]) -> Iterator[Part[PausedShape]]:
    """Shut the gate in a transaction of its own, unless that was done, then take back what had left (rule G4)."""

    def begin(store: Store) -> PausedShape | None:
        if known:
            return None
        gate = shut(store)
        known.append(gate.id)
        return paused_shape(Paused(gate, TakenBack()))

    def finish(store: Store) -> PausedShape:
        with store.reading() as tx:
            gate, has_begun = existing_gate(tx, known[0]), tx.time()
            if gate.shut_from > has_begun:
                return paused_shape(Paused(gate, TakenBack()))
        jobs = take_back_all(store, change.services.publisher, gate)
        with store.reading() as tx:
            return paused_shape(Paused(existing_gate(tx, gate.id), jobs))

    yield begin
    yield finish


@router.post("/gates/resume", response_model=ResumedShape)
def resume_subject(asked: ResumeRequest, change: OperatingOn) -> Response:
    """Open every pause of exactly this subject; the answer names the gates that keep it still."""

    def work(store: Store) -> ResumedShape:
        done = resume(store, change.services.publisher, asked.subject(), by=change.by, reason=asked.reason)
        return resumed_shape(done)

    return change.made(("resume", asked.model_dump_json()), work)


@router.post("/gates/{gate_id}/open", response_model=ResumedShape)
def open_one(gate_id: RowId, asked: OpenRequest, change: OperatingOn) -> Response:
    """Open a gate, and wake what waited; a hold is approved instead.

    A budget is shut again when more members have failed than `allow` says.
    """

    def work(store: Store) -> ResumedShape:
        publisher = change.services.publisher
        done = open_gate(store, publisher, gate_id, by=change.by, reason=asked.reason, allow=asked.allow)
        return resumed_shape(done)

    return change.made(("open-gate", gate_id, asked.model_dump_json()), work, of=gate_subject(gate_id))
