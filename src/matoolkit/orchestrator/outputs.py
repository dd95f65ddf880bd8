"""Outputs of steps: found in results, merged into the member's worker data, or missing for later steps (rule O15)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from matoolkit.domain.answers import merged, outputs_of
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import Dispatchable, definition_of
from matoolkit.runbook.templates import Json
from matoolkit.store.members import Outputs, keep_outputs
from matoolkit.store.narrow_executions import StepState, missing_outputs_of_members
from matoolkit.store.narrow_members import member_outputs


@dataclass(frozen=True, slots=True)
class Found:
    """The outputs of a step, and which are missing."""

    state: StepState
    values: dict[str, Json]
    missing: tuple[str, ...]


def outputs_found(agenda: Agenda, state: StepState, result: Json) -> Found | None:
    """Look up the outputs of a step in its result; None if it has none."""
    wanted = definition_of(agenda, state).step.output_params
    if not wanted:
        return None
    outputs = outputs_of(result, wanted)
    return Found(state, outputs.found, outputs.missing)


def store_outputs(agenda: Agenda, found: Sequence[Found]) -> None:
    """Merge outputs into members' worker data, unless the member is in a new epoch."""
    useful = [entry for entry in found if entry.values]
    if not useful:
        return
    members = {
        member.id: member for member in member_outputs(agenda.tx, {entry.state.batch_member_id for entry in useful})
    }
    now: dict[int, dict[str, Json]] = {}
    for entry in useful:
        member = members[entry.state.batch_member_id]
        if member.epoch == entry.state.epoch:
            before = now.get(member.id)
            now[member.id] = merged(orjson.loads(member.worker_data_json) if before is None else before, entry.values)
    kept = [
        Outputs(number, members[number].epoch, orjson.dumps(values, option=orjson.OPT_NON_STR_KEYS).decode())
        for number, values in now.items()
    ]
    keep_outputs(agenda.tx, kept)


def blamed_on_earlier_steps(
    agenda: Agenda, states: Sequence[Dispatchable], variables: Mapping[int, str]
) -> dict[int, str]:
    """For work with an unresolved variable, name the step that should have put it out."""
    asking = {
        state.id: state.batch_member_id
        for state in states
        if state.id in variables and state.batch_member_id is not None
    }
    owed: dict[tuple[int, str], str] = {}
    for missing in missing_outputs_of_members(agenda.tx, set(asking.values())):
        for variable in orjson.loads(missing.missing_outputs_json):
            owed[missing.batch_member_id, variable.casefold()] = missing.step_name
    blamed: dict[int, str] = {}
    for number, member in asking.items():
        earlier = owed.get((member, variables[number].casefold()))
        if earlier is not None:
            blamed[number] = f"; step '{earlier}' should have put it out, but its result did not have it"
    return blamed
