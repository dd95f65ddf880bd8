"""Rules V1, V7 and T1: publishing, putting out of use, switching on and off."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta
from threading import Barrier
from typing import Any

import orjson
import pytest

from matoolkit.admin.publishing import Published, deactivate, publish, set_automation
from matoolkit.clock import VirtualClock
from matoolkit.domain.gates import GateKind
from matoolkit.domain.messages import AnnouncedParameter
from matoolkit.domain.states import BatchStatus, OverdueBehavior, PhaseStatus
from matoolkit.domain.transitions import InitChange, Stay
from matoolkit.errors import (
    InvalidRunbook,
    NoActiveVersion,
    OtherName,
    PrimaryKeyChanged,
    UnknownRunbook,
    UnknownVersion,
    VersionNotActive,
)
from matoolkit.store import Store
from matoolkit.store.audit import AuditEntry, audit_page
from matoolkit.store.automation import automation_of
from matoolkit.store.batches import BatchRow, NewBatch, cancel_batches, insert_batches
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.phases import NewPhase, insert_phases
from matoolkit.store.runbooks import active_runbook, runbook_versions
from tests.databases import NOON, Database
from tests.documents import document


def published(store: Store, content: str, **wishes: Any) -> Published:
    return publish(store, content, by="anna", now=NOON, **wishes)


def batch_of(
    store: Store, *, manual: bool = False, days: int = 3, status: BatchStatus = BatchStatus.ACTIVE
) -> BatchRow:
    with store.transaction() as tx:
        row = active_runbook(tx, "wave")
        assert row
        start = None if manual else NOON + timedelta(days=days)
        return insert_batches(tx, [NewBatch(row.id, row.name, start, status, is_manual=manual)], NOON)[0]


def audited(store: Store) -> list[AuditEntry]:
    with store.reading() as tx:
        return audit_page(tx)


def test_v1_versions_count_from_one_and_the_newest_is_the_active_one(store: Store) -> None:
    first = published(store, document())
    second = published(store, document(remark="other"), overdue_behavior=OverdueBehavior.IGNORE, rerun_init=True)
    assert [(one.name, one.version, one.is_new) for one in (first, second)] == [("wave", 1, True), ("wave", 2, True)]
    with store.reading() as tx:
        newest, oldest = runbook_versions(tx, "wave")
    assert (newest.is_active, newest.overdue_behavior, newest.rerun_init) == (True, OverdueBehavior.IGNORE, True)
    assert (oldest.is_active, oldest.overdue_behavior, oldest.rerun_init) == (False, OverdueBehavior.RERUN, False)
    assert newest.yaml_content == document(remark="other")
    assert newest == second.row
    assert (newest.published_by, newest.created_at) == ("anna", NOON)


@pytest.mark.parametrize("same", [document(), "\ufeff" + document(), document().replace("\n", "\r\n")])
def test_v1_the_same_document_with_the_same_settings_is_not_a_new_version(store: Store, same: str) -> None:
    first = published(store, document())
    again = published(store, same)
    assert (again.version, again.is_new) == (1, False)
    assert again.row == first.row
    assert len(audited(store)) == 1
    forced = published(store, same, force=True)
    assert (forced.version, forced.is_new) == (2, True)


@pytest.mark.parametrize("other", [{"overdue_behavior": OverdueBehavior.IGNORE}, {"rerun_init": True}])
def test_v1_the_same_document_with_other_settings_is_a_new_version(store: Store, other: dict[str, Any]) -> None:
    published(store, document())
    assert published(store, document(), **other).version == 2


def test_v1_only_the_active_version_counts_for_sameness(store: Store) -> None:
    published(store, document())
    published(store, document(remark="other"))
    assert published(store, document()).version == 3
    deactivate(store, "wave", 3, by="anna", reason=None, now=NOON)
    assert published(store, document()).version == 4


def test_v1_a_runbook_with_errors_is_refused_with_all_its_findings(store: Store) -> None:
    broken = document().replace("offset: T-0", "offset: noon").replace("type: sql", "type: csv")
    with pytest.raises(InvalidRunbook) as refused:
        published(store, broken)
    assert len([found for found in refused.value.findings if found.is_error]) == 2
    with store.reading() as tx:
        assert runbook_versions(tx, "wave") == []


def test_r11_warnings_are_shown_and_do_not_stop_a_publication(store: Store) -> None:
    known = document(function="Send-Welcome")
    assert [found.code for found in published(store, known, dry_run=True).warnings] == ["RB307"] * 3
    parameters = [AnnouncedParameter("UserId", "string", is_mandatory=True), AnnouncedParameter("Enabled", "bool")]
    with store.transaction() as tx:
        mine = AnnouncedFunction("Send-Welcome", orjson.dumps([asdict(one) for one in parameters]).decode())
        announce_functions(tx, "worker-01", [mine, AnnouncedFunction("Odd-One", "no json")], NOON)
    assert published(store, known).warnings == ()
    wrong = known.replace("Enabled: true", "Enabled: maybe").replace("UserId:", "User:")
    codes = {found.code for found in published(store, wrong, dry_run=True).warnings}
    assert codes == {"RB308", "RB309", "RB317"}
    # What a worker did not announce, but every worker brings along, is known too.
    assert published(store, document()).warnings == ()


def test_v1_a_document_is_published_under_its_own_name_only(store: Store) -> None:
    with pytest.raises(OtherName) as refused:
        published(store, document(), name="weave")
    assert refused.value.http_status == 422
    published(store, document(), name="WAVE")
    assert published(store, document(name="Wave", remark="other")).name == "wave"


def test_v1_another_primary_key_is_refused_while_automated_batches_are_in_flight(store: Store) -> None:
    published(store, document())
    batch_of(store, manual=True)
    assert published(store, document(key="mail"), dry_run=True).is_new
    batch = batch_of(store)
    with pytest.raises(PrimaryKeyChanged):
        published(store, document(key="mail"), dry_run=True)
    with pytest.raises(PrimaryKeyChanged) as refused:
        published(store, document(key="mail"))
    assert (refused.value.before, refused.value.after, refused.value.http_status) == ("email", "mail", 409)
    assert refused.value.hint
    assert published(store, document(key="EMAIL")).version == 2
    with store.transaction() as tx:
        cancel_batches(tx, [batch.id], NOON)
    assert published(store, document(key="mail")).version == 3


def test_v1_the_key_is_that_of_the_versions_that_batches_follow(store: Store) -> None:
    published(store, document())
    batch_of(store)
    deactivate(store, "wave", 1, by="anna", reason=None, now=NOON)
    with pytest.raises(PrimaryKeyChanged):
        published(store, document(key="mail"))


def test_v1_the_answer_says_what_becomes_of_each_batch_in_flight(store: Store) -> None:
    published(store, document())
    running, waiting, manual = batch_of(store), batch_of(store, days=9), batch_of(store, manual=True)
    with store.transaction() as tx:
        due = NOON - timedelta(days=2)
        insert_phases(tx, [NewPhase(running.id, 1, "prepare", 0, 7200, due, PhaseStatus.DISPATCHED)])
        hold_batches(tx, [Hold(waiting.id, GateKind.REMOVALS, "too many left", "k", "{}")], NOON)
    rerun = published(store, document(init=True), rerun_init=True, dry_run=True)
    first, second, third = rerun.impacts
    assert (first.batch_id, first.start_time) == (running.id, running.batch_start_time)
    assert [one.name for one in first.transition.repeated] == ["prepare"]
    assert [one.name for one in first.transition.first_time] == ["cutover", "verify"]
    assert [one.name for one in first.transition.interrupted] == ["prepare"]
    assert first.transition.init is InitChange.REQUESTED
    assert rerun.repeats_phases
    assert (second.batch_id, second.transition.stays) == (waiting.id, Stay.HELD)
    assert (third.batch_id, third.transition.stays) == (manual.id, Stay.MANUAL)
    ignore = published(store, document(init=True), overdue_behavior=OverdueBehavior.IGNORE)
    assert [one.name for one in ignore.impacts[0].transition.skipped] == ["prepare"]
    assert not ignore.repeats_phases


def test_v1_a_dry_run_changes_nothing(store: Store) -> None:
    planned = published(store, document(), dry_run=True, enable=True)
    assert (planned.version, planned.row, planned.is_new, planned.is_dry_run) == (1, None, True, True)
    with store.reading() as tx:
        assert runbook_versions(tx, "wave") == []
        assert automation_of(tx, "wave") is None
    assert audited(store) == []


def test_a5_a_publication_is_recorded_with_who_and_what(store: Store) -> None:
    published(store, document())
    published(store, document(remark="other"), rerun_init=True)
    second, first = audited(store)
    assert (second.actor, second.action, second.subject_id, second.runbook_name) == (
        "anna",
        "runbook.publish",
        "wave",
        "wave",
    )
    assert first.before_json is None
    assert orjson.loads(second.before_json or "")["active_version"] == 1
    after = orjson.loads(second.after_json or "")
    assert (after["active_version"], after["overdue_behavior"], after["rerun_init"]) == (2, "rerun", True)


def test_t1_automation_is_off_until_somebody_enables_it(store: Store, clock: VirtualClock) -> None:
    published(store, document())
    with store.reading() as tx:
        assert automation_of(tx, "wave") is None
    assert not set_automation(store, "wave", enabled=False, by="ben", now=NOON).automation_enabled
    on = set_automation(store, "WAVE", enabled=True, by="ben", now=NOON)
    assert (on.runbook_name, on.automation_enabled, on.enabled_by) == ("wave", True, "ben")
    assert set_automation(store, "wave", enabled=True, by="carl", now=NOON).enabled_by == "ben"
    off = set_automation(store, "wave", enabled=False, by="dora", now=NOON)
    assert (off.automation_enabled, off.disabled_by, off.enabled_by) == (False, "dora", "ben")
    assert [(one.actor, one.action) for one in audited(store)] == [
        ("dora", "automation.disable"),
        ("ben", "automation.enable"),
        ("anna", "runbook.publish"),
    ]


@pytest.mark.parametrize("is_published_before", [False, True])
def test_t1_publishing_can_enable_automation_too(store: Store, is_published_before: bool) -> None:
    if is_published_before:
        published(store, document())
    published(store, document(), enable=True)
    with store.reading() as tx:
        setting = automation_of(tx, "wave")
    assert setting
    assert (setting.automation_enabled, setting.enabled_by) == (True, "anna")


def test_t1_publishing_anew_leaves_automation_as_it_is(store: Store) -> None:
    published(store, document(), enable=True)
    published(store, document(remark="other"))
    with store.reading() as tx:
        setting = automation_of(tx, "wave")
    assert setting
    assert setting.automation_enabled


def test_v7_the_active_version_can_be_put_out_of_use(store: Store) -> None:
    published(store, document(), enable=True)
    batch = batch_of(store)
    row = deactivate(store, "Wave", 1, by="ben", reason="wrong query", now=NOON)
    assert not row.is_active
    with store.reading() as tx:
        assert active_runbook(tx, "wave") is None
    entry = audited(store)[0]
    assert (entry.actor, entry.action, entry.reason) == ("ben", "runbook.deactivate", "wrong query")
    with pytest.raises(VersionNotActive, match="version 1"):
        deactivate(store, "wave", 1, by="ben", reason=None, now=NOON)
    with pytest.raises(NoActiveVersion):
        set_automation(store, "wave", enabled=True, by="ben", now=NOON)
    assert not set_automation(store, "wave", enabled=False, by="ben", now=NOON).automation_enabled
    assert [one.batch_id for one in published(store, document()).impacts] == [batch.id]


def test_v7_only_the_active_version_can_be_put_out_of_use(store: Store) -> None:
    published(store, document())
    published(store, document(remark="other"))
    with pytest.raises(VersionNotActive) as refused:
        deactivate(store, "wave", 1, by="ben", reason=None, now=NOON)
    assert refused.value.hint == "version 2 is the active one"
    with pytest.raises(UnknownVersion) as unknown:
        deactivate(store, "wave", 3, by="ben", reason=None, now=NOON)
    assert unknown.value.hint == "its versions are 1 to 2"
    assert len(audited(store)) == 2


def test_an_unknown_runbook_is_answered_with_the_one_that_was_meant(store: Store) -> None:
    published(store, document())
    with pytest.raises(UnknownRunbook) as refused:
        set_automation(store, "wav", enabled=True, by="anna", now=NOON)
    assert refused.value.hint == "did you mean 'wave'?"
    with pytest.raises(UnknownRunbook):
        deactivate(store, "other", 1, by="anna", reason=None, now=NOON)


@pytest.mark.parametrize("is_first", [True, False])
def test_v1_people_who_publish_at_the_same_moment_get_numbers_of_their_own(
    store: Store, database: Database, clock: VirtualClock, is_first: bool
) -> None:
    if not is_first:
        published(store, document())
    everybody = 4
    ready = Barrier(everybody)

    def one(number: int) -> int:
        own = database.open(clock)
        ready.wait()
        return published(own, document(remark=f"by {number}")).version

    with ThreadPoolExecutor(everybody) as pool:
        numbers = sorted(pool.map(one, range(everybody)))
    first = 1 if is_first else 2
    assert numbers == list(range(first, first + everybody))
    with store.reading() as tx:
        assert [row.version for row in runbook_versions(tx, "wave") if row.is_active] == [numbers[-1]]


def test_v1_people_who_publish_the_same_at_the_same_moment_make_one_version(
    store: Store, database: Database, clock: VirtualClock
) -> None:
    ready = Barrier(3)

    def one(_: int) -> int:
        own = database.open(clock)
        ready.wait()
        return published(own, document()).version

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, range(3))) == [1, 1, 1]
    assert len(audited(store)) == 1


@pytest.mark.parametrize(("remark", "expected"), [("mine", (3, True)), ("theirs", (2, False))])
def test_v1_whoever_is_overtaken_between_looking_and_writing_looks_again(
    store: Store, database: Database, clock: VirtualClock, remark: str, expected: tuple[int, bool]
) -> None:
    published(store, document())
    other, theirs = database.open(clock), [document(remark="theirs")]

    def overtake(statement: str, _parameters: Any) -> None:
        # Only where several can write at a time can anybody come between.
        if theirs and (database.kind == "sqlite" or "FOR UPDATE" in statement or "UPDLOCK" in statement):
            published(other, theirs.pop())

    store.watchers.append(overtake)
    mine = published(store, document(remark=remark))
    assert not theirs
    assert (mine.version, mine.is_new) == expected
    assert mine.row
    assert mine.row.version == mine.version
    assert len(audited(store)) == expected[0]
