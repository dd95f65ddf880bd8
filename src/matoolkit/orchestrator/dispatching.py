"""Jobs: resolved at their first dispatch, written with the row that sends them (rules R8, R9, O4, M9).

A step of which no job can be made fails there and then.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import orjson

from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.domain.messages import Correlation, WorkerJob
from matoolkit.errors import MessageTooLarge, TemplateError, UnresolvedVariable
from matoolkit.ids import Kind, Reason, job_id
from matoolkit.orchestrator.debts import blamed_on_debtors
from matoolkit.orchestrator.definitions import Work, definition_of, version_number_of, version_of
from matoolkit.orchestrator.moving import touch_failure
from matoolkit.orchestrator.pile import Pile
from matoolkit.orchestrator.versions import Version
from matoolkit.ports import Outgoing
from matoolkit.records import record
from matoolkit.runbook.calls import Call, resolve_call
from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import Scope, special_variables
from matoolkit.store.memberstates import MemberData, MemberState, member_data
from matoolkit.store.moves import Dispatch, Impossible, dispatch, fail_undispatched
from matoolkit.store.working import InitState, stored_calls

# What a job has besides its function and parameters: ids, numbers and names of limited length.
_REST_OF_A_JOB = 2048


@record
class Defined:
    """Work together with what its version of the runbook says about it."""

    state: Work
    step: Step
    version: Version


@record
class Ready:
    """A call that fits into a message."""

    state: Work
    reason: Reason
    call: Call
    params_json: str


def send_first(pile: Pile, kind: Kind, states: Sequence[Work], members: Mapping[int, MemberState]) -> None:
    """Send jobs of steps whose turn has come, with their parameters resolved now."""
    defined = [Defined(state, definition_of(pile, state), version_of(pile, state)) for state in states]
    data = _data_needed(pile, defined)
    ready: list[Ready] = []
    impossible: dict[int, TemplateError | MessageTooLarge] = {}
    for entry in defined:
        try:
            call = resolve_call(entry.step, *_scope(pile, entry, members, data))
            ready.append(_sized(kind, entry.state, Reason.ATTEMPT, call))
        except (TemplateError, MessageTooLarge) as error:
            impossible[entry.state.id] = error
    _send(pile, kind, ready)
    _fail(pile, kind, [state for state in states if state.id in impossible], impossible)


def send_again(pile: Pile, kind: Kind, states: Sequence[tuple[Work, Reason]]) -> None:
    """Send jobs of work that is retried or polled, with the parameters that it had (rule R8)."""
    calls = {call.id: call for call in stored_calls(pile.tx, kind, [state.id for state, _ in states])}
    ready = []
    for state, reason in states:
        stored = calls[state.id]
        call = Call(stored.function_name, orjson.loads(stored.params_json))
        ready.append(Ready(state, reason, call, stored.params_json))
    _send(pile, kind, ready)


def _send(pile: Pile, kind: Kind, ready: Sequence[Ready]) -> None:
    dispatches, jobs = [], {}
    for entry in ready:
        state, attempt = entry.state, entry.state.attempt + 1
        name = job_id(kind, state.id, entry.reason, attempt)
        lost_at = pile.at + timedelta(seconds=state.timeout_sec)
        dispatches.append(Dispatch(state.id, attempt, name, entry.call.function, entry.params_json, lost_at))
        jobs[state.id] = Outgoing(name, _job(pile, kind, entry, name))
    # The job of a row that did not move is not sent: another process was first.
    pile.messages += [jobs[number] for number in dispatch(pile.tx, kind, dispatches, pile.at)]


def _job(pile: Pile, kind: Kind, entry: Ready, name: str) -> WorkerJob:
    state, batch = entry.state, pile.batches[entry.state.batch_id]
    correlation = Correlation(state.id, kind, batch.runbook_name, version_number_of(pile, state))
    return WorkerJob(
        name, batch.id, definition_of(pile, state).worker_id, entry.call.function, entry.call.params, correlation
    )


def _fail(
    pile: Pile, kind: Kind, states: Sequence[Work], errors: Mapping[int, TemplateError | MessageTooLarge]
) -> None:
    if not states:
        return
    unresolved = {
        number: error.variable or "" for number, error in errors.items() if isinstance(error, UnresolvedVariable)
    }
    blamed = blamed_on_debtors(pile, states, unresolved)
    failures = [
        Impossible(state.id, type(errors[state.id]).__name__, errors[state.id].message + blamed.get(state.id, ""))
        for state in states
    ]
    failed = set(fail_undispatched(pile.tx, kind, failures, pile.at))
    for state in states:
        if state.id in failed:
            touch_failure(pile, state)


def _sized(kind: Kind, state: Work, reason: Reason, call: Call) -> Ready:
    params = orjson.dumps(call.params, option=orjson.OPT_NON_STR_KEYS)
    size = len(params) + len(orjson.dumps(call.function)) + _REST_OF_A_JOB
    if size > MAX_BODY_BYTES:
        raise MessageTooLarge(job_id(kind, state.id, reason, state.attempt + 1), size, MAX_BODY_BYTES)
    return Ready(state, reason, call, params.decode())


def _data_needed(pile: Pile, defined: Sequence[Defined]) -> dict[int, MemberData]:
    """Load the data of those members whose steps ask for it."""
    asking = {
        member
        for entry in defined
        if (member := _member_of(entry.state)) is not None and entry.version.asks_for_data(entry.step)
    }
    return {member.id: member for member in member_data(pile.tx, asking)}


def _scope(
    pile: Pile, entry: Defined, members: Mapping[int, MemberState], data: Mapping[int, MemberData]
) -> tuple[Scope, str | None]:
    batch, number = pile.batches[entry.state.batch_id], _member_of(entry.state)
    key = members[number].member_key if number is not None else None
    specials = special_variables(
        batch_id=batch.id,
        batch_start_time=batch.batch_start_time,
        runbook_name=batch.runbook_name,
        runbook_version=entry.version.number,
        member_key=key,
    )
    held = data.get(number) if number is not None else None
    if held is None:
        return Scope(specials, {}, {}), key
    return Scope(specials, orjson.loads(held.worker_data_json), orjson.loads(held.data_json)), key


def _member_of(state: Work) -> int | None:
    return None if isinstance(state, InitState) else state.batch_member_id
