"""Rules S5, S7 and G8 with a calendar: what was signed begins by a sweep, moves void it, and too late is late."""

from datetime import datetime, timedelta
from typing import Any

import orjson
import pytest

from matoolkit.admin.approvals import ApprovalState, approvals_of_batch
from matoolkit.admin.gating import Subject, open_gate, pause
from matoolkit.admin.publishing import publish
from matoolkit.admin.signing import sign_off
from matoolkit.clock import VirtualClock
from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import BatchStatus, SignOff
from matoolkit.errors import TooLateToSign
from matoolkit.store import Store
from matoolkit.store.audit import audit_page
from matoolkit.store.gatekeeping import GateRow, gates_page
from tests.scheduler.calendar import TICK, Calendar, runbook, step, with_init
from tests.signing import person

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def approved(**rule: Any) -> str:
    """A runbook whose cutover waits for sign-off, with a phase after it."""
    phases = [
        {"name": "prepare", "offset": "T-7d", "steps": [step("prepare-it")]},
        {"name": "cutover", "offset": "T-0", "approval": rule, "steps": [step("move-it")]},
        {"name": "verify", "offset": "T-0", "steps": [step("verify-it")]},
    ]
    return runbook(phases=phases)


def playing(store: Store, clock: VirtualClock, document: str) -> Calendar:
    calendar = Calendar(store, clock)
    calendar.publish(document)
    calendar.in_source("ada", "bob")
    calendar.tick()
    return calendar


def approve(calendar: Calendar, name: str, at: datetime | None = None) -> ApprovalState:
    batch = calendar.batch(at)
    (request,) = approvals_of_batch(calendar.store, batch.id)
    number, digest = request.asking.asked.phase_execution_id, request.digest
    done = sign_off(calendar.store, calendar.bus, batch.id, number, SignOff.APPROVE, by=person(name), digest=digest)
    return done.asking.state


def state(calendar: Calendar, at: datetime | None = None) -> ApprovalState:
    (request,) = approvals_of_batch(calendar.store, calendar.batch(at).id)
    return request.asking.state


def until_cutover(calendar: Calendar) -> None:
    calendar.tick(calendar.start - calendar.clock.now())


def late(calendar: Calendar) -> list[GateRow]:
    with calendar.store.reading() as tx:
        return [gate for gate in gates_page(tx, is_unopened=True) if gate.kind is GateKind.LATE]


def begun(calendar: Calendar, at: datetime | None = None) -> list[str]:
    return sorted(name for name, status in calendar.phases(at).items() if status == "dispatched")


def test_g8_s8_the_phase_begins_with_the_sweep_after_the_last_sign_off_and_none_overtakes_it(
    store: Store, clock: VirtualClock
) -> None:
    calendar = playing(store, clock, approved(count=2, valid="30d"))
    approve(calendar, "ann")
    until_cutover(calendar)
    assert begun(calendar) == ["prepare"]
    assert approve(calendar, "bob") is ApprovalState.GIVEN
    calendar.scheduler.sweep()
    assert begun(calendar) == ["cutover", "prepare", "verify"]
    assert state(calendar) is ApprovalState.BEGUN


def test_s7_a_sign_off_ahead_of_time_is_used_when_the_phase_is_due(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved(valid="30d"))
    assert approve(calendar, "ann") is ApprovalState.GIVEN
    until_cutover(calendar)
    assert "cutover" in begun(calendar)


def test_s5_a_sign_off_does_not_outlive_its_age(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved())
    approve(calendar, "ann")
    until_cutover(calendar)
    assert begun(calendar) == ["prepare"], "ten days are more than seven"
    assert state(calendar) is ApprovalState.WAITING


def test_s5_a_reschedule_by_the_source_voids_it(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved(valid="30d"))
    approve(calendar, "ann")
    moved = calendar.start + DAY
    calendar.in_source("ada", "bob", at=moved)
    calendar.tick()
    assert state(calendar, moved) is ApprovalState.WAITING
    calendar.tick(moved - calendar.clock.now())
    assert begun(calendar, moved) == ["prepare"]


def test_s5_a_new_version_voids_it_and_publishing_says_so(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved(valid="30d"))
    approve(calendar, "ann")
    done = publish(store, approved(valid="29d"), by="ann", now=clock.now())
    assert [one.signed_by for impact in done.impacts for one in impact.voided] == ["ann"]
    with store.reading() as tx:
        recorded = next(one for one in audit_page(tx) if one.action == "runbook.publish")
    (voided,) = orjson.loads(recorded.after_json or "")["voided_approvals"].values()
    assert voided == ["ann"]
    calendar.tick()
    assert state(calendar) is ApprovalState.WAITING


def test_s7_after_until_the_phase_is_late_and_opening_that_lifts_it(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved(until="T+4h", count=2))
    until_cutover(calendar)
    approve(calendar, "ann")
    calendar.tick(4 * HOUR)
    assert late(calendar) == []
    calendar.clock.advance(timedelta(seconds=1))
    with pytest.raises(TooLateToSign):
        approve(calendar, "bob")
    calendar.scheduler.sweep()
    (gate,) = late(calendar)
    assert gate.reason.startswith("phase 'cutover' was not approved until ")
    assert gate.reason.endswith(": 1 of 2 given (ann 12:00 UTC)")
    assert state(calendar) is ApprovalState.LATE
    open_gate(calendar.store, calendar.bus, gate.id, by="anna", reason="the bank was closed")
    calendar.scheduler.sweep()
    assert (late(calendar), begun(calendar)) == ([], ["prepare"])
    assert approve(calendar, "bob") is ApprovalState.GIVEN
    calendar.scheduler.sweep()
    assert "cutover" in begun(calendar)


