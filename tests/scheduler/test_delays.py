"""Rule K6 on real tables: publishing and rescheduling say which phases freezes and windows keep too long."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest

from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, open_gate
from matoolkit.admin.publishing import Published, publish
from matoolkit.admin.queries import hold_of
from matoolkit.domain.holds import HoldKind
from matoolkit.store.gatekeeping import GateRow
from tests.scheduler.calendar import TICK, Calendar, runbook

DAY = timedelta(days=1)
SIX_HOURS: dict[str, Any] = {"safeguards": {"max_delay": "6h"}}


def frozen(calendar: Calendar, begins: datetime, until: datetime | None, subject: Subject | None = None) -> GateRow:
    times = {"begins": begins.isoformat(), "until": until.isoformat() if until else None}
    return shut_freeze(calendar.store, subject or Subject(), by="anna", reason="year end", **times)


def tried(calendar: Calendar, **changes: Any) -> Published:
    content = runbook(description="another", **{**SIX_HOURS, **changes})
    return publish(calendar.store, content, by="ann", now=calendar.clock.now(), dry_run=True)


def test_k6_publishing_lists_the_phases_of_batches_in_flight_that_a_freeze_makes_late(calendar: Calendar) -> None:
    calendar.in_source("ada")
    calendar.tick()
    gate = frozen(calendar, calendar.start - DAY, calendar.start + DAY)
    batch, kept_by = calendar.batch().id, f"freeze {gate.id}: year end"
    warn, cutover = (delay.in_words() for delay in tried(calendar).delays)
    assert warn == (
        f"phase 'warn' of batch {batch}, due at 2026-03-13 11:00 UTC, could begin at 2026-03-14 12:00 UTC, and only"
        f" until 2026-03-13 17:00 UTC: {kept_by}"
    )
    assert cutover.startswith(f"phase 'cutover' of batch {batch}, due at 2026-03-13 12:00 UTC")
    assert tried(calendar, safeguards={"max_removals": 5}).delays == ()
    open_gate(calendar.store, calendar.bus, gate.id, by="anna", reason=None)
    assert tried(calendar).delays == ()


def test_k6_publishing_lists_what_would_never_begin_and_nothing_of_other_runbooks(calendar: Calendar) -> None:
    calendar.in_source("ada")
    calendar.tick()
    calendar.publish(runbook(name="other"), enable=False)
    gate = frozen(calendar, calendar.start, None, Subject(runbook_name="other"))
    assert tried(calendar).delays == ()
    open_gate(calendar.store, calendar.bus, gate.id, by="anna", reason=None)
    frozen(calendar, calendar.start, None, Subject(batch_id=calendar.batch().id))
    (never,) = tried(calendar, safeguards={"max_removals": 5}).delays
    assert (never.phase.name, never.begins_at) == ("cutover", None)


def test_k6_publishing_looks_at_the_windows_of_the_new_version(calendar: Calendar) -> None:
    calendar.in_source("ada")
    calendar.tick()
    content = runbook(**SIX_HOURS).replace("offset: T-0", "offset: T-0\n  window: {days: [sat], zone: Europe/Berlin}")
    done = publish(calendar.store, content, by="ann", now=calendar.clock.now(), dry_run=True)
    # T is a Friday at noon.
    (late,) = done.delays
    assert (late.phase.name, late.kept_by) == ("cutover", "its window is sat 00:00-24:00 Europe/Berlin")


def test_k6_a_held_reschedule_says_what_its_approval_would_make_late(calendar: Calendar) -> None:
    calendar.publish(runbook(**SIX_HOURS))
    calendar.in_source("ada")
    calendar.tick(TICK)
    calendar.clock.advance(2 * DAY)
    sooner = calendar.start - 2 * DAY
    calendar.in_source("ada", at=sooner)
    assert calendar.tick().batches_held == 1
    frozen(calendar, sooner - timedelta(hours=2), sooner + DAY)
    hold = hold_of(calendar.store, calendar.batch().id)
    assert hold.kind is HoldKind.RESCHEDULE
    assert [delay.phase.name for delay in hold.delays] == ["prepare", "warn", "cutover"]
    assert hold.delays[0].in_words().endswith("and only until 2026-03-04 18:00 UTC: that has passed")


def test_k6_a_reschedule_that_the_source_makes_is_told_with_what_it_makes_late(
    calendar: Calendar, caplog: pytest.LogCaptureFixture
) -> None:
    calendar.publish(runbook(**SIX_HOURS))
    calendar.in_source("ada")
    calendar.tick(TICK)
    later = calendar.start + 7 * DAY
    frozen(calendar, later, later + DAY)
    calendar.in_source("ada", at=later)
    with caplog.at_level(logging.WARNING, "matoolkit.scheduler"):
        assert calendar.tick().batches_rescheduled == 1
    (told,) = [record.getMessage() for record in caplog.records if "rescheduled, and" in record.getMessage()]
    assert told.startswith("rescheduled, and phase 'cutover' of batch")
