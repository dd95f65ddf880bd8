from datetime import timedelta

import pytest

from matoolkit.domain.gates import GateKind
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.states import BatchStatus, OverdueBehavior, PhaseStatus
from matoolkit.errors import RowConflict
from matoolkit.store import Store
from matoolkit.store.batches import (
    BatchFilter,
    NewBatch,
    Reschedule,
    activate_batches,
    advance_to_phase,
    batches_at,
    batches_by_id,
    batches_page,
    cancel_batches,
    count_batches,
    dispatch_init,
    follow_version,
    insert_batches,
    lock_batches,
    move_batches,
    reopen_batches,
    reschedule_batches,
    unfinished_batches,
)
from matoolkit.store.counts import batch_counts
from matoolkit.store.holds import Hold, approve_hold, hold_batches, release_batches
from matoolkit.store.phases import (
    NewDueTime,
    NewPhase,
    batches_without_open_phases,
    cancel_phases,
    dispatch_phases,
    due_phases,
    insert_phases,
    move_phases,
    note_expanded,
    phases_by_id,
    phases_of_batches,
    phases_without_open_steps,
    reopen_phases,
    reschedule_phases,
    skip_phases,
    supersede_phases,
)
from matoolkit.store.runbooks import NewVersion, publish_version
from tests.store.world import World

pytestmark = pytest.mark.both_executions


def test_a_batch_is_stored_as_it_was_given(store: Store, world: World) -> None:
    runbook = world.runbook()
    new = NewBatch(runbook.id, "wave", world.now + timedelta(days=3), BatchStatus.DETECTED)
    with store.transaction() as tx:
        (batch,) = insert_batches(tx, [new], world.now)
    assert (batch.runbook_id, batch.batch_start_time, batch.status) == (
        runbook.id,
        new.batch_start_time,
        BatchStatus.DETECTED,
    )
    assert batch.detected_at == world.now
    assert not batch.is_held


def test_d1_two_automated_batches_cannot_share_a_start_time_but_manual_ones_have_none(
    store: Store, world: World
) -> None:
    runbook = world.runbook()
    world.batch(runbook, start=world.now)
    world.batch(runbook, manual=True)
    world.batch(runbook, manual=True)
    with pytest.raises(RowConflict):
        world.batch(runbook, start=world.now)


def test_m5_batches_are_locked_in_the_order_of_their_ids(store: Store, world: World) -> None:
    runbook = world.runbook()
    ids = [world.batch(runbook, start=world.now + timedelta(days=day)).id for day in range(5)]
    with store.transaction() as tx:
        assert [batch.id for batch in lock_batches(tx, [ids[3], ids[0], ids[4]])] == [ids[0], ids[3], ids[4]]


def test_m3_a_move_changes_only_what_its_guard_allows_and_says_which(store: Store, world: World) -> None:
    runbook = world.runbook()
    statuses = list(BatchStatus)
    ids = [world.batch(runbook, status, world.now + timedelta(days=day)).id for day, status in enumerate(statuses)]
    by_status = dict(zip(statuses, ids, strict=True))
    with store.transaction() as tx:
        assert move_batches(tx, batch_moves.COMPLETE, ids, world.now) == [by_status[BatchStatus.ACTIVE]]
        assert move_batches(tx, batch_moves.COMPLETE, ids, world.now) == []
        assert activate_batches(tx, ids) == [
            by_status[BatchStatus.DETECTED],
            by_status[BatchStatus.INIT_DISPATCHED],
        ]
        assert cancel_batches(tx, ids, world.now) == sorted(
            [by_status[BatchStatus.DETECTED], by_status[BatchStatus.INIT_DISPATCHED]]
        )
        assert move_batches(tx, batch_moves.FAIL, ids, world.now) == []
        assert reopen_batches(tx, ids, world.now) == sorted(
            [by_status[BatchStatus.ACTIVE], by_status[BatchStatus.COMPLETED], by_status[BatchStatus.FAILED]]
        )
        assert all(batch.reopened_at for batch in batches_by_id(tx, [by_status[BatchStatus.FAILED]]))