def test_s7_a_phase_that_was_approved_in_time_is_not_late(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, approved(until="T+4h", valid="30d"))
    approve(calendar, "ann")
    calendar.tick(calendar.start + DAY - calendar.clock.now())
    assert (late(calendar), "cutover" in begun(calendar)) == ([], True)


def test_s7_an_init_that_was_not_approved_in_time_is_late_too(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, with_init(init_approval={"until": "T-8d"}))
    calendar.tick(2 * DAY + HOUR)
    calendar.scheduler.sweep()
    calendar.scheduler.sweep()
    (gate,) = late(calendar)
    assert (gate.phase_execution_id, gate.batch_id) == (None, calendar.batch().id)
    with pytest.raises(TooLateToSign):
        approve(calendar, "ann")
    open_gate(calendar.store, calendar.bus, gate.id, by="anna", reason="still meant")
    calendar.scheduler.sweep()
    assert late(calendar) == []
    assert approve(calendar, "ann") is ApprovalState.GIVEN
    assert calendar.batch().status is BatchStatus.INIT_DISPATCHED


def test_s7_the_late_gate_of_an_init_opens_by_itself_when_t_is_another_one(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, with_init(init_approval={"until": "T-8d"}))
    calendar.tick(2 * DAY + HOUR)
    calendar.scheduler.sweep()
    assert len(late(calendar)) == 1
    moved = calendar.start + 5 * DAY
    calendar.in_source("ada", "bob", at=moved)
    calendar.tick()
    calendar.scheduler.sweep()
    assert (late(calendar), state(calendar, moved)) == ([], ApprovalState.WAITING)


def test_s7_an_init_that_nobody_let_in_is_late_again_when_t_is_the_old_one_again(
    store: Store, clock: VirtualClock
) -> None:
    """The defect: a gate that opened by itself counted as opened by a person, so anybody could sign after `until`."""
    calendar = playing(store, clock, with_init(init_approval={"until": "T-8d"}))
    calendar.tick(2 * DAY + HOUR)
    calendar.scheduler.sweep()
    for start in (calendar.start + 5 * DAY, calendar.start):
        calendar.in_source("ada", "bob", at=start)
        calendar.tick()
        calendar.scheduler.sweep()
    assert (len(late(calendar)), state(calendar)) == (1, ApprovalState.LATE)
    with pytest.raises(TooLateToSign):
        approve(calendar, "ann")


def test_s5_an_init_is_woken_when_t_is_the_one_that_was_signed_off(store: Store, clock: VirtualClock) -> None:
    calendar = playing(store, clock, with_init(init_approval={}))
    shut = pause(store, calendar.bus, Subject(batch_id=calendar.batch().id), by="anna", reason="legal hold")
    approve(calendar, "ann")
    calendar.in_source("ada", "bob", at=calendar.start + DAY)
    calendar.tick()
    open_gate(store, calendar.bus, shut.gate.id, by="anna", reason="over")
    calendar.messages()
    calendar.in_source("ada", "bob")
    calendar.tick()
    assert state(calendar) is ApprovalState.GIVEN
    assert calendar.messages() == [f"batch-wake-{calendar.batch().id}-4"]


def test_s7_the_late_gate_of_an_init_opens_by_itself_when_another_version_runs_its_own(
    store: Store, clock: VirtualClock
) -> None:
    """The defect: it stood until somebody opened it, and kept an init that nobody has to approve, and all phases."""
    calendar = playing(store, clock, with_init(init_approval={"until": "T-8d"}))
    calendar.tick(2 * DAY + HOUR)
    calendar.scheduler.sweep()
    calendar.publish(with_init(init_approval={"until": "T-8d"}, description="a typo"), rerun_init=True)
    calendar.tick()
    calendar.scheduler.sweep()
    assert len(late(calendar)) == 1, "its time is over too"
    calendar.publish(with_init(init_approval={"until": "T-1d"}), rerun_init=True)
    calendar.tick()
    calendar.scheduler.sweep()
    assert (late(calendar), state(calendar)) == ([], ApprovalState.WAITING)


def test_s7_the_late_gate_of_an_init_opens_by_itself_when_there_is_no_init_any_more(
    store: Store, clock: VirtualClock
) -> None:
    calendar = playing(store, clock, with_init(init_approval={"until": "T-8d"}))
    calendar.tick(2 * DAY + HOUR)
    calendar.scheduler.sweep()
    calendar.change("UPDATE batches SET status = 'active'")
    calendar.scheduler.sweep()
    assert late(calendar) == []


def test_s3_who_joins_a_batch_that_has_not_begun_is_not_covered_by_earlier_sign_offs(
    store: Store, clock: VirtualClock
) -> None:
    """The defect: while a batch was held as late, all who came to it counted as there from the beginning."""
    calendar = Calendar(store, clock)
    calendar.publish(approved(valid="30d"))
    calendar.start -= 12 * DAY
    calendar.in_source("ada")
    assert calendar.tick().batches_held == 1
    approve(calendar, "ann")
    calendar.in_source("bob")
    assert calendar.tick(TICK).members_added == 1
    calendar.approve()
    calendar.tick(TICK)
    assert "cutover" in begun(calendar)
    (request,) = approvals_of_batch(store, calendar.batch().id)
    assert (request.asking.state, list(request.first_members)) == (ApprovalState.WAITING, ["bob"])
