"""Which workers there are: those that announced themselves, and those that runbooks in use name."""

import logging

from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.catalogue import known_functions
from matoolkit.store.runbooks import RunbookRow, runbooks_by_id, runbooks_in_use
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


class KnownWorkers:
    """Finds the ids of workers; a version of a runbook is read once, because it never changes."""

    def __init__(self) -> None:
        self._named: dict[int, frozenset[str]] = {}

    def ids(self, tx: Transaction) -> set[str]:
        """Return the ids of all workers that are known now."""
        in_use = runbooks_in_use(tx)
        unread = [number for number in in_use if number not in self._named]
        for row in runbooks_by_id(tx, unread):
            self._named[row.id] = _named(row)
        self._named = {number: self._named[number] for number in in_use}
        announced = {row.worker_id for row in known_functions(tx)}
        return announced.union(*self._named.values())


def _named(row: RunbookRow) -> frozenset[str]:
    """Return the workers that a version names; one that this release cannot read hides the workers of no other."""
    try:
        runbook = parse_runbook(row.yaml_content)
    except InvalidRunbook as error:
        log.warning(
            "version %d of runbook %s cannot be read, so the workers that it names are not known: %s",
            row.version,
            row.name,
            error,
        )
        return frozenset()
    return frozenset(step.worker_id for step in runbook.every_step())
