"""Results of jobs: matched by their job id alone, decided one by one, written together (rules O4 to O7, O15, O16)."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import orjson

from matoolkit.domain.answers import event_of
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.domain.moves import Ignore
from matoolkit.domain.moves.step import NoteLate, StepMove, Succeed
from matoolkit.domain.step import Succeeded, decide, time_that_ends
from matoolkit.ids import JobRef, Kind
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.concealing import concealed, kept_result, masks_of
from matoolkit.orchestrator.moving import apply_moves
from matoolkit.orchestrator.outputs import Found, outputs_found, store_outputs
from matoolkit.orchestrator.standing import time_kept_of
from matoolkit.runbook.templates import Json
from matoolkit.store.narrow_executions import State, StepState

log = logging.getLogger(__name__)

# A result, and which attempt of which work it answers.
MatchedResult: TypeAlias = tuple[JobRef, WorkerResult]


def apply_answers(agenda: Agenda, kind: Kind, states: Mapping[int, State], answers: Sequence[MatchedResult]) -> None:
    """Move work as its answers say, and keep what it put out."""
    moves: list[StepMove] = []
    found: list[tuple[Found, bool]] = []
    masks = masks_of(agenda, [states[number] for number in {ref.execution_id for ref, _ in answers} & states.keys()])
    for ref, received in _each_once(answers):
        state = states.get(ref.execution_id)
        if state is None:
            _log_ignored(ref, received, "there is no such work")
            continue
        result = concealed(received, masks[state.id]) if state.id in masks else received
        outputs = _outputs(agenda, state, result)
        decided = _decided(agenda, state, ref, result, outputs)
        if isinstance(decided, Ignore):
            _log_ignored(ref, result, decided.reason)
            is_late = decided.keeps_outputs
        else:
            moves.append(decided)
            if is_late := isinstance(decided, NoteLate):
                _log_ignored(ref, result, f"the step is {state.status}")
        if outputs is not None and (is_late or isinstance(decided, Succeed)):
            found.append((outputs, is_late))
    moved = apply_moves(agenda, kind, states, moves)
    # Late outputs belong to rows that do not move. All others count only if the guarded update moved the row (rule M3).
    store_outputs(agenda, [outputs for outputs, is_late in found if is_late or outputs.state.id in moved])


def _decided(
    agenda: Agenda, state: State, ref: JobRef, result: WorkerResult, outputs: Found | None
) -> StepMove | Ignore:
    # The id also holds the reason of the dispatch: the same attempt under another reason is not the job we sent (rule
    # M2).
    if ref.attempt == state.attempt and result.job_id != state.job_id:
        return Ignore(f"the job that is waited for is {state.job_id}")
    kept = _json(kept_result(agenda, state, result.result))
    missing = _json(list(outputs.missing)) if outputs is not None and outputs.missing else None
    event = event_of(result, ref.attempt, agenda.at, agenda.limits.throttle_limit, kept, missing)
    decided = decide(state, event)
    since = time_that_ends(state, event, decided)
    if since is None or isinstance(event, Succeeded):
        return decided
    return decide(state, replace(event, kept=time_kept_of(agenda, state, since)))


def _outputs(agenda: Agenda, state: State, result: WorkerResult) -> Found | None:
    if not isinstance(state, StepState) or result.status is not ResultStatus.SUCCESS:
        return None
    return outputs_found(agenda, state, result.result)


def _each_once(answers: Iterable[MatchedResult]) -> Iterable[MatchedResult]:
    """Drop answers that come twice in one pile, and put older attempts first, so that newer outputs win."""
    unique = {answer[1].job_id: answer for answer in reversed(list(answers))}
    return sorted(unique.values(), key=_in_order)


def _in_order(answer: MatchedResult) -> tuple[int, int]:
    return answer[0].execution_id, answer[0].attempt


def _log_ignored(ref: JobRef, result: WorkerResult, reason: str) -> None:
    log.info("a result moves nothing: %s", reason, extra={"job": result.job_id, "attempt": ref.attempt})


def _json(value: Json) -> str | None:
    return None if value is None else orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
