"""Rule U3: a person keeps somebody out of all batches of a runbook, until it is included again."""

from typing import Any

import pytest

from matoolkit.admin import excluding
from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.excluding import Excluded, exclude_member, preview_exclusion
from matoolkit.admin.including import include_member
from matoolkit.admin.manual import add_to_manual_batch, create_manual_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import preview_member_retry, retry_members
from matoolkit.admin.undoing import undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.domain.retrying import LeftOutBecause
from matoolkit.domain.states import EXCLUDED, BatchStatus, MemberStatus, StepStatus
from matoolkit.errors import (
    ExcludedAlready,
    InvalidMembers,
    MemberChanged,
    NothingToRetry,
    NothingToUndo,
    UnknownRow,
    UnknownRunbook,
    UnusableKey,
)
from matoolkit.store.audit import audit_page
from matoolkit.store.enrolments import Place, places_of_keys
from matoolkit.store.exclusions import count_exclusions, excluded_keys, exclusions_page
from matoolkit.store.inclusions import waiting_inclusions
from tests.orchestrator.runbooks import WITH_FAREWELL, WITH_INIT, WITH_ROLLBACK
from tests.stage import Failing, Silent, Stage

from .test_undoing import called, completed, farewells, under_way


def exclude(stage: Stage, key: str, *, undo: bool = False, name: str = "wave") -> Excluded:
    return exclude_member(stage.store, stage.bus, name, key, by="anna", reason="on leave", undo=undo)


def include(stage: Stage, key: str, name: str = "wave") -> Any:
    return include_member(stage.store, name, key, by="ben", reason=None, now=stage.now)


def test_u3_somebody_under_way_leaves_its_batch_and_what_was_done_stays(stage: Stage) -> None:
    batch = under_way(stage)
    done = exclude(stage, " U0")
    assert (done.member_key, done.is_known, done.leaves, done.undo) == ("u0", True, (batch.id,), None)
    stage.due(batch, "cutover")
    stage.run()
    member = stage.member(batch, "u0")
    assert (member.status, member.remove_reason, member.undone_at) == (MemberStatus.REMOVED, EXCLUDED, None)
    assert stage.states(batch, "u0") == {"create": "succeeded"}
    assert (called(stage, "Forget"), called(stage, "Move")) == ([], ["u1"])


def test_u3_its_open_steps_are_cancelled_at_once(stage: Stage) -> None:
    stage.answers["Create"] = Silent()
    batch = under_way(stage, 1)
    exclude(stage, "u0")
    stage.answer(stage.jobs[0])
    stage.run()
    stage.later(hours=25)
    assert stage.states(batch) == {"create": "cancelled"}
    assert farewells(stage, batch) == []


def test_u3_a_preview_changes_nothing(stage: Stage) -> None:
    batch = under_way(stage)
    seen = preview_exclusion(stage.store, "wave", "u0", undo=True)
    assert seen.undo is not None
    assert (seen.undo.running, seen.leaves) == (("u0",), ())
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE
    assert kept_out(stage) == set()


def kept_out(stage: Stage) -> set[str]:
    with stage.store.reading() as tx:
        return excluded_keys(tx, "wave")


def test_u3_with_undo_what_was_done_is_undone(stage: Stage) -> None:
    batch = under_way(stage)
    done = exclude(stage, "u0", undo=True)
    assert done.undo is not None
    assert done.undo.running == ("u0",)
    stage.run()
    assert called(stage, "Forget") == ["u0"]
    assert stage.member(batch, "u0").undone_at is not None
    assert kept_out(stage) == {"u0"}


def test_u3_what_was_done_can_be_undone_later(stage: Stage) -> None:
    batch = under_way(stage, 3)
    for key in ("u0", "u1"):
        exclude(stage, key)
    stage.run()
    exclude(stage, "u0", undo=True)
    undo_members(stage.store, stage.bus, batch.id, Wanted(member_keys=["u1"]), by="anna", reason="after all")
    stage.run()
    assert sorted(called(stage, "Forget")) == ["u0", "u1"]
    with pytest.raises(ExcludedAlready, match="excluded already by anna: on leave"):
        exclude(stage, "u0", undo=True)


def test_u3_an_undo_of_everybody_leaves_the_excluded_as_they_are(stage: Stage) -> None:
    batch = under_way(stage)
    exclude(stage, "u0")
    stage.run()
    undo_members(stage.store, stage.bus, batch.id, by="anna", reason="wrong wave")
    stage.run()
    assert called(stage, "Forget") == ["u1"]


def test_u3_somebody_who_is_done_stays_done(stage: Stage) -> None:
    batch = completed(stage)
    assert exclude(stage, "u0").leaves == ()
    assert stage.member(batch, "u0").status is MemberStatus.ACTIVE
    exclude(stage, "u1", undo=True)
    stage.run()
    assert called(stage, "Forget") == ["u1"]


def test_u3_undo_is_refused_while_a_rollback_runs_and_nothing_is_excluded(stage: Stage) -> None:
    stage.answers |= {"Create": {"Id": "1"}, "License": Failing(), "Unlicense": Silent()}
    under_way(stage, 1, WITH_ROLLBACK)
    with pytest.raises(NothingToUndo, match="the rollback of u0 has not ended"):
        exclude(stage, "u0", undo=True)
    assert kept_out(stage) == set()
    exclude(stage, "u0")
    assert kept_out(stage) == {"u0"}


