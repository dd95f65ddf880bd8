"""Asks again for due polls and retries whose message did not come (rule T9)."""

from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial

from matoolkit.announcing.messages import poll_check, retry_check
from matoolkit.ids import Kind
from matoolkit.ports import Outgoing, Publisher
from matoolkit.scheduler.leasing import Confirm
from matoolkit.store import Store
from matoolkit.store.executions import Overdue, polls_due, retries_due

_AT_ONCE = 1_000


def ask_for_checks(
    store: Store, publisher: Publisher, confirm: Confirm, at: datetime, kept: Collection[int] = ()
) -> int:
    """Ask for every poll and retry that is due; the bus drops a check that still waits (rule M3).

    Nothing is asked for that a gate keeps: a stored one, or the window of the phases in `kept` (rule G6).
    """
    return sum(
        _ask(store, publisher, confirm, at, kind, partial(due, kept=kept), message)
        for kind in Kind
        for due, message in ((polls_due, poll_check), (retries_due, retry_check))
    )


def _ask(
    store: Store,
    publisher: Publisher,
    confirm: Confirm,
    at: datetime,
    kind: Kind,
    due: Callable[..., list[Overdue]],
    message: Callable[[Kind, int, int], Outgoing],
) -> int:
    asked, last = 0, None
    while True:
        with store.reading() as tx:
            found = due(tx, kind, at, after=last, limit=_AT_ONCE)
        if not found:
            return asked
        with store.transaction() as tx:
            confirm(tx)
            publisher.publish(tx, [message(kind, work.id, work.attempt) for work in found])
        asked, last = asked + len(found), found[-1]
