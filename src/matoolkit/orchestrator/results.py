"""Results of jobs: matched by their job id alone, decided one by one, written together (rules O4 to O7, O15, O16)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import orjson

from matoolkit.domain import step as rules
from matoolkit.domain.answers import event_of
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.ids import Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.concealing import concealed, kept_result, masks_of
from matoolkit.orchestrator.moving import Movement, State, apply_moves
from matoolkit.orchestrator.outputs import Found, outputs_found, store_outputs
from matoolkit.records import record
from matoolkit.runbook.templates import Json
from matoolkit.store.narrow_executions import StepState

log = logging.getLogger(__name__)

_IGNORED = (rules.Ignore, rules.NoteLate)
_WITH_OUTPUTS = (rules.Succeed, rules.NoteLate)
_IN_ORDER = attrgetter("execution_id", "attempt")


@record
class Answer:
    """A result, and which attempt of which work it answers."""

    execution_id: int
    attempt: int
    result: WorkerResult


def apply_answers(agenda: Agenda, kind: Kind, states: Mapping[int, State], answers: Sequence[Answer]) -> set[int]:
    """Move work as its answers say, keep what it put out, and return the work that moved."""
    movements: list[Movement] = []
    found: list[Found] = []
    masks = masks_of(agenda, [states[number] for number in {one.execution_id for one in answers} & states.keys()])
    for answer in _each_once(answers):
        state = states.get(answer.execution_id)
        if state is None:
            _log_ignored(answer, "there is no such work")
            continue
        if state.id in masks:
            answer = replace(answer, result=concealed(answer.result, masks[state.id]))  # noqa: PLW2901
        move = _decided(agenda, state, answer)
        if isinstance(move, _IGNORED):
            _log_ignored(answer, move.reason)
        if isinstance(move, rules.Ignore):
            continue
        missing = None
        if (outputs := _outputs(agenda, state, answer, move)) is not None:
            found.append(outputs)
            missing = _json(list(outputs.missing)) if outputs.missing else None
        # The row of an attempt that another one has followed is the other's by now.
        if answer.attempt == state.attempt:
            result = kept_result(agenda, state, answer.result.result)
            movements.append(Movement(state, move, _json(result), missing))
    moved = apply_moves(agenda, kind, movements)
    store_outputs(agenda, [outputs for outputs in found if outputs.is_late or outputs.state.id in moved])
    return moved


def _decided(agenda: Agenda, state: State, answer: Answer) -> rules.Move:
    if answer.attempt == state.attempt and answer.result.job_id != state.job_id:
        return rules.Ignore(f"the job that is waited for is {state.job_id}")
    return rules.decide(state, event_of(answer.result, answer.attempt, agenda.at, agenda.limits.throttle_limit))


def _outputs(agenda: Agenda, state: State, answer: Answer, move: rules.Move) -> Found | None:
    if not isinstance(state, StepState) or answer.result.status is not ResultStatus.SUCCESS:
        return None
    if not isinstance(move, _WITH_OUTPUTS):
        return None
    return outputs_found(agenda, state, answer.result.result, is_late=isinstance(move, rules.NoteLate))


def _each_once(answers: Iterable[Answer]) -> Iterable[Answer]:
    """Pass over answers that come twice in one pile; older attempts first, so that newer outputs win."""
    unique = {answer.result.job_id: answer for answer in reversed(list(answers))}
    return sorted(unique.values(), key=_IN_ORDER)


def _log_ignored(answer: Answer, reason: str) -> None:
    log.info("a result moves nothing: %s", reason, extra={"job": answer.result.job_id, "attempt": answer.attempt})


def _json(value: Json) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
