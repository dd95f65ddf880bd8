"""Rules G8 and G9 on real tables: phases that a gate kept begin with the next sweep, the others with a tick."""

from datetime import timedelta

from matoolkit.admin.gating import Subject, pause, resume
from tests.scheduler.calendar import Calendar

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
