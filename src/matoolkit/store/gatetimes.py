"""How long gates kept something, counted when they open."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Select, select

from matoolkit.domain.gates import GateKind
from matoolkit.records import record
from matoolkit.store.schema import batches, gates
from matoolkit.store.sql.prepared import Drafting, prepared
from matoolkit.store.sql.statements import among
from matoolkit.store.sql.transaction import Transaction
from matoolkit.telemetry import metering


@record
class OpenedGate:
    """A gate that was opened, and since when it was shut."""

    id: int
    kind: GateKind
    batch_id: int | None
    runbook_name: str | None
    shut_from: datetime


OPENED = tuple(gates.c[name] for name in ("id", "kind", "batch_id", "runbook_name", "shut_from"))


def count_waits(tx: Transaction, opened: Sequence[OpenedGate], at: datetime) -> None:
    """Count for how long gates were shut, once the transaction commits; one that was to shut later kept nothing."""
    if not opened or not metering.is_on():
        return
    names = runbook_names(tx, [one.batch_id for one in opened if one.batch_id is not None])
    for one in opened:
        runbook = one.runbook_name or names.get(one.batch_id or 0, "")
        labels = {"kind": str(one.kind), "runbook": runbook}
        seconds = (at - one.shut_from).total_seconds()
        if seconds >= 0:
            tx.on_commit.append(partial(metering.took, metering.GATE_WAIT, seconds, labels))


def runbook_names(tx: Transaction, batch_ids: Collection[int]) -> dict[int, str]:
    """Return the names of the runbooks of batches, by the batches' numbers."""
    return dict(tx.rows(lambda *row: row, _runbooks(tx, batch_ids))) if batch_ids else {}


@prepared
def _runbooks(draft: Drafting, ids: Collection[int]) -> Select[Any]:
    return select(batches.c.id, batches.c.runbook_name).where(among(draft, batches.c.id, ids))
