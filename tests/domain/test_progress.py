"""Rules O3, O5, O9, T6 and V4: what a member does next."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.gates import Gate, GateKind, Gates
from matoolkit.domain.phaseorder import PhaseOrder, phase_order
from matoolkit.domain.progress import (
    Compensate,
    Do,
    OpenCompensation,
    OpenStep,
    Situation,
    Wait,
    next_of,
)
from matoolkit.domain.states import BatchStatus, MemberStatus, StepStatus
from matoolkit.domain.why import WhyKind
from matoolkit.runbook.model import Phase

PENDING = StepStatus.PENDING
SOON = datetime(2026, 1, 1, tzinfo=UTC)
PHASES: dict[PhaseOrder, int] = {}
CALL = {"name": "one", "worker_id": "worker-01", "function": "Move"}


HOLD = Gate(
    id=1,
    kind=GateKind.REMOVALS,
    reach=Door.START,
    worker_id=None,
    runbook_name=None,
    member_key_fold=None,
    batch_id=7,
    shut_from=SOON,
    shut_until=None,
    shut_by="scheduler",
    reason="too many would leave",
    hold_key="key",
)
PLAIN = Phase.model_validate({"name": "plain", "offset": "T-0", "steps": [CALL]})


def step(number: int, version: int = 1, offset: int = 0, index: int = 0, at: int = 0, **other: Any) -> OpenStep:
    phase = PHASES.setdefault(phase_order(version, offset, index), len(PHASES))
    return replace(OpenStep(number, at, PENDING, None, None, phase), **other)


def undoing(number: int, sequence: int = 1, at: int = 0, **other: Any) -> OpenCompensation:
    return replace(OpenCompensation(number, at, PENDING, None, None, sequence), **other)


def situation(*steps: OpenStep, **other: Any) -> Situation:
    phases = {number: _door(number, order) for order, number in PHASES.items()}
    calm = Situation(MemberStatus.ACTIVE, BatchStatus.ACTIVE, Gates(), Work("wave", 7), (), steps, phases)
    return replace(calm, **other)


def _door(number: int, order: PhaseOrder) -> PhaseDoor:
    return PhaseDoor(number, 7, "wave", order, SOON, frozenset({number}), PLAIN)


def test_o3_the_larger_offset_comes_first_then_the_order_of_the_runbook() -> None:
    cutover, check = step(1, offset=0, index=1), step(2, offset=0, index=2)
    prepare, after = step(3, offset=7200, index=5), step(4, offset=-120, index=0)
    assert next_of(situation(after, check, cutover, prepare)) == Do(3)
    assert next_of(situation(after, check, cutover)) == Do(1)
    assert next_of(situation(after, check)) == Do(2)


def test_v4_what_is_left_of_an_old_version_comes_before_the_new_one() -> None:
    assert next_of(situation(step(1, version=2, offset=7200), step(2, version=1, offset=0))) == Do(2)


def test_o3_steps_of_a_phase_go_one_after_the_other() -> None:
    assert next_of(situation(step(2, at=1), step(1, at=0))) == Do(1)
    busy = step(1, at=0, status=StepStatus.POLLING)
    assert isinstance(next_of(situation(busy, step(2, at=1))), Wait)
    retrying = step(1, at=0, retry_after=SOON)
    assert isinstance(next_of(situation(retrying, step(2, at=1))), Wait)


def test_o3_a_step_that_waits_for_another_try_is_finished_before_an_earlier_phase_that_came_due_late() -> None:
    waiting = step(1, offset=0, retry_after=SOON)
    assert isinstance(next_of(situation(waiting, step(2, offset=7200))), Wait)
    polling = step(1, offset=0, status=StepStatus.POLLING)
    assert isinstance(next_of(situation(polling, step(2, offset=7200))), Wait)


def test_o5_a_job_that_is_out_is_waited_for_even_if_its_step_was_cancelled() -> None:
    out = step(9, status=StepStatus.CANCELLED, lost_at=SOON)
    assert isinstance(next_of(situation(out, step(1))), Wait)
    assert isinstance(next_of(situation(out, compensations=[undoing(5)])), Wait)


def test_o9_what_undoes_comes_first_one_sequence_at_a_time() -> None:
    waiting = [undoing(7, sequence=6, at=0), undoing(4, sequence=3, at=1), undoing(5, sequence=3, at=2)]
    assert next_of(situation(step(1), compensations=waiting)) == Compensate(4)
    assert isinstance(next_of(situation(compensations=[undoing(4, retry_after=SOON), undoing(5, at=1)])), Wait)


@pytest.mark.parametrize("status", [MemberStatus.FAILED, MemberStatus.REMOVED])
def test_o9_who_failed_or_left_does_no_step_but_is_undone(status: MemberStatus) -> None:
    assert isinstance(next_of(situation(step(1), member=status)), Wait)
    assert next_of(situation(step(1), member=status, compensations=[undoing(5)])) == Compensate(5)


def test_o12_in_a_batch_that_has_ended_only_what_undoes_goes_on() -> None:
    assert isinstance(next_of(situation(step(1), batch=BatchStatus.CANCELLED)), Wait)
    ended = situation(batch=BatchStatus.CANCELLED, compensations=[undoing(5)])
    assert next_of(ended) == Compensate(5)


def test_t6_while_held_or_in_init_no_phase_is_started_and_what_runs_goes_on() -> None:
    for other in ({"gates": Gates([HOLD])}, {"batch": BatchStatus.INIT_DISPATCHED}):
        assert isinstance(next_of(situation(step(1, at=0), **other)), Wait)
        assert next_of(situation(step(1, at=1), **other)) == Do(1)


def test_x1_the_answer_names_every_reason() -> None:
    waiting = next_of(situation(step(1), gates=Gates([HOLD]), batch=BatchStatus.INIT_DISPATCHED))
    assert isinstance(waiting, Wait)
    assert [why.kind for why in waiting.whys] == [WhyKind.REMOVALS, WhyKind.INIT]
    busy = next_of(situation(step(1, status=StepStatus.POLLING), step(2, offset=0, index=9, lost_at=SOON)))
    assert isinstance(busy, Wait)
    assert [(why.kind, why.work_id, why.until) for why in busy.whys] == [(WhyKind.JOB_OUT, 2, SOON)]