def test_m2_init_counts_how_often_it_was_requested(store: Store, world: World) -> None:
    batch = world.batch(status=BatchStatus.DETECTED)
    with store.transaction() as tx:
        assert dispatch_init(tx, [batch.id], world.now) == [batch.id]
        assert dispatch_init(tx, [batch.id], world.now) == [batch.id]
        (now,) = batches_by_id(tx, [batch.id])
    assert (now.status, now.init_count) == (BatchStatus.INIT_DISPATCHED, 2)


def test_t5_a_whole_calendar_can_slip_a_week_and_two_batches_can_trade_places(store: Store, world: World) -> None:
    runbook, week = world.runbook(), timedelta(days=7)
    times = [world.now + week * number for number in range(4)]
    ids = [world.batch(runbook, start=time).id for time in times]
    with store.transaction() as tx:
        slipped = [Reschedule(number, time + week) for number, time in zip(ids, times, strict=True)]
        assert reschedule_batches(tx, slipped) == ids
        first, second = ids[:2]
        traded = [Reschedule(first, times[2]), Reschedule(second, times[1])]
        assert reschedule_batches(tx, traded) == ids[:2]
        starts = [batch.batch_start_time for batch in batches_by_id(tx, ids)]
        assert starts == [times[2], times[1], times[3], times[3] + week]


def test_t5_a_time_that_another_batch_keeps_is_refused(store: Store, world: World) -> None:
    runbook = world.runbook()
    first = world.batch(runbook, start=world.now)
    second = world.batch(runbook, start=world.now + timedelta(days=1))
    with pytest.raises(RowConflict), store.transaction() as tx:
        reschedule_batches(tx, [Reschedule(first.id, world.now + timedelta(days=1))])
    with store.reading() as tx:
        assert batches_by_id(tx, [first.id, second.id]) == [first, second]


def test_v2_a_batch_follows_only_versions_of_its_own_runbook(store: Store, world: World) -> None:
    batch = world.batch(world.runbook())
    stranger = world.runbook("other")
    newer = NewVersion("WAVE", "name: wave\n#2\n", "hash2", OverdueBehavior.IGNORE, True, "ben")
    with store.transaction() as tx:
        assert follow_version(tx, [batch.id], stranger.id) == []
        version = publish_version(tx, newer, world.now)
        assert (version.name, version.version) == ("wave", 2)
        assert follow_version(tx, [batch.id], version.id) == [batch.id]
        assert follow_version(tx, [batch.id], version.id) == []


def test_t6_a_hold_is_approved_only_for_what_was_shown(store: Store, world: World) -> None:
    batch = world.batch()
    with store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "12 of 40 would leave", "key-1", "{}")], world.now)
        world.clock.advance(timedelta(minutes=5))
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "13 of 40 would leave", "key-2", "{}")], world.now)
        assert approve_hold(tx, batch.id, "key-1", "anna", world.now) == []
        assert approve_hold(tx, batch.id, "key-2", "anna", world.now) == [batch.id]
        (held,) = batches_by_id(tx, [batch.id])
        assert held.is_held
        assert (held.hold_key, held.approved_hold_key, held.approved_hold_by) == ("key-2", "key-2", "anna")
        assert held.held_at == world.now - timedelta(minutes=5)
        same = Hold(batch.id, GateKind.REMOVALS, "13 of 40 would leave", "key-2", "{}")
        assert hold_batches(tx, [same], world.now) == []
        assert hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "14 of 40", "key-3", "{}")], world.now) == [batch.id]
        assert batches_by_id(tx, [batch.id])[0].approved_hold_key is None
        assert release_batches(tx, [batch.id], world.now) == [batch.id]
        assert release_batches(tx, [batch.id], world.now) == []


def test_only_a_manual_batch_is_advanced(store: Store, world: World) -> None:
    runbook = world.runbook()
    manual, automated = world.batch(runbook, manual=True), world.batch(runbook)
    with store.transaction() as tx:
        assert advance_to_phase(tx, manual.id, "prepare") == [manual.id]
        assert advance_to_phase(tx, automated.id, "prepare") == []


