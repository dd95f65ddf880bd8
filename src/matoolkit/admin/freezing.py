"""Freezes: gates that are written ahead, and shut and open by the calendar (rule K1)."""

from matoolkit.admin.gating import Subject, audit_entry, existing_subject
from matoolkit.domain.doors import Door
from matoolkit.domain.freezes import freeze_times
from matoolkit.domain.gates import GateKind
from matoolkit.errors import InvalidFreeze
from matoolkit.store import Store
from matoolkit.store.audit import record_changes
from matoolkit.store.gatekeeping import GateRow, NewGate, gates_by_id, shut_gate


def shut_freeze(
    store: Store,
    subject: Subject,
    *,
    by: str,
    reason: str,
    begins: str | None = None,
    until: str | None = None,
    zone: str | None = None,
) -> GateRow:
    """Write a freeze ahead: from its beginning to its end no job leaves that it covers."""
    if subject.member_key is not None:
        raise InvalidFreeze("nobody is frozen alone", "pause the person: `matoolkit pause member`")
    with store.transaction() as tx:
        at = tx.time()
        times = freeze_times(begins, until, zone, at)
        named = existing_subject(tx, subject)
        new = NewGate(
            kind=GateKind.FREEZE,
            reach=Door.SEND,
            worker_id=named.worker_id,
            runbook_name=named.runbook_name,
            batch_id=named.batch_id,
            phase_execution_id=None,
            member_key=None,
            member_key_fold=None,
            shut_from=times.begins,
            shut_until=times.ends,
            shut_by=by,
            reason=reason,
        )
        (gate,) = gates_by_id(tx, [shut_gate(tx, new)])
        record_changes(tx, [audit_entry(gate, "gate.shut", by, reason)], at)
        return gate
