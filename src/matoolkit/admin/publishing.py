"""Publishing runbooks, deactivating versions, switching automation on and off (rules V1, V7 and T1)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from matoolkit.admin.approvals import voided_by_version
from matoolkit.admin.catalogue import known_catalogue
from matoolkit.domain.delays import Ahead, Delay, delays
from matoolkit.domain.keys import folded
from matoolkit.domain.signoff import Signature
from matoolkit.domain.states import OverdueBehavior
from matoolkit.domain.transitions import TargetVersion, Transition, transition
from matoolkit.domain.windows import hours_of
from matoolkit.errors import (
    Finding,
    InvalidRunbook,
    NoActiveVersion,
    OtherName,
    PrimaryKeyChanged,
    PublishedMeanwhile,
    RowConflict,
    UnknownRunbook,
    UnknownVersion,
    VersionNotActive,
)
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import lint_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.audit import NewAuditEntry, record_changes
from matoolkit.store.automation import AutomationRow, automation_of, disable_automation, enable_automation
from matoolkit.store.batches import BatchRow, unfinished_batches
from matoolkit.store.gates import freezes_ahead
from matoolkit.store.inflight import batches_in_flight, target_of
from matoolkit.store.runbooks import (
    NewVersion,
    RunbookRow,
    active_runbook,
    deactivate_version,
    latest_version,
    lock_runbook,
    publish_version,
    runbook_names,
    runbook_version,
    runbooks_by_id,
)

_TRIES = 5


@dataclass(frozen=True, slots=True)
class Impact:
    """What a version does to a batch in flight; `voided` are the sign-offs that do not count any more (rule S5)."""

    batch_id: int
    start_time: datetime | None
    transition: Transition
    voided: Sequence[Signature] = ()


@dataclass(frozen=True, slots=True)
class Published:
    """The outcome of a publication, or of its dry run.

    `is_new` is false if the active version is this very document with these settings, which is then left alone; `row`
    is that version or the new one; a dry run has none. `is_automated` is how it is after a publication. `delays` are
    phases that freezes and windows keep from beginning in time (rule K6).
    """

    name: str
    version: int
    row: RunbookRow | None
    is_new: bool
    is_dry_run: bool
    warnings: tuple[Finding, ...]
    impacts: tuple[Impact, ...]
    is_automated: bool
    delays: tuple[Delay, ...] = ()

    @property
    def repeats_phases(self) -> bool:
        """Whether phases that members have begun would run again; then a person is asked first."""
        return any(impact.transition.repeated for impact in self.impacts)


@dataclass(frozen=True, slots=True)
class _Request:
    """A valid document, and how to publish it."""

    new: NewVersion
    runbook: Runbook
    warnings: tuple[Finding, ...]
    force: bool
    enable: bool
    now: datetime


def publish(
    store: Store,
    content: str | bytes,
    *,
    by: str,
    now: datetime,
    overdue_behavior: OverdueBehavior = OverdueBehavior.RERUN,
    rerun_init: bool = False,
    force: bool = False,
    enable: bool = False,
    name: str | None = None,
    dry_run: bool = False,
) -> Published:
    """Publish a document as the next version of its runbook, and say what that does to batches in flight (rule V1)."""
    with store.reading() as tx:
        catalogue = known_catalogue(tx)
    report = lint_runbook(content, catalogue)
    if report.runbook is None:
        raise InvalidRunbook(report.findings)
    if name is not None and folded(name) != folded(report.runbook.name):
        raise OtherName(name, report.runbook.name)
    text = report.source.text
    new = NewVersion(report.runbook.name, text, content_hash(text), overdue_behavior, rerun_init, by)
    request = _Request(new, report.runbook, tuple(report.findings), force, enable, now)
    if dry_run:
        with store.reading() as tx:
            return _published(tx, request, dry_run=True)
    return _publish(store, request)


def content_hash(text: str) -> str:
    """Return the same hash for the same document, whatever its line endings."""
    return hashlib.sha256(text.replace("\r\n", "\n").encode()).hexdigest()


def deactivate(store: Store, name: str, version: int, *, by: str, reason: str | None, now: datetime) -> RunbookRow:
    """Deactivate the active version: no new members are found, batches in flight go on (rule V7)."""
    with store.transaction() as tx:
        latest = _known(tx, name)
        row = runbook_version(tx, name, version)
        if row is None:
            raise UnknownVersion(latest.name, version, latest.version)
        if not deactivate_version(tx, name, version):
            active = active_runbook(tx, name)
            raise VersionNotActive(latest.name, version, active.version if active else None)
        change = _change("runbook.deactivate", row.name, by, {"active_version": version}, {"active_version": None})
        record_changes(tx, [replace(change, reason=reason)], now)
    return replace(row, is_active=False)


def set_automation(store: Store, name: str, *, enabled: bool, by: str, now: datetime) -> AutomationRow:
    """Let the scheduler query a runbook's source, or keep it from doing so (rule T1)."""
    with store.transaction() as tx:
        runbook = _known(tx, name)
        if enabled and not runbook.is_active:
            raise NoActiveVersion(runbook.name)
        return _switch(tx, runbook.name, enabled=enabled, by=by, now=now)


def _publish(store: Store, request: _Request) -> Published:
    # If another publication comes between reading and writing, read again: its version may change the outcome.
    for _ in range(_TRIES):
        try:
            with store.transaction() as tx:
                return _published(tx, request, dry_run=False)
        except (RowConflict, PublishedMeanwhile):
            continue
    raise PublishedMeanwhile(request.new.name)


