"""A gate was opened: everybody who may have something to do is looked at again, in slices (rules G8 and M4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from matoolkit.domain.messages import BatchWake
from matoolkit.domain.states import BatchStatus
from matoolkit.ids import continued, cursor_of
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.joiners_and_leavers import add_members
from matoolkit.ports import Outgoing
from matoolkit.store.rollbacks import open_rollbacks_of_batches
from matoolkit.store.waking import joiners_among, members_to_wake


@dataclass(frozen=True, slots=True)
class Wake:
    """The message that a gate was opened, and its id."""

    message_id: str
    message: BatchWake


def wake_batches(agenda: Agenda, wakes: Sequence[Wake]) -> None:
    """Look at members with open work, joiners, inits and compensations of batches; the doors are asked as always."""
    wanted = [wake for wake in wakes if wake.message.batch_id in agenda.batches]
    size = max(1, agenda.limits.slice_size // max(1, len(wanted)))
    active: list[int] = []
    for wake in wanted:
        batch_id, cursor = wake.message.batch_id, cursor_of(wake.message_id)
        if cursor == 0:
            _wake_init(agenda, batch_id)
        members = members_to_wake(agenda.tx, batch_id, after=cursor, limit=size)
        agenda.members_to_continue.update(members)
        if agenda.batches[batch_id].status is BatchStatus.ACTIVE:
            active += members
        # A full slice: there may be more. The message for the rest leaves with this commit.
        if len(members) == size:
            agenda.messages.append(Outgoing(continued(wake.message_id, members[-1]), wake.message))
    add_members(agenda, joiners_among(agenda.tx, active))


def _wake_init(agenda: Agenda, batch_id: int) -> None:
    undoes = any(row.batch_member_id is None for row in open_rollbacks_of_batches(agenda.tx, [batch_id]))
    if undoes or agenda.batches[batch_id].status is BatchStatus.INIT_DISPATCHED:
        agenda.inits_to_continue.add(batch_id)
