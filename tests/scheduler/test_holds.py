"""Rule T6, on real tables: holds, approvals, releases, and whom they wake."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest

from matoolkit.admin.manual import create_manual_batch
from matoolkit.clock import VirtualClock
from matoolkit.domain.changes import Changes
from matoolkit.domain.gates import GateKind
from matoolkit.domain.membership import decide
from matoolkit.domain.remarks import Seen
from matoolkit.domain.snapshot import Snapshot
from matoolkit.scheduler import enrolling
from matoolkit.store import Store
from matoolkit.store.holds import Hold, hold_batches
from tests.scheduler.calendar import TICK, Calendar, immediate, runbook

DAY, WEEK = timedelta(days=1), timedelta(days=7)
TEN = tuple(f"m{number}" for number in range(10))


@pytest.fixture
def held(calendar: Calendar) -> Calendar:
    """A batch of ten, held because six are gone."""
    calendar.in_source(*TEN)
    calendar.tick()
    calendar.gone(*TEN[:6])
    assert calendar.tick(TICK).batches_held == 1
    calendar.messages()
    return calendar


def test_t6_beyond_the_guard_nothing_is_removed_and_the_batch_is_held_with_its_reason(held: Calendar) -> None:
    batch = held.batch()
    assert batch.held_at == held.clock.now()
    assert batch.hold_reason == "the source no longer returns 6 of its 10 members"
    assert set(held.members().values()) == {"active"}
    gone = [held.member(key).id for key in TEN[:6]]
    assert orjson.loads(batch.hold_json or "") == {"kind": "removals", "memberIds": gone, "start": None}
    assert (batch.hold_count, batch.approved_hold_key) == (1, None)


def test_t6_a_hold_stays_as_it_is_while_nothing_changes_and_t_passing_ends_none(held: Calendar) -> None:
    before = held.batch()
    for later in (TICK, WEEK, WEEK):
        assert held.tick(later).batches_held == 0
        assert held.batch() == before
    assert held.messages() == []


@pytest.mark.parametrize(("limit", "gone"), [("10%", 1), (3, 3), (0, 0)])
def test_t6_a_runbook_can_set_its_own_guard(store: Store, clock: VirtualClock, limit: Any, gone: int) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(runbook(safeguards={"max_removals": limit}))
    calendar.in_source(*TEN)
    calendar.tick()
    calendar.gone(*TEN[:gone])
    assert calendar.tick(TICK).members_removed == gone
    calendar.gone(*TEN[: 2 * gone + 1])
    assert calendar.tick(TICK).batches_held == 1
    assert list(calendar.members().values()).count("removed") == gone


TWENTY = tuple(f"t{number}" for number in range(20))


def test_t6_the_guard_counts_over_a_day(calendar: Calendar) -> None:
    calendar.in_source(*TWENTY)
    calendar.tick()
    calendar.gone(*TWENTY[:5])
    assert calendar.tick(TICK).members_removed == 5
    calendar.gone(*TWENTY[:10])
    assert calendar.tick(TICK).batches_held == 1
    assert calendar.batch().hold_reason == "the source no longer returns 5 of its 15 members; 5 left in the last day"
    assert calendar.tick(DAY).members_removed == 0
    assert list(calendar.members().values()).count("removed") == 5


def test_t6_the_guard_counts_anew_after_a_day_and_not_those_who_are_back(calendar: Calendar) -> None:
    calendar.in_source(*TWENTY)
    calendar.tick()
    calendar.gone(*TWENTY[:5])
    calendar.tick(TICK)
    calendar.in_source(*TWENTY[:5])
    assert calendar.tick(TICK).members_returned == 5
    calendar.gone(*TWENTY[:5])
    assert calendar.tick(TICK).members_removed == 5
    calendar.gone(*TWENTY[:10])
    assert calendar.tick(DAY + TICK).members_removed == 5


def test_t6_the_guard_counts_from_the_last_approval_of_removals(held: Calendar) -> None:
    held.approve()
    assert held.tick(TICK).members_removed == 6
    assert held.batch().removals_approved_at == held.clock.now()
    held.gone(TEN[6])
    assert held.tick(TICK).members_removed == 1
    held.gone(TEN[7])
    assert held.tick(TICK).members_removed == 1
    held.gone(TEN[8])
    assert held.tick(TICK).batches_held == 1


def test_t6_moves_do_not_count_for_the_guard(calendar: Calendar) -> None:
    calendar.in_source(*TWENTY)
    calendar.tick()
    calendar.in_source(*TWENTY[:8], at=calendar.start + WEEK)
    assert calendar.tick(TICK).members_moved == 8
    calendar.gone(*TWENTY[8:13])
    assert calendar.tick(TICK).members_removed == 5


def test_t6_a_hold_ends_under_a_version_whose_members_start_at_once(held: Calendar) -> None:
    held.publish(immediate())
    assert held.tick(TICK).batches_held == 0
    assert held.batch().is_held
    held.approve()
    tally = held.tick(TICK)
    assert (tally.members_removed, held.batch().held_at) == (6, None)


def test_t6_approved_removals_leave_and_the_batch_goes_on(held: Calendar) -> None:
    held.approve()
    tally = held.tick(TICK)
    assert (tally.members_removed, held.batch().held_at, held.batch().hold_key) == (6, None, None)
    assert held.messages() == [f"member-removed-{held.member(key).id}-1" for key in TEN[:6]]
    assert [held.members()[key] for key in TEN] == ["removed"] * 6 + ["active"] * 4
    assert held.sql("SELECT opened_by FROM gates") == [("ann",)]
    assert held.tick(TICK).members_removed == 0


def test_t6_approved_removals_leave_after_t_too(held: Calendar) -> None:
    held.tick(WEEK * 2)
    held.approve()
    tally = held.tick(TICK)
    assert (tally.members_removed, tally.phases_dispatched) == (6, 3)


def test_t6_an_approval_counts_for_exactly_what_was_shown(held: Calendar) -> None:
    held.approve()
    held.gone(TEN[6])
    tally = held.tick(TICK)
    batch = held.batch()
    assert (tally.members_removed, tally.batches_held, batch.approved_hold_key) == (0, 1, None)
    assert batch.hold_reason == "the source no longer returns 7 of its 10 members"
    assert batch.hold_count == 1
    held.in_source(TEN[6])
    held.tick(TICK)
    assert held.batch().approved_hold_key is None
    assert set(held.members().values()) == {"active"}


def test_t6_when_the_source_returns_everybody_again_the_hold_ends(held: Calendar) -> None:
    held.in_source(*TEN)
    held.tick(TICK)
    assert held.batch().held_at is None
    assert set(held.members().values()) == {"active"}
    assert held.messages() == []
    held.gone(*TEN[:6])
    held.tick(TICK)
    assert (held.batch().hold_count, held.batch().approved_hold_key) == (2, None)


def test_t6_release_wakes_the_phases_and_members_that_wait(calendar: Calendar) -> None:
    calendar.in_source(*TEN)
    calendar.tick(timedelta(days=4))
    calendar.in_source("late")
    calendar.tick(TICK)
    calendar.gone(*TEN[:6])
    calendar.tick(TICK)
    phase, late = calendar.phase_rows()[0], calendar.member("late")
    calendar.messages()
    calendar.in_source(*TEN)
    calendar.tick(TICK)
    assert calendar.messages() == [f"phase-due-{phase.id}-1-r1", f"member-added-{late.id}-1-r1"]


def test_t6_while_held_nobody_joins_returns_moves_or_is_refreshed(calendar: Calendar) -> None:
    calendar.in_source(*TEN, "back")
    calendar.tick()
    calendar.gone("back")
    calendar.tick(TICK)
    calendar.gone(*TEN[:6])
    calendar.tick(TICK)
    before = calendar.member_rows(calendar.batch().id)
    calendar.messages()
    calendar.in_source("new", "back")
    calendar.in_source(TEN[6], city="Rome")
    calendar.in_source(TEN[7], at=calendar.start + DAY)
    tally = calendar.tick(TICK)
    assert {remark.seen: list(remark.samples) for remark in tally.remarks} == {Seen.BATCH_IS_HELD: ["new", "back"]}
    assert calendar.member_rows(calendar.batch().id) == before
    assert calendar.messages() == []
    assert len(calendar.batches()) == 1


def test_t6_whoever_is_given_the_time_of_a_held_batch_leaves_the_old_wave_and_joins_after_the_hold(
    held: Calendar,
) -> None:
    earlier = held.start - DAY
    held.in_source("Ada", "Bob", at=earlier)
    held.tick(TICK)
    held.in_source("Bob")
    tally = held.tick(TICK)
    bob = held.member("Bob", earlier)
    assert (tally.members_moved, bob.status, bob.remove_reason) == (1, "removed", "moved")
    assert "Bob" not in held.members()
    assert held.messages() == [f"member-removed-{bob.id}-1"]
    assert held.tick(TICK).members_moved == 0
    held.approve()
    assert held.tick(TICK).members_added == 1
    assert held.members()["Bob"] == "active"


def test_t6_a_batch_that_is_called_off_is_held_whatever_its_size(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.in_source("Bob", at=calendar.start + DAY)
    calendar.tick()
    calendar.gone("Ada")
    calendar.tick(TICK)
    assert calendar.batch().hold_reason == "the source no longer returns the batch, which has 1 members"
    assert orjson.loads(calendar.batch().hold_json or "")["kind"] == "called_off"
    assert calendar.batch(calendar.start + DAY).held_at is None


def test_t6_a_broken_view_holds_every_batch_ahead_and_removes_nobody(calendar: Calendar) -> None:
    starts = [calendar.start + WEEK * number for number in range(3)]
    for number, start in enumerate(starts):
        calendar.in_source(f"a{number}", f"b{number}", at=start)
    calendar.tick()
    everybody = list(calendar.people.rows)
    calendar.people.rows = []
    tally = calendar.tick(TICK)
    assert (tally.batches_held, tally.members_removed) == (3, 0)
    calendar.people.rows = everybody
    calendar.tick(TICK)
    assert {batch.held_at for batch in calendar.batches()} == {None}
    assert calendar.messages() == []


def test_t6_a_batch_at_most_a_tick_ahead_that_is_not_returned_keeps_its_members_and_cuts_over(
    calendar: Calendar,
) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.people.rows = []
    calendar.tick(timedelta(days=10) - TICK)
    assert (calendar.batch().held_at, set(calendar.members().values())) == (None, {"active"})
    assert calendar.tick(TICK).phases_dispatched == 1
    assert calendar.member("Ada").left_source_at == calendar.clock.now()


def test_t6_a_held_reschedule_is_applied_when_it_is_approved(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    sooner = calendar.start - timedelta(days=4)
    calendar.in_source("Ada", at=sooner)
    assert calendar.tick(TICK).batches_held == 1
    shown = orjson.loads(calendar.batch().hold_json or "")
    assert (shown["kind"], shown["start"]) == ("reschedule", sooner.isoformat())
    calendar.approve()
    tally = calendar.tick(TICK)
    assert (tally.batches_rescheduled, tally.phases_dispatched) == (1, 1)
    assert calendar.batch(sooner).held_at is None
    assert [phase.due_at for phase in calendar.phase_rows(sooner)][1:] == [sooner - timedelta(hours=1), sooner]


def test_t6_batches_that_trade_their_times_are_held_and_do_so_when_both_are_approved(calendar: Calendar) -> None:
    later = calendar.start + WEEK
    calendar.in_source("Ada")
    calendar.in_source("Bob", at=later)
    calendar.tick()
    first, second = calendar.batches()
    calendar.in_source("Ada", at=later)
    calendar.in_source("Bob")
    assert calendar.tick(TICK).batches_held == 2
    calendar.approve()
    assert calendar.tick(TICK).batches_rescheduled == 0
    calendar.approve(later)
    assert calendar.tick(TICK).batches_rescheduled == 2
    assert (calendar.batch(later).id, calendar.batch().id) == (first.id, second.id)
    assert calendar.members() == {"Bob": "active"}


def test_t6_a_batch_held_for_its_init_ignores_the_source(calendar: Calendar) -> None:
    calendar.in_source(*TEN)
    calendar.tick()
    held_for_init(calendar, calendar.batch().id)
    before = calendar.batch()
    calendar.gone(*TEN[:8])
    calendar.in_source(TEN[9], at=calendar.start + DAY)
    calendar.in_source("new")
    calendar.tick(TICK)
    assert calendar.batch() == before
    assert set(calendar.members().values()) == {"active"}
    assert "new" not in calendar.members()


def test_t6_while_held_no_version_transition_is_made(held: Calendar) -> None:
    version = held.batch().runbook_id
    held.publish(runbook(description="second"))
    held.tick(TICK)
    assert held.batch().runbook_id == version
    held.tick(WEEK * 2)
    assert held.batch().runbook_id == version
    assert held.messages() == []


def test_t6_a_batch_whose_hold_ends_takes_the_new_version_before_anything_of_the_old_one_is_dispatched(
    held: Calendar,
) -> None:
    version = held.batch().runbook_id
    held.publish(runbook(description="second"))
    held.tick(WEEK * 2)
    held.approve()
    assert held.tick(TICK).phases_dispatched == 3
    assert held.batch().runbook_id != version
    states = {(phase.runbook_version, phase.status.value, phase.dispatch_count) for phase in held.phase_rows()}
    assert states == {(1, "superseded", 0), (2, "dispatched", 1)}


# What happens between looking and acting


def test_t6_an_approval_in_the_very_moment_of_the_tick_keeps_nothing_else_from_being_held(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = calendar.start + WEEK
    calendar.in_source(*TEN)
    calendar.in_source("Ada", at=later)
    calendar.tick()
    calendar.gone(*TEN[:6])
    calendar.tick(TICK)
    calendar.in_source(*TEN)
    calendar.gone("Ada")
    done: list[None] = []
    interrupted(monkeypatch, lambda: _approve_once(calendar, done))
    calendar.tick(TICK)
    assert calendar.batch().held_at is None
    assert calendar.batch(later).held_at is not None


def _approve_once(calendar: Calendar, done: list[None]) -> None:
    if not done:
        done.append(None)
        calendar.approve()


def interrupted(monkeypatch: pytest.MonkeyPatch, interruption: Callable[[], object]) -> None:
    """Let something happen after a tick has decided and before it acts."""

    def decide_and_pause(snapshot: Snapshot) -> Changes:
        changes = decide(snapshot)
        interruption()
        return changes

    monkeypatch.setattr(enrolling, "decide", decide_and_pause)


def held_for_init(calendar: Calendar, batch_id: int) -> None:
    with calendar.store.transaction() as tx:
        hold_batches(tx, [Hold(batch_id, GateKind.INIT, "init failed", "k", '{"kind": "init"}')], calendar.clock.now())


@pytest.mark.parametrize("what", ["ends", "is held for its init"])
def test_t5_a_batch_that_changes_in_the_very_moment_of_the_tick_is_left_alone(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    later = calendar.start + DAY
    calendar.in_source("Ada", "Bob", "Cid")
    calendar.in_source("Dan", at=later)
    calendar.tick()
    calendar.in_source("Bob", at=later)
    calendar.gone("Cid")
    calendar.messages()
    number = calendar.batch().id
    change = {
        "ends": lambda: calendar.change(
            f"UPDATE batches SET status = 'completed', completed_at = detected_at WHERE id = {number}"
        ),
        "is held for its init": lambda: held_for_init(calendar, number),
    }[what]
    interrupted(monkeypatch, change)
    tally = calendar.tick(TICK)
    assert calendar.members() == {"Ada": "active", "Bob": "active", "Cid": "active"}
    assert calendar.members(later) == {"Dan": "active"}
    assert {remark.seen: list(remark.samples) for remark in tally.remarks} == {Seen.BATCH_CHANGED: ["bob"]}
    assert calendar.messages() == []


@pytest.mark.parametrize("has_history", [True, False])
def test_t5_whom_a_person_takes_in_the_very_moment_of_the_tick_is_in_one_batch(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch, has_history: bool
) -> None:
    if has_history:
        calendar.in_source("Dan")
        calendar.tick()
    calendar.in_source("Ada", "Bob")
    interrupted(monkeypatch, lambda: create_manual_batch(calendar.store, "wave", [{"id": "ADA"}], by="anna"))
    tally = calendar.tick(TICK)
    assert set(calendar.members()) == {"Bob"} | ({"Dan"} if has_history else set())
    assert {remark.seen: list(remark.samples) for remark in tally.remarks} == {Seen.BATCH_CHANGED: ["ada"]}


def test_t6_a_hold_does_not_replace_the_one_that_init_has_just_made(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar.in_source(*TEN)
    calendar.tick()
    calendar.gone(*TEN[:6])
    interrupted(monkeypatch, lambda: held_for_init(calendar, calendar.batch().id))
    assert calendar.tick(TICK).batches_held == 0
    assert calendar.batch().hold_key == "k"


def test_t6_batches_are_held_even_if_other_changes_cannot_be_made(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.gone("Ada")
    calendar.in_source("Bob", at=calendar.start + DAY)

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(enrolling.Enrolling, "_apply", broken)
    tally = calendar.tick(timedelta(days=4))
    assert (tally.error or "").startswith("RuntimeError")
    assert calendar.batch().held_at is not None
    assert tally.phases_dispatched == 0
