from datetime import timedelta

import pytest
from sqlalchemy import update

from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.errors import RowConflict, UnusableKey
from matoolkit.store import Store
from matoolkit.store.batches import move_batches
from matoolkit.store.counts import member_counts
from matoolkit.store.enrolments import (
    known_members,
    latest_enrolments,
    members_page,
    members_waiting_to_catch_up,
)
from matoolkit.store.members import (
    MemberAt,
    NewMember,
    Outputs,
    Refresh,
    Restart,
    Return,
    fail_members,
    insert_members,
    keep_outputs,
    members_by_id,
    note_add_dispatched,
    note_caught_up,
    note_in_source,
    note_left_source,
    note_remove_dispatched,
    note_seen_off,
    reactivate_members,
    refresh_members,
    remove_members,
    restart_members,
    return_members,
)
from matoolkit.store.narrow_members import active_members, members_to_see_off
from matoolkit.store.people import enrolments_of_key
from matoolkit.store.schema import batch_members
from tests.store.world import World

pytestmark = pytest.mark.both_executions

HOSTILE_KEYS = [
    "x'; DROP TABLE batches; --",
    "naïve 🧑‍💻",
    '"quoted"',
    "back\\slash",
    "percent % (s) :name",
    "ñ",
]


def test_new_members_get_ids_by_which_they_are_found_again(store: Store, world: World) -> None:
    batch = world.batch()
    new = [NewMember(batch.id, key, "{}", "hash") for key in HOSTILE_KEYS]
    with store.transaction() as tx:
        inserted = insert_members(tx, new, world.now)
        found = members_by_id(tx, [member.id for member in inserted])
    assert {member.member_key for member in found} == set(HOSTILE_KEYS)
    assert {member.member_key_fold for member in inserted} == {member.member_key_fold for member in found}
    assert {member.status for member in found} == {MemberStatus.ACTIVE}


def test_t3_keys_are_trimmed_and_the_first_spelling_is_kept(store: Store, world: World) -> None:
    batch = world.batch()
    with store.transaction() as tx:
        insert_members(tx, [NewMember(batch.id, "  Anna@Contoso.com ", "{}", "h")], world.now)
    with store.reading() as tx:
        (found,) = enrolments_of_key(tx, "ANNA@contoso.COM")
    assert found.member_key == "Anna@Contoso.com"
    with pytest.raises(RowConflict), store.transaction() as tx:
        insert_members(tx, [NewMember(batch.id, "anna@contoso.com", "{}", "h")], world.now)


@pytest.mark.parametrize("key", ["", "   ", "x" * 401, "😀" * 201, "nul\0", "half \ud83d"])
def test_t3_an_unusable_key_is_refused_and_nothing_is_stored(store: Store, world: World, key: str) -> None:
    batch = world.batch()
    new = [NewMember(batch.id, "good", "{}", "h"), NewMember(batch.id, key, "{}", "h")]
    with pytest.raises(UnusableKey), store.transaction() as tx:
        insert_members(tx, new, world.now)
    with store.reading() as tx:
        assert known_members(tx, [batch.id]) == []


def test_m3_only_active_members_are_refreshed_removed_or_failed(store: Store, world: World) -> None:
    batch = world.batch()
    active, removed, failed = world.members(batch, 3)
    everyone = [active, removed, failed]
    with store.transaction() as tx:
        assert remove_members(tx, [removed], "scheduler", "left the source", world.now) == [removed]
        assert fail_members(tx, [MemberAt(failed, 1), MemberAt(removed, 1)], world.now) == [failed]
        assert refresh_members(tx, [Refresh(number, '{"new": 1}', "new") for number in everyone]) == [active]
        assert note_left_source(tx, everyone, world.now) == [active]
        assert note_left_source(tx, everyone, world.now) == []
        assert note_in_source(tx, everyone) == [active]
        assert note_add_dispatched(tx, everyone, world.now) == [active]
        assert note_remove_dispatched(tx, everyone, world.now) == [removed]
        assert [member.id for member in active_members(tx, batch.id)] == [active]
        members = {member.id: member for member in members_by_id(tx, everyone)}
    assert members[removed].remove_reason == "left the source"
    assert members[removed].removed_by == "scheduler"
    assert members[active].data_hash == "new"
    assert members[failed].data_hash != "new"


def test_t5_a_removed_member_that_returns_begins_a_new_epoch_and_waits_to_catch_up(store: Store, world: World) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    with store.transaction() as tx:
        assert return_members(tx, [Return(member, "{}", "h")], world.now) == []
        remove_members(tx, [member], "scheduler", "left the source", world.now)
        assert return_members(tx, [Return(member, '{"again": 1}', "h2")], world.now) == [member]
        (back,) = members_by_id(tx, [member])
        assert (back.status, back.epoch, back.caught_up_at) == (MemberStatus.ACTIVE, 2, None)
        assert (back.data_hash, back.removed_at, back.remove_reason) == ("h2", None, None)
        assert [waiting.id for waiting in members_waiting_to_catch_up(tx, [batch.id])] == [member]
        assert note_caught_up(tx, [MemberAt(member, 1)], world.now) == [], "that was before it came back"
        assert note_caught_up(tx, [MemberAt(member, 2)], world.now) == [member]
        assert note_caught_up(tx, [MemberAt(member, 2)], world.now) == []
        assert members_waiting_to_catch_up(tx, [batch.id]) == []