def _published(tx: Transaction, request: _Request, *, dry_run: bool) -> Published:
    new, latest = request.new, latest_version(tx, request.new.name)
    name = latest.name if latest else new.name
    # A batch that has not begun is not in flight: it follows the version that is active when it begins (rule T5).
    batches = [batch for batch in unfinished_batches(tx, name) if not batch.is_unbegun]
    row = latest if latest is not None and _is_same(latest, request) else None
    if row is not None:
        target = target_of(row, request.runbook)
    else:
        _refuse_changed_key(tx, request.runbook, batches)
        number = latest.version + 1 if latest else 1
        target = TargetVersion(number, request.runbook, new.overdue_behavior, new.rerun_init)
    impacts = _impacts(tx, batches, target, row, request.now)
    is_new = row is None
    if not dry_run:
        row = row or _write(tx, request, latest, target.number, impacts)
        if request.enable:
            _switch(tx, name, enabled=True, by=new.published_by, now=request.now)
    automation = automation_of(tx, name)
    is_automated = request.enable or (automation is not None and automation.automation_enabled)
    late = tuple(_delays(tx, name, target, impacts, request.now))
    return Published(name, target.number, row, is_new, dry_run, request.warnings, impacts, is_automated, late)


def _write(
    tx: Transaction, request: _Request, latest: RunbookRow | None, number: int, impacts: Sequence[Impact]
) -> RunbookRow:
    row = publish_version(tx, request.new, request.now)
    if row.version != number:
        raise PublishedMeanwhile(row.name)
    before = _described(latest) if latest is not None and latest.is_active else None
    voided = {str(one.batch_id): [given.signed_by for given in one.voided] for one in impacts if one.voided}
    after = _described(row) | ({"voided_approvals": voided} if voided else {})
    change = _change("runbook.publish", row.name, row.published_by, before, after)
    record_changes(tx, [change], request.now)
    return row


def _is_same(latest: RunbookRow, request: _Request) -> bool:
    new = request.new
    before = (latest.content_hash, latest.overdue_behavior, latest.rerun_init)
    is_equal = before == (new.content_hash, new.overdue_behavior, new.rerun_init)
    return latest.is_active and is_equal and not request.force


def _refuse_changed_key(tx: Transaction, runbook: Runbook, batches: Sequence[BatchRow]) -> None:
    automated = [batch for batch in batches if not batch.is_manual]
    for row in runbooks_by_id(tx, {batch.runbook_id for batch in automated}):
        # An old document that today's rules refuse must not block a new valid one.
        old = lint_runbook(row.yaml_content).runbook
        if old is None:
            continue
        before, after = old.data_source.primary_key, runbook.data_source.primary_key
        if folded(before) != folded(after):
            raise PrimaryKeyChanged(row.name, before, after, len(automated))


def _impacts(
    tx: Transaction, batches: Sequence[BatchRow], target: TargetVersion, row: RunbookRow | None, now: datetime
) -> tuple[Impact, ...]:
    found = batches_in_flight(tx, batches, row.id if row else None)
    changes = {batch.id: transition(batch, target, now) for batch in found}
    taking = [batch for batch in batches if changes[batch.id].stays is None]
    voided = voided_by_version(tx, taking, rerun_init=target.rerun_init)
    return tuple(Impact(batch.id, batch.start_time, changes[batch.id], voided.get(batch.id, ())) for batch in found)


def _delays(tx: Transaction, name: str, target: TargetVersion, impacts: Sequence[Impact], now: datetime) -> list[Delay]:
    """Look ahead for the phases that batches in flight are given."""
    hours = [hours_of(target.runbook, phase) for phase in target.runbook.phases]
    ahead = (
        Ahead(impact.batch_id, name, phase.name, phase.due_at, phase.late_after, hours[phase.index])
        for impact in impacts
        for phase in impact.transition.created
        if not phase.is_skipped
    )
    return delays(ahead, freezes_ahead(tx, now), now)


def _known(tx: Transaction, name: str) -> RunbookRow:
    """Lock a runbook and return its latest version."""
    lock_runbook(tx, name)
    latest = latest_version(tx, name)
    if latest is None:
        raise UnknownRunbook(name, runbook_names(tx))
    return latest


def _switch(tx: Transaction, name: str, *, enabled: bool, by: str, now: datetime) -> AutomationRow:
    before = automation_of(tx, name)
    was_enabled = before is not None and before.automation_enabled
    if was_enabled == enabled:
        return before or AutomationRow(name, enabled, None, None, None, None)
    put, action = (enable_automation, "enable") if enabled else (disable_automation, "disable")
    put(tx, name, by, now)
    change = _change(f"automation.{action}", name, by, {"enabled": was_enabled}, {"enabled": enabled})
    record_changes(tx, [change], now)
    after = automation_of(tx, name)
    return after or AutomationRow(name, enabled, None, None, None, None)


def _described(row: RunbookRow) -> dict[str, object]:
    return {
        "active_version": row.version,
        "content_hash": row.content_hash,
        "overdue_behavior": row.overdue_behavior,
        "rerun_init": row.rerun_init,
    }


def _change(
    action: str, name: str, by: str, before: dict[str, object] | None, after: dict[str, object]
) -> NewAuditEntry:
    return NewAuditEntry(
        actor=by,
        action=action,
        subject_type="runbook",
        subject_id=name,
        runbook_name=name,
        before_json=None if before is None else orjson.dumps(before).decode(),
        after_json=orjson.dumps(after).decode(),
    )