def test_u3_somebody_may_be_excluded_before_anything_knows_it(stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    assert exclude(stage, "nobody-yet").is_known is False
    with pytest.raises(ExcludedAlready):
        exclude(stage, "NOBODY-yet")
    with pytest.raises(UnknownRunbook):
        exclude(stage, "u0", name="other")
    with pytest.raises(UnusableKey):
        exclude(stage, " ")


def test_u3_include_ends_an_exclusion_and_a_new_one_can_be_made(stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    exclude(stage, "ann")
    done = include(stage, "ANN")
    assert (done.was_excluded, done.batch_time, done.batch_id) == (True, None, None)
    with pytest.raises(UnknownRow):
        include(stage, "ann")
    exclude(stage, "ann")
    assert kept_out(stage) == {"ann"}


def test_u3_an_excluded_member_is_not_retried(stage: Stage) -> None:
    stage.answers["Create"] = Failing()
    batch = under_way(stage)
    exclude(stage, "u0")
    seen = preview_member_retry(stage.store, batch.id)
    assert [(group.because, group.members) for group in seen.left_out_because] == [(LeftOutBecause.EXCLUDED, ("u0",))]
    exclude(stage, "u1")
    with pytest.raises(NothingToRetry, match="a person excluded u0, u1"):
        retry_members(stage.store, stage.bus, batch.id, by="anna")


def test_u3_a_batch_that_is_taken_up_again_goes_on_without_the_excluded(stage: Stage) -> None:
    stage.answers["Domain"] = Failing()
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    stage.run()
    assert stage.reload(batch).status is BatchStatus.FAILED
    exclude(stage, "u0")
    stage.answers.clear()
    retry_init(stage.store, stage.bus, batch.id, by="anna")
    stage.due(batch, "prepare")
    stage.run()
    stage.due(batch, "prepare")
    stage.run()
    assert called(stage, "Create") == ["u1"]


def test_u3_done_members_who_are_excluded_leave_a_batch_that_is_reopened(stage: Stage) -> None:
    stage.answers["Create"] = lambda job: Failing() if job.parameters["Email"] == "u1" else {}
    batch = completed(stage)
    exclude(stage, "u0")
    stage.answers.clear()
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert stage.member(batch, "u0").remove_reason == EXCLUDED
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_u3_nobody_who_is_excluded_gets_into_a_manual_batch(stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    rows = [{"Email": key, "Name": key} for key in ("ann", "bob")]
    exclude(stage, "ann")
    made = create_manual_batch(stage.store, "wave", rows, by="anna")
    assert (made.members, made.left_out) == (1, ("ann",))
    assert add_to_manual_batch(stage.store, stage.bus, made.batch.id, rows[:1], by="anna").left_out == ("ann",)
    with pytest.raises(InvalidMembers, match="excluded"):
        create_manual_batch(stage.store, "wave", rows[:1], by="anna")
    advance_batch(stage.store, stage.bus, made.batch.id, by="anna")
    stage.run()
    assert exclude(stage, "bob").leaves == (made.batch.id,)
    include(stage, "bob")
    assert add_to_manual_batch(stage.store, stage.bus, made.batch.id, rows[1:], by="anna").members == 1


def test_u3_exclusions_are_audited_and_listed(stage: Stage) -> None:
    stage.publish(WITH_FAREWELL)
    exclude(stage, "ann")
    exclude(stage, "bob")
    include(stage, "ann")
    with stage.store.reading() as tx:
        listed = exclusions_page(tx, "WAVE")
        entries = [(entry.action, entry.actor, entry.reason, entry.subject_id) for entry in reversed(audit_page(tx))]
        assert count_exclusions(tx, "wave") == 1
    assert [(row.member_key, row.excluded_by, row.reason) for row in listed] == [("bob", "anna", "on leave")]
    assert entries == [
        ("member.exclude", "anna", "on leave", "ann"),
        ("member.exclude", "anna", "on leave", "bob"),
        ("member.include", "ben", None, "ann"),
    ]


def test_u3_a_person_who_let_it_in_before_is_overruled(stage: Stage) -> None:
    batch = under_way(stage, 1)
    stage.leave(batch, "u0")
    stage.run()
    include(stage, "u0")
    exclude(stage, "u0")
    include(stage, "u0")
    with stage.store.reading() as tx:
        assert waiting_inclusions(tx, "wave") == {}
    assert stage.rollbacks(batch)[0].status is StepStatus.SUCCEEDED


def test_u3_m5_somebody_who_joins_another_batch_at_that_moment_is_looked_at_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = under_way(stage, 1)
    looks: list[int] = []

    def places(*given: Any) -> list[Place]:
        """Find it only at the second look."""
        looks.append(1)
        return places_of_keys(*given) if len(looks) > 1 else []

    monkeypatch.setattr(excluding, "places_of_keys", places)
    with pytest.raises(MemberChanged, match="u0 joined another batch at this moment; nothing was changed"):
        exclude(stage, "u0")
    assert (kept_out(stage), stage.member(batch).status) == (set(), MemberStatus.ACTIVE)