def test_t5_a_member_that_leaves_again_has_to_be_seen_off_again(store: Store, world: World) -> None:
    (member,) = world.members(world.batch(), 1)
    with store.transaction() as tx:
        for epoch in (1, 2):
            remove_members(tx, [member], "scheduler", "left the source", world.now)
            assert [one.id for one in members_to_see_off(tx, world.now)] == [member]
            assert note_seen_off(tx, [MemberAt(member, epoch)], world.now) == [member]
            assert members_to_see_off(tx, world.now) == []
            return_members(tx, [Return(member, "{}", "h")], world.now)


def test_a_removal_forgets_that_the_member_was_seen_off_before(store: Store, world: World) -> None:
    # A process of a version without that column lets members return and leaves it set.
    (member,) = world.members(world.batch(), 1)
    with store.transaction() as tx:
        tx.execute(update(batch_members).values(seen_off_at=world.now))
        remove_members(tx, [member], "scheduler", "left the source", world.now)
        (gone,) = members_by_id(tx, [member])
        assert (gone.seen_off_at, gone.caught_up_at) == (None, None), "an earlier version looks at the second"


def test_o14_a_failed_member_goes_on_or_begins_again_without_its_outputs(store: Store, world: World) -> None:
    batch = world.batch()
    going_on, beginning, forgetting = members = world.members(batch, 3)
    with store.transaction() as tx:
        keep_outputs(tx, [Outputs(number, 1, '{"id": 7}') for number in members])
        fail_members(tx, [MemberAt(number, 1) for number in members], world.now)
        assert reactivate_members(tx, [going_on]) == [going_on]
        restarts = [Restart(going_on), Restart(beginning, 2, 1)]
        assert restart_members(tx, restarts, world.now, forget_outputs=False) == [beginning]
        assert restart_members(tx, [Restart(forgetting)], world.now, forget_outputs=True) == [forgetting]
        now = {member.id: member for member in members_by_id(tx, members)}
    assert [now[number].epoch for number in members] == [1, 2, 2]
    assert [now[number].worker_data_json for number in members] == ['{"id": 7}', '{"id": 7}', "{}"]
    assert (now[beginning].first_phase_version, now[beginning].first_phase_place) == (2, 1)
    with store.transaction() as tx:
        fail_members(tx, [MemberAt(beginning, 2)], world.now)
        restart_members(tx, [Restart(beginning)], world.now, forget_outputs=False)
        (again,) = members_by_id(tx, [beginning])
    assert (again.first_phase_version, again.first_phase_place) == (None, None), "it belongs to one epoch"


def test_t7_the_latest_place_of_a_key_is_found_whatever_became_of_its_batch(store: Store, world: World) -> None:
    runbook = world.runbook()
    first = world.batch(runbook, start=world.now)
    world.members(first, 2)
    with store.transaction() as tx:
        move_batches(tx, batch_moves.COMPLETE, [first.id], world.now)
    second = world.batch(runbook, start=world.now + timedelta(hours=1))
    world.members(second, 1)
    with store.reading() as tx:
        found = latest_enrolments(tx, "wave", ["USER0", "user1", "nobody"])
        assert [(entry.member_key, entry.batch_id) for entry in found] == [
            ("user1", first.id),
            ("user0", second.id),
        ]
        assert found[0].batch_status is BatchStatus.COMPLETED
        assert found[0].batch_completed_at == world.now
        assert [entry.batch_id for entry in enrolments_of_key(tx, "user0")] == [second.id, first.id]


def test_pages_hold_every_member_once(store: Store, world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 25)
    with store.transaction() as tx:
        remove_members(tx, members[:5], "anna", "mistake", world.now)
    seen: list[int] = []
    with store.reading() as tx:
        while page := members_page(tx, batch.id, after=seen[-1] if seen else 0, limit=10):
            seen += [member.id for member in page]
        assert seen == members
        assert [m.id for m in members_page(tx, batch.id, status=MemberStatus.REMOVED)] == members[:5]
        assert [
            m.id for m in members_page(tx, batch.id, status=MemberStatus.ACTIVE, after=members[10], limit=3)
        ] == members[11:14]
        assert [(c.status, c.count) for c in member_counts(tx, [batch.id])] == [
            (MemberStatus.ACTIVE, 20),
            (MemberStatus.REMOVED, 5),
        ]
