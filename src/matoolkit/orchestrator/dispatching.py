"""Jobs: resolved at their first dispatch, written with the row that sends them (rules R8, R9, O4, M9, W8).

A step for which no job can be made fails at once. Values from data in secret places are not stored with the row; they
are resolved whenever a job is sent.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias

import orjson

from matoolkit.announcing.places import Holders
from matoolkit.domain.causes import fingerprint_of
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.messages import JobFacts, WorkerJob, correlation_of
from matoolkit.domain.moves.step import Dispatch, FailUnsent
from matoolkit.domain.signoff import SignOffs
from matoolkit.errors import MatoolkitError, MessageTooLarge, TemplateError, UnresolvedVariable, WorkerHasNoSubscription
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.counting import count_outcomes
from matoolkit.orchestrator.definitions import Dispatchable, definition_of
from matoolkit.orchestrator.moving import touch_failure
from matoolkit.orchestrator.outputs import blamed_on_earlier_steps
from matoolkit.orchestrator.scopes import scope_of
from matoolkit.orchestrator.versions import Definition
from matoolkit.ports import Outgoing
from matoolkit.runbook.calls import Call
from matoolkit.runbook.secrecy import REFERENCE
from matoolkit.runbook.templates import Json
from matoolkit.store.moves import move_steps
from matoolkit.store.narrow_executions import NextStep, StepState, stored_calls
from matoolkit.store.narrow_members import MemberInFull, members_in_full, narrow_members

# Why no job of a step can be sent.
Impossible: TypeAlias = TemplateError | MessageTooLarge | WorkerHasNoSubscription
_IMPOSSIBLE = (TemplateError, MessageTooLarge, WorkerHasNoSubscription)

# Stored parameters contain this if one of them was stored as its template, and rarely otherwise.
_OPENING = "{{"
# What a value that names a secret looks like in JSON.
_REFERENCE = f'"{REFERENCE}'.encode()
# What a job has besides its function and parameters: ids, numbers and names of limited length.
_REST_OF_A_JOB = 2048


class Departing:
    """Jobs that are about to leave together with the rows that send them."""

    def __init__(
        self,
        agenda: Agenda,
        kind: Kind,
        definitions: Sequence[Definition],
        holders: Holders | None = None,
        sign_offs: Mapping[int, SignOffs] | None = None,
    ) -> None:
        self._agenda = agenda
        self._holders = holders or Holders()
        self._kind = kind
        # Of inits that are about to begin, by batch.
        self._sign_offs = sign_offs or {}
        self._unreached = agenda.publisher.unreached({definition.step.worker_id for definition in definitions})
        self._dispatches: list[Dispatch] = []
        self._jobs: dict[int, Outgoing] = {}

    def keeps(self, state: Dispatchable, definition: Definition, reason: Reason, member_key: str | None) -> bool:
        """Ask the gates; work that is kept stays as it is until one opens (rules G1 and G5)."""
        is_init = self._kind is Kind.INIT
        door = Door.START if is_init and state.step_index == 0 and reason is Reason.ATTEMPT else Door.SEND
        phase = self._door_of(state)
        init = self._sign_offs.get(state.batch_id) if door is Door.START else None
        if not self._agenda.gates.may_keep(phase) and init is None:
            return False
        name = self._agenda.batches[state.batch_id].runbook_name
        # What is retried or polled was sent before, so its member has a place (rule C5).
        has_place = not isinstance(state, NextStep) or self._holders.has_place(state)
        work = Work(
            *(name, state.batch_id, definition.step.worker_id, member_key, is_init, phase),
            init=init,
            has_place=has_place,
        )
        return bool(self._agenda.gates.at(door, work))

    def _door_of(self, state: Dispatchable) -> PhaseDoor | None:
        if not isinstance(state, StepState | NextStep):
            return None
        return self._agenda.doors([state.phase_execution_id])[state.phase_execution_id]

    def add(
        self,
        state: Dispatchable,
        definition: Definition,
        reason: Reason,
        call: Call,
        params_json: str,
        member_key: str | None,
    ) -> None:
        """Make a job of a call that fits into a message; its worker must have a subscription."""
        if definition.step.worker_id in self._unreached:
            raise WorkerHasNoSubscription(definition.step.worker_id)
        # The guard demands the attempt before in the row, so each attempt is dispatched once (rule M3).
        number, attempt = state.id, state.attempt + 1
        name = job_id(self._kind, number, reason, attempt)
        lost_at = _lost_at(self._agenda.at, self._agenda.tx.lasting(timedelta(seconds=state.timeout_sec)))
        self._dispatches.append(Dispatch(number, attempt, name, call.function, params_json, lost_at))
        batch, version = self._agenda.batches[state.batch_id], definition.version.number
        correlation = correlation_of(number, self._kind, batch.runbook_name, version)
        step = definition.step
        facts = JobFacts(attempt, step.name, _phase_of(self._agenda, state), member_key, lost_at)
        job = WorkerJob(name, batch.id, step.worker_id, call.function, call.params, correlation, facts)
        # The job id is the message id: the same job published twice is a duplicate (rule M2).
        self._jobs[number] = Outgoing(name, job)
        if isinstance(state, NextStep):
            self._holders.take(state, self._agenda.known_doors[state.phase_execution_id])

    def leave(self) -> None:
        """Send the jobs whose rows moved; if a row did not move, another process was faster."""
        agenda = self._agenda
        sent = move_steps(agenda.tx, self._kind, self._dispatches, agenda.at)
        self._holders.keep(agenda.tx, sent)
        agenda.messages += [self._jobs[number] for number in sent]


def send_first(
    agenda: Agenda,
    kind: Kind,
    states: Sequence[Dispatchable],
    members: Mapping[int, MemberInFull],
    holders: Holders | None = None,
) -> None:
    """Send jobs of steps whose turn has come, with their parameters resolved now."""
    definitions = [definition_of(agenda, state) for state in states]
    first = zip(states, definitions, strict=True) if kind is Kind.INIT else ()
    beginning = {state.batch_id: definition.version for state, definition in first if state.step_index == 0}
    departing = Departing(agenda, kind, definitions, holders, agenda.init_sign_offs(beginning))
    impossible: dict[int, Impossible] = {}
    for state, definition in zip(states, definitions, strict=True):
        member = members.get(state.batch_member_id or 0)
        if departing.keeps(state, definition, Reason.ATTEMPT, member.member_key if member else None):
            continue
        try:
            scope, key = scope_of(agenda, state, definition.version.number, members)
            call = definition.call.resolve(scope, key)
            departing.add(state, definition, Reason.ATTEMPT, call, _to_keep(kind, state, definition, call, key), key)
        except _IMPOSSIBLE as error:
            impossible[state.id] = error
    departing.leave()
    fail_unsent(agenda, kind, [state for state in states if state.id in impossible], impossible)


def send_again(agenda: Agenda, kind: Kind, states: Sequence[tuple[Dispatchable, Reason]]) -> None:
    """Send jobs of work that is retried or polled, with the stored parameters (rule R8)."""
    calls = {call.id: call for call in stored_calls(agenda.tx, kind, [state.id for state, _ in states])}
    members = _members_with_secrets(agenda, [state for state, _ in states if _OPENING in calls[state.id].params_json])
    keys = _keys_of_members(agenda, [state for state, _ in states])
    definitions = [definition_of(agenda, state) for state, _ in states]
    departing = Departing(agenda, kind, definitions)
    impossible: dict[int, Impossible] = {}
    for (state, reason), definition in zip(states, definitions, strict=True):
        member_key = None if state.batch_member_id is None else keys.get(state.batch_member_id)
        if departing.keeps(state, definition, reason, member_key):
            continue
        stored = calls[state.id]
        call = Call(stored.function_name, orjson.loads(stored.params_json))
        try:
            if _OPENING in stored.params_json:
                scope, key = scope_of(agenda, state, definition.version.number, members)
                call = Call(call.function, definition.call.completed(call.params, scope, key))
                # Checked again: the row may have changed since the first dispatch (rule W8).
                _check(kind, state, definition, call, key)
            departing.add(state, definition, reason, call, stored.params_json, member_key)
        except _IMPOSSIBLE as error:
            impossible[state.id] = error
    departing.leave()
    fail_unsent(agenda, kind, [state for state, _ in states if state.id in impossible], impossible)


def _members_with_secrets(agenda: Agenda, states: Sequence[Dispatchable]) -> dict[int, MemberInFull]:
    ids = {state.batch_member_id for state in states if state.batch_member_id is not None}
    return {member.id: member for member in members_in_full(agenda.tx, ids)}


def _keys_of_members(agenda: Agenda, states: Sequence[Dispatchable]) -> dict[int, str]:
    ids = {state.batch_member_id for state in states if state.batch_member_id is not None}
    return {member.id: member.member_key for member in narrow_members(agenda.tx, ids)} if ids else {}


def _phase_of(agenda: Agenda, state: Dispatchable) -> str | None:
    return agenda.phases[state.phase_execution_id].phase_name if isinstance(state, StepState | NextStep) else None


def fail_unsent(
    agenda: Agenda, kind: Kind, states: Sequence[Dispatchable], errors: Mapping[int, MatoolkitError]
) -> None:
    """Fail steps that are not sent, each with its error."""
    if not states:
        return
    unresolved = {
        number: error.variable or "" for number, error in errors.items() if isinstance(error, UnresolvedVariable)
    }
    blamed = blamed_on_earlier_steps(agenda, states, unresolved)
    failures = [_failure(state, errors[state.id], blamed.get(state.id, "")) for state in states]
    failed = set(move_steps(agenda.tx, kind, failures, agenda.at))
    count_outcomes(agenda, kind, {state.id: state for state in states}, failures, failed)
    for state in states:
        if state.id in failed:
            touch_failure(agenda, state)


def _failure(state: Dispatchable, error: MatoolkitError, blamed: str) -> FailUnsent:
    kind, message = type(error).__name__, error.message + blamed
    variable = error.variable if isinstance(error, TemplateError) else None
    return FailUnsent(state.id, kind, message, fingerprint_of(kind, message, variable))


def _to_keep(kind: Kind, state: Dispatchable, definition: Definition, call: Call, member_key: str | None) -> str:
    """Return the parameters to store, of a job that can be sent."""
    params = _check(kind, state, definition, call, member_key)
    if definition.call.has_secrets:
        params = _written(definition.call.kept(call.params))
    return params.decode()


def _check(kind: Kind, state: Dispatchable, definition: Definition, call: Call, member_key: str | None) -> bytes:
    """Refuse a job that is too large or whose data names a secret, and return its parameters as they are sent."""
    params = _written(call.params)
    size = len(params) + len(orjson.dumps(call.function)) + _REST_OF_A_JOB
    if size > MAX_BODY_BYTES:
        raise MessageTooLarge(job_id(kind, state.id, Reason.ATTEMPT, state.attempt + 1), size, MAX_BODY_BYTES)
    if _REFERENCE in params:
        definition.call.refuse_references(call.params, member_key)
    return params


def _written(params: dict[str, Json]) -> bytes:
    return orjson.dumps(params, option=orjson.OPT_NON_STR_KEYS)


# All jobs of a pile leave at the same time, and there are few timeouts: a few values serve thousands of jobs.
@lru_cache(maxsize=128)
def _lost_at(sent_at: datetime, timeout: timedelta) -> datetime:
    return sent_at + timeout
