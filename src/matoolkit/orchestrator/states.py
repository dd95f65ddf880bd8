"""Executed work of any kind, loaded for a decision."""

from collections.abc import Collection, Mapping, Sequence

from matoolkit.ids import Kind
from matoolkit.orchestrator.moving import State
from matoolkit.store.narrow_executions import init_states, rollback_states, step_states
from matoolkit.store.sql.transaction import Transaction


def states_of(tx: Transaction, kind: Kind, ids: Collection[int]) -> Mapping[int, State]:
    """Return work of a kind by its ids."""
    states: Sequence[State]
    match kind:
        case Kind.STEP:
            states = step_states(tx, ids)
        case Kind.INIT:
            states = init_states(tx, ids)
        case Kind.ROLLBACK:
            states = rollback_states(tx, ids)
    return {state.id: state for state in states}
