"""Rules G8 and G9 on real tables: phases that a gate kept begin with the next sweep, the others with a tick."""

from datetime import timedelta

import pytest

from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.scheduler import due_phases
from tests.scheduler.calendar import Calendar, runbook

MINUTE = timedelta(minutes=1)


def begun(calendar: Calendar) -> list[str]:
    return [name for name, status in calendar.phases().items() if status != "pending"]


def test_g8_a_phase_that_a_gate_kept_begins_with_the_sweep_after_it_opens(calendar: Calendar) -> None:
    calendar.publish()
    calendar.in_source("ada", at=calendar.start)
    calendar.tick()
    pause(calendar.store, calendar.bus, Subject(), by="anna", reason="legal hold")
    calendar.tick(timedelta(days=3))
    assert begun(calendar) == []
    calendar.scheduler.sweep()
    assert begun(calendar) == []
    resume(calendar.store, calendar.bus, Subject(), by="anna", reason=None)
    calendar.scheduler.sweep()
    assert begun(calendar) == ["prepare"]


def test_g8_a_batch_that_is_yet_to_take_a_newer_version_waits_for_a_tick(calendar: Calendar) -> None:
    calendar.publish()
    calendar.in_source("ada", at=calendar.start)
    calendar.tick()
    pause(calendar.store, calendar.bus, Subject(), by="anna", reason="legal hold")
    calendar.tick(timedelta(days=3))
    calendar.publish(runbook(safeguards={"max_delay": "9d"}))
    resume(calendar.store, calendar.bus, Subject(), by="anna", reason=None)
    calendar.scheduler.sweep()
    assert begun(calendar) == []


def test_g9_no_phase_overtakes_one_that_was_seen_with_others(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Due phases are looked at page by page; an earlier one may have been kept a page ago."""
    monkeypatch.setattr(due_phases, "_AT_ONCE", 1)
    calendar.publish(runbook().replace("offset: T-7d", "offset: T-7d\n  approval: {count: 2}"))
    calendar.in_source("ada", at=calendar.start)
    calendar.tick()
    calendar.tick(timedelta(days=30))
    assert begun(calendar) == []


def test_t8_a_phase_that_comes_due_between_ticks_waits_for_a_tick_which_reads_the_source_first(
    calendar: Calendar,
) -> None:
    calendar.publish()
    calendar.in_source("ada", at=calendar.start)
    calendar.tick()
    calendar.tick(timedelta(days=3) - MINUTE)
    calendar.clock.advance(2 * MINUTE)
    calendar.scheduler.sweep()
    assert begun(calendar) == []
    calendar.tick()
    assert begun(calendar) == ["prepare"]
