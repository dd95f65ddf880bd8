"""Rule K5 on real tables: a phase that could begin only later than `max_delay` after it was due waits for a person."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from matoolkit.admin.decisions import inbox
from matoolkit.admin.explaining import explain_batch
from matoolkit.admin.gating import Subject, open_gate, pause, resume
from matoolkit.announcing.signoffs import phases_let_in_late
from matoolkit.clock import VirtualClock
from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import OverdueBehavior
from matoolkit.store import Store
from matoolkit.store.gatekeeping import GateRow, gates_page
from tests.scheduler.calendar import TICK, Calendar, immediate, runbook, with_init

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIX_HOURS: dict[str, Any] = {"safeguards": {"max_delay": "6h"}}


@pytest.fixture
def strict(store: Store, clock: VirtualClock) -> Calendar:
    """Ada's batch starts in ten days, and her first phase is due in three."""
    calendar = Calendar(store, clock)
    calendar.publish(runbook(**SIX_HOURS))
    calendar.in_source("ada")
    calendar.tick()
    return calendar


def late(calendar: Calendar, *, is_unopened: bool = True) -> list[GateRow]:
    with calendar.store.reading() as tx:
        gates = gates_page(tx, is_unopened=is_unopened)
    return [gate for gate in reversed(gates) if gate.kind is GateKind.LATE and gate.phase_execution_id is not None]


def stop(calendar: Calendar) -> None:
    pause(calendar.store, calendar.bus, Subject(), by="anna", reason="an outage")


def go_on(calendar: Calendar) -> None:
    resume(calendar.store, calendar.bus, Subject(), by="anna", reason="it is over")


def let_begin(calendar: Calendar) -> None:
    (gate,) = late(calendar)
    open_gate(calendar.store, calendar.bus, gate.id, by="anna", reason="it is meant")


def limits(calendar: Calendar) -> dict[str, datetime | None]:
    newest: dict[str, Any] = {phase.phase_name: phase.late_after for phase in calendar.phase_rows()}
    return newest


def test_k5_until_when_a_phase_may_begin_is_stored_when_it_is_created(strict: Calendar) -> None:
    due = {phase.phase_name: phase.due_at for phase in strict.phase_rows()}
    assert {name: at + 6 * HOUR for name, at in due.items() if at} == limits(strict)


def test_k5_without_max_delay_no_phase_is_ever_late(calendar: Calendar) -> None:
    calendar.in_source("ada")
    calendar.tick()
    stop(calendar)
    calendar.clock.advance(9 * DAY)
    go_on(calendar)
    assert calendar.tick().phases_dispatched == 1
    assert set(limits(calendar).values()) == {None}


@pytest.mark.parametrize(("after", "begins"), [(6 * HOUR, True), (6 * HOUR + timedelta(seconds=1), False)])
def test_k5_a_phase_begins_up_to_its_limit_and_not_later(strict: Calendar, after: timedelta, *, begins: bool) -> None:
    stop(strict)
    strict.tick(3 * DAY + after)
    go_on(strict)
    strict.scheduler.sweep()
    assert (strict.phases()["prepare"] == "dispatched") is begins
    told = "phase 'prepare' was due at 2026-03-06 12:00 UTC, and could begin until 2026-03-06 18:00 UTC"
    assert [gate.reason for gate in late(strict)] == ([] if begins else [told])


