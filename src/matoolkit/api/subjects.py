"""What changes are about, each shown to `If-Match` exactly as its own route shows it."""

from collections.abc import Callable

from matoolkit.admin.approving import missing_sign_offs
from matoolkit.admin.gating import existing_gate
from matoolkit.admin.queries import (
    automation_status,
    batch_detail,
    hold_of,
    latest_runbook,
    member_history,
    one_dead_letter,
    one_version,
)
from matoolkit.api.conditions import Subject
from matoolkit.api.shapes.batches import (
    BatchDetailShape,
    HoldShape,
    MemberHistoryShape,
    detail_shape,
    history_shape,
    hold_shape,
)
from matoolkit.api.shapes.gates import GateShape, gate_shape
from matoolkit.api.shapes.operations import DeadLetterContent, letter_content
from matoolkit.api.shapes.runbooks import AutomationShape, RunbookDocument
from matoolkit.errors import ChangedSince, UnknownRunbook
from matoolkit.store import Store
from matoolkit.store.batches import lock_batches
from matoolkit.store.runbooks import lock_runbook


def batch_shown(store: Store, batch_id: int) -> BatchDetailShape:
    """Show a batch."""
    return detail_shape(batch_detail(store, batch_id))


def member_shown(store: Store, batch_id: int, member_id: int) -> MemberHistoryShape:
    """Show a member."""
    return history_shape(member_history(store, batch_id, member_id))


def hold_shown(store: Store, batch_id: int) -> HoldShape:
    """Show a hold."""
    return hold_shape(hold_of(store, batch_id), missing_sign_offs(store, batch_id))


def letter_shown(store: Store, letter_id: int) -> DeadLetterContent:
    """Show a dead letter."""
    return letter_content(one_dead_letter(store, letter_id))


def runbook_shown(store: Store, name: str) -> RunbookDocument:
    """Show the active version of a runbook, or the newest if none is active."""
    with store.reading() as tx:
        return RunbookDocument.model_validate(latest_runbook(tx, name))


def version_shown(store: Store, name: str, version: int) -> RunbookDocument:
    """Show a version."""
    return RunbookDocument.model_validate(one_version(store, name, version))


def automation_shown(store: Store, name: str) -> AutomationShape:
    """Show whether a runbook is automated."""
    with store.reading() as tx:
        return AutomationShape.model_validate(automation_status(tx, name))


def batch_subject(batch_id: int) -> Subject:
    """Return a batch as what is changed."""
    return Subject(lambda tx: lock_batches(tx, [batch_id]), lambda store: batch_shown(store, batch_id))


def member_subject(batch_id: int, member_id: int) -> Subject:
    """Return a member as what is changed."""
    return Subject(lambda tx: lock_batches(tx, [batch_id]), lambda store: member_shown(store, batch_id, member_id))


def hold_subject(batch_id: int) -> Subject:
    """Return a hold as what is changed."""
    return Subject(lambda tx: lock_batches(tx, [batch_id]), lambda store: hold_shown(store, batch_id))


def gate_shown(store: Store, gate_id: int) -> GateShape:
    """Show a gate."""
    with store.reading() as tx:
        return gate_shape(existing_gate(tx, gate_id))


def gate_subject(gate_id: int) -> Subject:
    """Return a gate as what is changed; it is opened once, which the change itself guards."""
    return Subject(lambda _: None, lambda store: gate_shown(store, gate_id))


def letter_subject(letter_id: int) -> Subject:
    """Return a dead letter as what is changed; it changes once at most, which the change itself guards."""
    return Subject(lambda _: None, lambda store: letter_shown(store, letter_id))


def version_subject(name: str, version: int) -> Subject:
    """Return a version as what is changed."""
    return Subject(lambda tx: lock_runbook(tx, name), lambda store: version_shown(store, name, version))


def automation_subject(name: str) -> Subject:
    """Return the automation of a runbook as what is changed."""
    return Subject(lambda tx: lock_runbook(tx, name), lambda store: automation_shown(store, name))


def publication_subject(name_of: Callable[[], str]) -> Subject:
    """Return the runbook that a document has the name of; one that is not there cannot have been looked at."""

    def shown(store: Store) -> RunbookDocument:
        try:
            return runbook_shown(store, name_of())
        except UnknownRunbook:
            raise ChangedSince from None

    return Subject(lambda tx: lock_runbook(tx, name_of()), shown)
