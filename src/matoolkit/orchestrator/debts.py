"""Which step owed the output that a later step misses (rule O15)."""

from collections.abc import Mapping, Sequence

import orjson

from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import Work
from matoolkit.store.narrow_executions import debts_of_members


def blamed_on_debtors(agenda: Agenda, states: Sequence[Work], variables: Mapping[int, str]) -> dict[int, str]:
    """Say for work that misses a variable which step of its member promised it and did not have it."""
    asking = {
        state.id: state.batch_member_id
        for state in states
        if state.id in variables and state.batch_member_id is not None
    }
    owed: dict[tuple[int, str], str] = {}
    for debt in debts_of_members(agenda.tx, set(asking.values())):
        for variable in orjson.loads(debt.missing_outputs_json):
            owed[debt.batch_member_id, variable.casefold()] = debt.step_name
    blamed: dict[int, str] = {}
    for number, member in asking.items():
        debtor = owed.get((member, variables[number].casefold()))
        if debtor is not None:
            blamed[number] = f"; step '{debtor}' was to put it out, and its result did not have it"
    return blamed
