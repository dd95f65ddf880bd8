"""Members that leave: gone from the source, or moved to another batch (rules T5 and T6)."""

from collections.abc import Collection
from datetime import datetime

from matoolkit.announcing.members import remove_and_announce
from matoolkit.domain.states import ABSENT, MOVED, NOT_BEGUN
from matoolkit.ports import Publisher
from matoolkit.scheduler.tallies import Tally
from matoolkit.store.sql.transaction import Transaction

SCHEDULER = "scheduler"


def remove_absent(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """Remove members that the source no longer returns."""
    tally.members_removed += len(remove_and_announce(tx, publisher, member_ids, SCHEDULER, ABSENT, at))


def remove_dropouts(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> None:
    """Remove members from batches that have not begun: there is nothing to undo for them."""
    tally.members_removed += len(remove_and_announce(tx, publisher, member_ids, SCHEDULER, NOT_BEGUN, at))


def remove_movers(
    tx: Transaction, publisher: Publisher, member_ids: Collection[int], tally: Tally, at: datetime
) -> set[int]:
    """Remove members that belong to another batch now, and return who left; their work is not undone."""
    moved = remove_and_announce(tx, publisher, member_ids, SCHEDULER, MOVED, at)
    tally.members_moved += len(moved)
    return set(moved)
