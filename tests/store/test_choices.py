"""Which rows a question finds: for each of its conditions there is a row for which only that one does not hold."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from matoolkit.domain.gates import GateKind
from matoolkit.domain.states import MOVED, MemberStatus
from matoolkit.store import Store
from matoolkit.store.batches import (
    BatchFilter,
    batches_at,
    batches_page,
    count_batches,
    has_batches,
    has_manual_batches,
    held_batches,
)
from matoolkit.store.enrolments import (
    count_members,
    first_phases_of_active,
    latest_enrolments,
    member_fingerprints,
    members_page,
    members_waiting_to_catch_up,
    places_before,
    places_of_keys,
    taken_keys,
)
from matoolkit.store.exclusions import (
    Exclusion,
    count_exclusions,
    end_exclusion,
    exclude,
    excluded_keys,
    exclusion_of,
    exclusions_page,
)
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.inclusions import Inclusion, include, note_let_in, waiting_inclusions
from matoolkit.store.members import follow_new_starts, members_by_id
from matoolkit.store.narrow_members import (
    active_members,
    caught_up_members,
    members_to_catch_up,
    members_to_see_off,
    members_with_keys,
)
from matoolkit.store.people import enrolments_of_key
from matoolkit.store.phases import batches_without_open_phases, due_phases, phases_without_open_steps
from matoolkit.store.schema import (
    batch_members,
    batches,
    member_inclusions,
    phase_executions,
    rollback_executions,
    step_executions,
)
from matoolkit.store.undoing import known_places
from tests.databases import NOON
from tests.store.world import World, put

EARLIER, LATER = NOON - timedelta(days=1), NOON + timedelta(days=1)
SEEN_OFF = {"status": "removed", "remove_reason": "gone", "removed_at": NOON, "seen_off_at": NOON}


def test_t8_a_phase_is_due_at_its_time_in_an_active_batch_that_is_not_held(store: Store, world: World) -> None:
    batch = world.batch()
    due, also_due, begun, later = (world.phase(batch, index) for index in range(4))
    sleeping, held, other = (
        world.another(batch),
        world.another(batch),
        world.batch(world.runbook("other")),
    )
    world.phase(sleeping), world.phase(held)
    elsewhere = world.phase(other)
    with store.transaction() as tx:
        put(tx, phase_executions, begun.id, status="dispatched")
        put(tx, phase_executions, later.id, due_at=LATER)
        put(tx, batches, sleeping.id, status="init_dispatched")
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "why", "key", "{}")], NOON)
        assert [phase.id for phase in due_phases(tx, NOON)] == [due.id, also_due.id, elsewhere.id]
        assert [phase.id for phase in due_phases(tx, NOON, runbook_name="other")] == [elsewhere.id]
        assert [phase.id for phase in due_phases(tx, NOON, limit=1)] == [due.id]


def test_t4_a_batch_is_found_by_its_runbook_its_time_and_who_made_it(store: Store, world: World) -> None:
    runbook, unused = world.runbook(), world.runbook("unused")
    batch, held = world.batch(runbook, start=NOON), world.batch(runbook, start=LATER)
    other = world.batch(world.runbook("other"), start=NOON)
    manual = world.batch(runbook, manual=True)
    with store.transaction() as tx:
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "why", "key", "{}")], NOON)
        put(tx, batches, manual.id, batch_start_time=NOON)
        assert [found.id for found in batches_at(tx, "wave", [NOON])] == [batch.id]
        assert [has_batches(tx, name) for name in ("wave", "other", unused.name)] == [True, True, False]
        assert [has_manual_batches(tx, name) for name in ("wave", "other")] == [True, False]
        for is_held, found in ((None, [batch, held, manual]), (True, [held]), (False, [batch, manual])):
            wanted = BatchFilter(runbook_name="wave", is_held=is_held)
            assert [one.id for one in batches_page(tx, wanted)] == [one.id for one in reversed(found)]
            assert count_batches(tx, wanted) == len(found)
        hold_batches(tx, [Hold(other.id, GateKind.REMOVALS, "why", "key", "{}")], NOON)
        assert [found.id for found in held_batches(tx, BatchFilter(runbook_name="wave"))] == [held.id]


def test_o11_a_phase_has_ended_when_it_has_its_steps_and_none_of_them_is_open(store: Store, world: World) -> None:
    batch = world.batch()
    done, also_done, pending, unexpanded, busy = (world.phase(batch, index) for index in range(5))
    members = world.members(batch, 1)
    (ended,) = world.steps(batch, done, members)
    world.steps(batch, busy, members)
    with store.transaction() as tx:
        put(tx, step_executions, ended, status="succeeded")
        for phase in (done, also_done, pending, unexpanded, busy):
            put(tx, phase_executions, phase.id, status="dispatched", expanded_at=NOON)
        put(tx, phase_executions, pending.id, status="pending")
        put(tx, phase_executions, unexpanded.id, expanded_at=None)
        assert [phase.id for phase in phases_without_open_steps(tx)] == [done.id, also_done.id]
        assert [phase.id for phase in phases_without_open_steps(tx, [also_done.id, busy.id])] == [also_done.id]
        assert [phase.id for phase in phases_without_open_steps(tx, limit=1)] == [done.id]


def test_o11_a_batch_has_ended_when_nothing_of_it_is_open_and_nobody_waits(store: Store, world: World) -> None:
    done = world.batch()
    also_done, ended, open_phase, waiting, leaving, undoing = (world.another(done) for _ in range(6))
    phase = world.phase(done)
    world.phase(open_phase)
    _, gone, moved = world.members(done, 3)
    (failed,) = world.members(done, 1, waiting=True, prefix="failed")
    world.members(waiting, 1, waiting=True)
    (leaver,) = world.members(leaving, 1)
    with store.transaction() as tx:
        put(tx, batches, ended.id, status="completed")
        put(tx, phase_executions, phase.id, status="completed")
        put(tx, batch_members, gone, **SEEN_OFF)
        put(tx, batch_members, moved, **{**SEEN_OFF, "remove_reason": MOVED, "seen_off_at": None})
        put(tx, batch_members, failed, status="failed")
        put(tx, batch_members, leaver, **{**SEEN_OFF, "seen_off_at": None})
        undone = world.rollback(tx, done, gone, "a")
        put(tx, rollback_executions, undone, status="succeeded")
        world.rollback(tx, undoing, None, "b")
        assert batches_without_open_phases(tx) == [done.id, also_done.id]
        assert batches_without_open_phases(tx, [also_done.id, leaving.id]) == [also_done.id]
        assert batches_without_open_phases(tx, limit=1) == [done.id]


def test_t5_somebody_is_taken_while_under_way_or_while_something_still_runs(store: Store, world: World) -> None:
    batch = world.batch()
    ended, other = world.another(batch), world.batch(world.runbook("other"))
    names = ["active", "moved", "seen-off", "leaving", "out", "undoing", "undo-out", "undone", "failed"]
    ids = {name: world.members(batch, 1, prefix=name)[0] for name in names}
    world.members(ended, 1, prefix="done"), world.members(other, 1, prefix="elsewhere")
    step, other_step = world.steps(batch, world.phase(batch), [ids["out"], ids["seen-off"]])
    with store.transaction() as tx:
        put(tx, batches, ended.id, status="completed")
        for name in names[1:-1]:
            put(tx, batch_members, ids[name], **SEEN_OFF)
        put(tx, batch_members, ids["moved"], remove_reason=MOVED, seen_off_at=None)
        put(tx, batch_members, ids["leaving"], seen_off_at=None)
        put(tx, batch_members, ids["failed"], status="failed", remove_reason="before", seen_off_at=None)
        put(tx, step_executions, step, lost_at=LATER)
        put(tx, step_executions, other_step, lost_at=None)
        world.rollback(tx, batch, ids["undoing"], "a")
        for name in ("undo-out", "undone"):
            undo = world.rollback(tx, batch, ids[name], name)
            put(tx, rollback_executions, undo, status="cancelled", lost_at=LATER if name == "undo-out" else None)
        keys = [f"{name}0" for name in (*names, "done", "elsewhere")]
        busy = {"leaving0", "out0", "undoing0", "undo-out0"}
        assert taken_keys(tx, "wave", keys) == busy | {"active0"}
        assert taken_keys(tx, "wave", ["active0", "moved0"]) == {"active0"}
        assert taken_keys(tx, "wave", keys, besides=batch.id) == set()
        places = places_of_keys(tx, "wave", keys)
        assert {place.member_key_fold for place in places if place.is_busy} == busy
        assert [place.member_key_fold for place in places if place.is_under_way] == ["active0"]
        assert {place.member_key_fold for place in places} == set(keys) - {"elsewhere0"}
        assert [place.id for place in places_of_keys(tx, "wave", ["out0"])] == [ids["out"]]


def test_t5_who_is_done_or_has_failed_was_taken_before(store: Store, world: World) -> None:
    batch = world.batch()
    ended, other = world.another(batch), world.batch(world.runbook("other"))
    (failed,) = world.members(batch, 1, prefix="failed")
    (gone,) = world.members(ended, 1, prefix="gone")
    (elsewhere,) = world.members(other, 1, prefix="elsewhere")
    world.members(batch, 1, prefix="active"), world.members(ended, 1, prefix="done")
    with store.transaction() as tx:
        put(tx, batches, ended.id, status="completed")
        for member in (failed, elsewhere):
            put(tx, batch_members, member, status="failed")
        put(tx, batch_members, gone, **SEEN_OFF)
        keys = ["failed0", "gone0", "elsewhere0", "active0", "done0"]
        assert sorted(place.member_key_fold for place in places_before(tx, "wave", keys)) == ["done0", "failed0"]
        assert [place.member_key_fold for place in places_before(tx, "wave", ["done0"])] == ["done0"]


def test_t5_active_members_of_rescheduled_batches_follow_their_new_time(store: Store, world: World) -> None:
    batch = world.batch()
    rescheduled = world.another(batch)
    (elsewhere,), (active, failed) = world.members(batch, 1), world.members(rescheduled, 2)
    with store.transaction() as tx:
        put(tx, batch_members, failed, status="failed")
        follow_new_starts(tx, [rescheduled.id])
        times = tx.rows(lambda *row: row, select(batch_members.c.id, batch_members.c.source_time))
        assert dict(times) == {elsewhere: None, active: rescheduled.batch_start_time, failed: None}


def test_t5_an_inclusion_waits_until_its_member_is_let_in(store: Store) -> None:
    with store.transaction() as tx:
        for runbook, key, at in (("wave", "Anna", NOON), ("wave", "carl", NOON), ("other", "anna", NOON)):
            include(tx, Inclusion(runbook, key, at, NOON, "ben"))
        include(tx, Inclusion("wave", "ANNA", LATER, NOON, "ben"))
        assert waiting_inclusions(tx, "wave") == {"anna": LATER, "carl": NOON}
        assert waiting_inclusions(tx, "other") == {"anna": NOON}
        note_let_in(tx, "wave", ["anna"], NOON)
        assert (waiting_inclusions(tx, "wave"), waiting_inclusions(tx, "other")) == ({"carl": NOON}, {"anna": NOON})
        note_let_in(tx, "wave", ["anna", "carl"], LATER)
        columns = (member_inclusions.c.member_key_fold, member_inclusions.c.applied_at)
        applied = tx.rows(lambda *row: row, select(*columns).where(member_inclusions.c.runbook_key == "wave"))
        assert dict(applied) == {"anna": NOON, "carl": LATER}, "she was let in before"


def test_u3_an_exclusion_counts_for_one_runbook_until_it_is_ended(store: Store) -> None:
    with store.transaction() as tx:
        for runbook, key in (("wave", "Anna"), ("wave", "carl"), ("other", "anna")):
            exclude(tx, Exclusion(runbook, key, NOON, "ben", "why"))
        assert (excluded_keys(tx, "WAVE"), excluded_keys(tx, "other")) == ({"anna", "carl"}, {"anna"})
        assert end_exclusion(tx, "wave", "anna", LATER)
        assert not end_exclusion(tx, "wave", "anna", LATER)
        assert (excluded_keys(tx, "wave"), excluded_keys(tx, "other")) == ({"carl"}, {"anna"})
        assert exclusion_of(tx, "wave", "anna") is None
        exclude(tx, Exclusion("wave", "ANNA", LATER, "eve", "again"))
        assert exclusion_of(tx, "wave", "anna") == Exclusion("wave", "ANNA", LATER, "eve", "again")
        assert count_exclusions(tx, "wave") == 2
        first, second = exclusions_page(tx, "wave")
        assert exclusions_page(tx, "wave", after=first.id) == [second]
        assert exclusions_page(tx, "wave", limit=1) == [first]


def test_u2_somebody_is_done_where_its_batch_has_completed(store: Store, world: World) -> None:
    batch = world.batch()
    ended, cancelled = world.another(batch), world.another(batch)
    world.members(batch, 1)
    (done,), _ = world.members(ended, 1), world.members(cancelled, 1)
    with store.transaction() as tx:
        put(tx, batches, ended.id, status="completed")
        put(tx, batches, cancelled.id, status="cancelled")
        fold = members_by_id(tx, [done])[0].member_key_fold
        places = known_places(tx, "wave", [fold])[fold]
        assert [place.is_done for place in sorted(places, key=lambda place: place.id)] == [False, True, False]
        assert known_places(tx, "other", [fold]) == {}


def test_t4_only_rows_of_members_under_way_in_that_runbook_are_known(store: Store, world: World) -> None:
    batch = world.batch()
    ended, other = world.another(batch), world.batch(world.runbook("other"))
    _, gone = world.members(batch, 2)
    (done,), (elsewhere,) = world.members(ended, 1), world.members(other, 1)
    with store.transaction() as tx:
        put(tx, batches, ended.id, status="completed")
        put(tx, batch_members, gone, status="removed")
        put(tx, batch_members, done, data_hash="d" * 32)
        put(tx, batch_members, elsewhere, data_hash="e" * 32)
        assert member_fingerprints(tx, "wave") == {bytes(16)}


def test_t8_only_active_members_of_a_batch_say_with_which_phase_it_begins(store: Store, world: World) -> None:
    batch = world.batch()
    other = world.another(batch)
    (active, failed), (elsewhere,) = world.members(batch, 2), world.members(other, 1)
    with store.transaction() as tx:
        for place, member in enumerate((active, failed, elsewhere)):
            put(tx, batch_members, member, first_phase_version=1, first_phase_place=place)
        put(tx, batch_members, failed, status="failed")
        ((number, phases),) = first_phases_of_active(tx, [batch.id]).items()
        assert (number, len(phases)) == (batch.id, 1)


def test_t7_a_place_is_looked_up_by_its_key_in_one_runbook_or_in_all(store: Store, world: World) -> None:
    batch, other = world.batch(), world.batch(world.runbook("other"))
    world.members(batch, 2), world.members(other, 1)
    with store.reading() as tx:
        assert [found.batch_id for found in latest_enrolments(tx, "wave", ["user0"])] == [batch.id]
        assert [found.batch_id for found in enrolments_of_key(tx, "user0")] == [other.id, batch.id]
        assert [found.batch_id for found in enrolments_of_key(tx, "user0", limit=1)] == [other.id]


def test_members_of_a_batch_are_found_by_status_and_by_a_part_of_their_key(store: Store, world: World) -> None:
    batch = world.batch()
    ids = [world.members(batch, 1, prefix=prefix)[0] for prefix in ("a%b", "axb", "other")]
    world.members(world.another(batch), 1, prefix="a%b")
    with store.transaction() as tx:
        put(tx, batch_members, ids[1], status="failed")
        for status, part, found in (
            (None, None, ids),
            (MemberStatus.FAILED, None, [ids[1]]),
            (None, "A%", [ids[0]]),
        ):
            assert [one.id for one in members_page(tx, batch.id, status=status, key_part=part)] == found
            assert count_members(tx, batch.id, status=status, key_part=part) == len(found)


def test_o10_who_waits_to_catch_up_is_active_and_in_an_active_batch_that_is_not_held(
    store: Store, world: World
) -> None:
    batch = world.batch()
    sleeping, held, other = (world.another(batch) for _ in range(3))
    (ready, also_ready, gone), (done,) = world.members(batch, 3, waiting=True), world.members(batch, 1, prefix="done")
    asleep, on_hold, elsewhere = (world.members(one, 1, waiting=True)[0] for one in (sleeping, held, other))
    with store.transaction() as tx:
        put(tx, batch_members, gone, status="removed")
        put(tx, batches, sleeping.id, status="detected")
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "why", "key", "{}")], NOON)
        assert [member.id for member in members_to_catch_up(tx)] == [ready, also_ready, elsewhere]
        assert [member.id for member in members_to_catch_up(tx, after=ready, limit=1)] == [also_ready]
        of_two = members_waiting_to_catch_up(tx, [batch.id, held.id])
        assert [member.id for member in of_two] == [ready, also_ready, on_hold]
        assert asleep not in {member.id for member in of_two}
        assert caught_up_members(tx, batch.id, after=0, limit=9) == [done]
        assert [member.id for member in active_members(tx, batch.id)] == [ready, also_ready, done]


def test_o2_a_phase_is_given_to_the_active_members_of_its_batch_slice_by_slice(store: Store, world: World) -> None:
    batch = world.batch()
    first, second, failed = world.members(batch, 3)
    world.members(world.another(batch), 1)
    with store.transaction() as tx:
        put(tx, batch_members, failed, status="failed")
        assert caught_up_members(tx, batch.id, after=0, limit=9) == [first, second]
        assert caught_up_members(tx, batch.id, after=0, limit=1) == [first]
        assert caught_up_members(tx, batch.id, after=first, limit=9) == [second]
        assert [member.id for member in members_with_keys(tx, batch.id, ["user1", "user2"])] == [second, failed]


def test_o16_who_left_long_ago_and_was_not_seen_off_is_found_again(store: Store, world: World) -> None:
    batch = world.batch()
    lost, also_lost, seen_off, moved, lately, returned = world.members(batch, 6)
    gone = {**SEEN_OFF, "removed_at": EARLIER, "seen_off_at": None}
    with store.transaction() as tx:
        for member in (lost, also_lost, seen_off, moved, lately, returned):
            put(tx, batch_members, member, **gone)
        put(tx, batch_members, seen_off, seen_off_at=NOON)
        put(tx, batch_members, moved, remove_reason=MOVED)
        put(tx, batch_members, lately, removed_at=NOON)
        put(tx, batch_members, returned, status="active")
        assert [member.id for member in members_to_see_off(tx, EARLIER)] == [lost, also_lost]
        assert [member.id for member in members_to_see_off(tx, EARLIER, limit=1)] == [lost]
        assert [member.id for member in members_to_see_off(tx, EARLIER, after=lost)] == [also_lost]


@pytest.mark.parametrize("status", ["detected", "init_dispatched", "active"])
def test_t5_a_member_of_any_unfinished_batch_is_under_way(store: Store, world: World, status: str) -> None:
    batch = world.batch()
    world.members(batch, 1)
    with store.transaction() as tx:
        put(tx, batches, batch.id, status=status)
        assert taken_keys(tx, "wave", ["user0"]) == {"user0"}