def test_k5_what_kept_the_phase_does_not_matter(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(with_init(**SIX_HOURS))
    calendar.in_source("ada")
    calendar.tick()
    calendar.clock.advance(4 * DAY)
    assert (calendar.tick().phases_dispatched, late(calendar)) == (0, [])
    calendar.change("UPDATE batches SET status = 'active'")
    assert (calendar.tick().phases_dispatched, len(late(calendar))) == (0, 1)


def test_k5_a_scheduler_that_was_away_for_too_long_begins_nothing_by_itself(strict: Calendar) -> None:
    assert strict.tick(4 * DAY).phases_dispatched == 0
    for _ in range(2):
        strict.tick(TICK)
        strict.scheduler.sweep()
    assert len(late(strict)) == 1
    assert strict.phases()["prepare"] == "pending"


def test_k5_a_person_opens_the_gate_and_the_phase_begins_with_the_sweep(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    let_begin(strict)
    strict.scheduler.sweep()
    assert strict.phases()["prepare"] == "dispatched"
    (gate,) = late(strict, is_unopened=False)
    assert (gate.opened_by, late(strict)) == ("anna", [])
    assert let_in(strict) == {gate.phase_execution_id}


def let_in(calendar: Calendar) -> set[int]:
    with calendar.store.reading() as tx:
        return phases_let_in_late(tx, [phase.id for phase in calendar.phase_rows()])


def test_k5_whom_a_person_let_begin_stays_so_when_something_else_keeps_it(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    stop(strict)
    let_begin(strict)
    strict.tick(DAY)
    go_on(strict)
    strict.scheduler.sweep()
    assert strict.phases()["prepare"] == "dispatched"


def test_g9_no_later_phase_begins_while_an_earlier_one_is_late_and_each_is_let_in_by_itself(strict: Calendar) -> None:
    strict.tick(10 * DAY)
    assert set(strict.phases().values()) == {"pending"}
    assert [gate.reason.split("'")[1] for gate in late(strict)] == ["prepare"]
    let_begin(strict)
    strict.clock.advance(7 * HOUR)
    strict.tick()
    assert strict.phases() == {"prepare": "dispatched", "warn": "pending", "cutover": "pending"}
    assert [gate.reason.split("'")[1] for gate in late(strict)] == ["warn", "cutover"]


def test_k5_when_t_is_ahead_again_the_gate_opens_by_itself_and_the_limit_is_computed_anew(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    assert len(late(strict)) == 1
    later = strict.start + 7 * DAY
    strict.in_source("ada", at=later)
    assert strict.tick(TICK).batches_rescheduled == 1
    strict.start = later
    strict.scheduler.sweep()
    (gate,) = late(strict, is_unopened=False)
    assert (gate.opened_by, let_in(strict)) == ("system", set())
    assert limits(strict)["prepare"] == later - 7 * DAY + 6 * HOUR
    strict.clock.advance(later - 7 * DAY - strict.clock.now())
    assert strict.tick().phases_dispatched == 1


def test_k5_a_limit_that_a_person_lifted_counts_again_for_another_t(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    stop(strict)
    let_begin(strict)
    later = strict.start + 7 * DAY
    strict.in_source("ada", at=later)
    strict.tick(TICK)
    strict.start = later
    assert let_in(strict) == set()
    strict.clock.advance(later - 7 * DAY + 7 * HOUR - strict.clock.now())
    go_on(strict)
    assert (strict.tick().phases_dispatched, len(late(strict))) == (0, 1)


def test_k5_what_a_new_version_repeats_counts_from_the_transition(strict: Calendar) -> None:
    strict.tick(3 * DAY)
    assert strict.phases()["prepare"] == "dispatched"
    strict.clock.advance(2 * DAY)
    strict.publish(runbook(**SIX_HOURS, description="another"), overdue=OverdueBehavior.RERUN)
    published = strict.clock.now()
    assert strict.tick().phases_dispatched == 1
    assert limits(strict)["prepare"] == published + 6 * HOUR
    assert limits(strict)["cutover"] == strict.start + 6 * HOUR


def test_k5_the_gate_of_a_phase_that_a_new_version_takes_away_opens_by_itself(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    strict.publish(runbook(**SIX_HOURS, description="another"), overdue=OverdueBehavior.IGNORE)
    strict.tick(TICK)
    strict.scheduler.sweep()
    assert late(strict) == []
    (gate,) = late(strict, is_unopened=False)
    assert gate.opened_by == "system"


def test_k4_a_batch_that_a_person_lets_begin_late_counts_from_then(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(runbook(**SIX_HOURS))
    calendar.start -= 12 * DAY
    calendar.in_source("ada")
    assert calendar.tick().batches_held == 1
    calendar.tick(DAY)
    calendar.approve()
    assert calendar.tick(TICK).phases_dispatched == 3
    assert (late(calendar), set(limits(calendar).values())) == ([], {calendar.clock.now() + 6 * HOUR})


def test_k5_in_an_immediate_runbook_it_counts_from_t(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(immediate().replace("T-0", "T-5d") + "safeguards: {max_delay: 6h}\n")
    calendar.in_source("ada")
    assert calendar.tick().phases_dispatched == 1
    assert late(calendar) == []


def test_k5_who_has_left_meanwhile_makes_the_phase_skipped_and_not_late(strict: Calendar) -> None:
    strict.fail("ada")
    strict.tick(4 * DAY)
    assert (strict.phases()["prepare"], late(strict)) == ("skipped", [])


def test_k5_the_gate_of_a_late_phase_is_no_hold_and_the_batch_follows_its_source(strict: Calendar) -> None:
    strict.tick(4 * DAY)
    assert len(late(strict)) == 1
    assert (strict.batch().hold_kind, strict.batch().hold_reason) == (None, None)
    strict.in_source("bob")
    assert strict.tick(TICK).members_added == 1


def test_x4_what_is_kept_tells_when_it_will_be_late(strict: Calendar) -> None:
    stop(strict)
    strict.tick(3 * DAY)
    coming = explain_batch(strict.store, strict.batch().id).coming
    assert (coming[0].at, coming[0].sentence) == (
        strict.clock.now() + 6 * HOUR,
        "prepare is late, and begins only if a person lets it",
    )


def test_x2_a_phase_behind_another_tells_of_its_own_gates_too(strict: Calendar) -> None:
    strict.tick(12 * DAY)
    batch = strict.batch().id
    phases = {one.phase.phase_name: one.whys for one in explain_batch(strict.store, batch).phases}
    assert [[str(why.kind) for why in whys] for whys in phases.values()] == [
        ["late"],
        ["earlier_phase", "late"],
        ["earlier_phase", "late"],
    ]


def test_x6_what_is_to_be_signed_off_is_wanted_before_its_phase_is_late(store: Store, clock: VirtualClock) -> None:
    """The defect: they named the end of the time for sign-offs, when the phase was late already."""
    calendar = Calendar(store, clock)
    calendar.publish(runbook(**SIX_HOURS).replace("offset: T-7d", "offset: T-7d\n  approval: {until: T-6d}"))
    calendar.in_source("ada")
    calendar.tick()
    due = calendar.clock.now() + 3 * DAY
    (matter,) = inbox(store).matters
    assert (matter.kind, matter.deadline) == ("approval", due + 6 * HOUR)
    calendar.tick(3 * DAY + HOUR)
    coming = explain_batch(store, calendar.batch().id).coming
    assert [one.sentence for one in coming if "late" in one.sentence] == [
        "prepare is late, and begins only if a person lets it"
    ]
