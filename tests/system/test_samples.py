"""The samples, with everything that happens to people: failures and their rollbacks, late joiners, leavers (W2, W9)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus
from matoolkit.store import Store
from matoolkit.worker.tenant.directory import MAILBOX
from matoolkit.worker.tenant.licences import E3
from tests.system.migration import RUNBOOKS, SAMPLE, Migration, guid_of, migration, wanted_end_state

GUESTS = (
    "guest_id",
    "display_name",
    "new_upn",
    "usage_location",
    "sku_id",
    "manager_upn",
    "private_email",
    "cutover_at",
)
CHANGES = ("change_id", "group_id", "user_id", "function_name")


@pytest.fixture
def moving(store: Store, clock: VirtualClock, tmp_path: Path) -> Iterator[Migration]:
    with migration(store, clock, tmp_path, {"MATOOLKIT_SECRET_INITIAL_PASSWORD": "Correct-Horse-Battery-9"}) as moving:
        yield moving


def days(moving: Migration, count: float) -> None:
    for _ in range(round(count * 4)):
        moving.go_on(hours=6)


def test_w9_a_mailbox_that_cannot_be_copied_is_undone_and_the_others_move(moving: Migration) -> None:
    moving.add_people(3)
    # Somebody turned the archive on after the mailbox was read.
    moving.tenant.directory.remote_mailboxes[guid_of(1)]["ArchiveGuid"] = guid_of(99)
    days(moving, 9)
    assert moving.batch().status is BatchStatus.COMPLETED
    assert moving.end_state() == wanted_end_state(0, 2)
    assert [user.upn for user in moving.tenant.directory.deleted.values()] == ["person1@contoso.example"]
    assert set(moving.tenant.directory.moves) == {
        user.id for user in moving.tenant.directory.users.values() if user.kind == MAILBOX and not user.sent
    }
    assert moving.mails() == ["Person 1 was taken out of the migration"]


def test_w9_who_joins_late_catches_up_and_who_leaves_is_undone(moving: Migration) -> None:
    moving.add_people(6, SAMPLE.replace("max_removals: 10%", "max_removals: 2"))
    days(moving, 3.5)
    assert len(moving.tenant.directory.moves) == 6, "all are being copied"
    late = moving.person(6)
    moving.change_source(f"INSERT INTO people VALUES ({', '.join('?' * len(late))})", *late)
    moving.change_source("DELETE FROM people WHERE SourceUserId = 'p2'")
    days(moving, 6)
    assert moving.batch().status is BatchStatus.COMPLETED
    assert moving.end_state() == wanted_end_state(0, 1, 3, 4, 5, 6)
    assert [user.upn for user in moving.tenant.directory.deleted.values()] == ["person2@contoso.example"]
    assert moving.mails() == []


def test_w9_guests_become_members_with_a_mailbox_and_a_pass(moving: Migration) -> None:
    directory = moving.tenant.directory
    welcome = {"displayName": "Welcome", "exchange": {"RecipientTypeDetails": MAILBOX}}
    directory.add_user({**welcome, "userPrincipalName": "welcome@contoso.example"}, is_seeded=True)
    guests = []
    for number, state in enumerate(("Accepted", "Accepted", "PendingAcceptance")):
        upn = f"g{number}_source.example#EXT#@contoso.example"
        guest = {"displayName": f"Guest {number}", "userPrincipalName": upn, "externalUserState": state}
        guests.append(directory.add_user({**guest, "userType": "Guest"}, is_seeded=True))
    cutover = (moving.clock.now() + timedelta(days=1)).isoformat()
    rows = [
        (one.id, f"Guest {n}", f"g{n}@contoso.example", "DE", E3, "us@contoso.example", f"g{n}@home.example", cutover)
        for n, one in enumerate(guests)
    ]
    moving.play((RUNBOOKS / "guest-to-member.yaml").read_text(encoding="utf-8"), GUESTS, rows)
    days(moving, 3)
    assert moving.batch().status is BatchStatus.COMPLETED
    for number in (0, 1):
        one = guests[number]
        assert (one.upn, one.kind, one.is_external) == (f"g{number}@contoso.example", MAILBOX, False)
        assert one.manager is not None
        assert (one.passwords_set, one.sessions_revoked, len(one.passes)) == (1, 1, 1)
    assert guests[2].is_external, "who has not accepted is left as a guest"
    assert moving.mails() == ["Your Temporary Access Pass"] * 2


def test_w9_group_changes_are_applied_and_what_cannot_be_is_told_once(moving: Migration) -> None:
    directory = moving.tenant.directory
    people = [
        directory.add_user({"displayName": f"P{n}", "userPrincipalName": f"p{n}@contoso.example"}, is_seeded=True)
        for n in range(3)
    ]
    group = directory.add_group("project", members=[people[1].id])
    mailing = directory.add_group("everybody", kind="distribution")
    rows = [
        ("c1", group.id, people[0].id, "Add-EntraGroupMember"),
        ("c2", group.id, people[1].id, "Remove-EntraGroupMember"),
        ("c3", mailing.id, people[2].id, "Add-EntraGroupMember"),
    ]
    moving.play((RUNBOOKS / "group-membership.yaml").read_text(encoding="utf-8"), CHANGES, rows)
    for _ in range(5):
        moving.go_on(minutes=5)
    assert moving.batch().status is BatchStatus.COMPLETED
    assert set(group.members) == {people[0].id}
    assert len(moving.tenant.asked(f"POST /v1.0/groups/{mailing.id}/members/$ref")) == 4, "once, and three retries"