def test_batches_are_found_by_runbook_time_and_state(store: Store, world: World) -> None:
    runbook = world.runbook()
    ended = world.batch(runbook, BatchStatus.COMPLETED, world.now)
    running = world.batch(runbook, start=world.now + timedelta(days=1))
    other = world.batch(world.runbook("other"))
    with store.reading() as tx:
        assert unfinished_batches(tx, "wave") == [running]
        assert batches_at(tx, "wave", [world.now, world.now + timedelta(days=1)]) == [ended, running]
        assert batches_page(tx, BatchFilter(runbook_name="wave")) == [running, ended]
        assert batches_page(tx, before=other.id, limit=1) == [running]
        assert count_batches(tx, BatchFilter(runbook_name="wave")) == 2
        assert batches_page(tx, BatchFilter(status=BatchStatus.COMPLETED)) == [ended]
        assert [(count.runbook_name, count.status, count.count) for count in batch_counts(tx)] == [
            ("other", BatchStatus.ACTIVE, 1),
            ("wave", BatchStatus.ACTIVE, 1),
            ("wave", BatchStatus.COMPLETED, 1),
        ]


def test_t8_only_phases_of_active_batches_that_are_not_held_are_due(store: Store, world: World) -> None:
    runbook = world.runbook()
    active = world.batch(runbook, start=world.now)
    waiting = world.batch(runbook, BatchStatus.INIT_DISPATCHED, world.now + timedelta(days=1))
    held = world.batch(runbook, start=world.now + timedelta(days=2))
    later = world.phase(active, 1, world.now + timedelta(seconds=1))
    due = world.phase(active, 0, world.now)
    world.phase(waiting)
    world.phase(held)
    with store.transaction() as tx:
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "why", "key", "{}")], world.now)
        assert due_phases(tx, world.now) == [due]
        assert dispatch_phases(tx, [due.id, later.id], world.now) == sorted([due.id, later.id])
        assert dispatch_phases(tx, [due.id], world.now) == []
        assert due_phases(tx, world.now) == []


def test_m3_phases_move_only_as_they_may(store: Store, world: World) -> None:
    batch = world.batch()
    pending, dispatched, skipped, superseded, cancelled = (world.phase(batch, index).id for index in range(5))
    everything = [pending, dispatched, skipped, superseded, cancelled]
    with store.transaction() as tx:
        assert dispatch_phases(tx, [dispatched], world.now) == [dispatched]
        assert skip_phases(tx, [dispatched, skipped], world.now) == [skipped]
        assert supersede_phases(tx, [skipped, superseded], world.now) == [superseded]
        assert cancel_phases(tx, [superseded, cancelled], world.now) == [cancelled]
        assert note_expanded(tx, everything, world.now) == [dispatched]
        assert [phase.id for phase in phases_without_open_steps(tx)] == [dispatched]
        assert move_phases(tx, phase_moves.COMPLETE, everything, world.now) == [dispatched]
        assert move_phases(tx, phase_moves.FAIL, everything, world.now) == []
        assert batches_without_open_phases(tx) == []
        assert reopen_phases(tx, everything, world.now) == [dispatched, skipped]
        assert reschedule_phases(tx, [NewDueTime(number, world.now, None) for number in everything]) == [pending]
        assert {phase.id: phase.status for phase in phases_by_id(tx, everything)} == {
            pending: PhaseStatus.PENDING,
            dispatched: PhaseStatus.DISPATCHED,
            skipped: PhaseStatus.DISPATCHED,
            superseded: PhaseStatus.SUPERSEDED,
            cancelled: PhaseStatus.CANCELLED,
        }


def test_o16_a_batch_without_open_phases_is_found(store: Store, world: World) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    world.batch(world.runbook("ended"), BatchStatus.COMPLETED)
    with store.transaction() as tx:
        assert batches_without_open_phases(tx) == []
        skip_phases(tx, [phase.id], world.now)
        assert batches_without_open_phases(tx) == [batch.id]


def test_phases_are_created_once(store: Store, world: World) -> None:
    batch = world.batch()
    new = [NewPhase(batch.id, 1, f"phase-{index}", index, 60, None) for index in range(3)]
    with store.transaction() as tx:
        assert len(insert_phases(tx, new[:2])) == 2
        assert [phase.phase_index for phase in insert_phases(tx, new)] == [2]
        assert [phase.phase_index for phase in phases_of_batches(tx, [batch.id])] == [0, 1, 2]
