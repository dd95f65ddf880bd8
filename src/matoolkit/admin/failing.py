"""A group of failures, named by one of its steps, as `batch failures` lists it."""

from matoolkit.errors import UnknownFailure
from matoolkit.store import Transaction
from matoolkit.store.failures import FailureGroup, failures_by_error


def group_like(tx: Transaction, batch_id: int, step_id: int) -> FailureGroup:
    """Return the group of failures whose example is this step."""
    for group in failures_by_error(tx, batch_id):
        if group.example_step_id == step_id:
            return group
    raise UnknownFailure(batch_id, step_id)
