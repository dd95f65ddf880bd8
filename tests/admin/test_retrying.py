"""Rule O14: a retry runs the version that the batch follows, and begins with what a member has not completed."""

from datetime import timedelta

import pytest

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import preview_member_retry, retry_members
from matoolkit.admin.retryplan import Chosen, Terms
from matoolkit.domain.retrying import VersionChoice
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.errors import NewerVersionWaits, NoActiveVersion, UnknownPhase
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.store.batches import BatchRow
from matoolkit.store.runbooks import deactivate_version
from tests.orchestrator.runbooks import TWO_PHASES, WITH_INIT
from tests.stage import Failing, Silent, Stage

ACTIVE, CURRENT = Terms(VersionChoice.ACTIVE), Terms(VersionChoice.CURRENT)
FIXED = TWO_PHASES.replace("function: Move", "function: MoveWell")


def failing_for(key: str = "u0") -> object:
    return lambda job: Failing() if job.parameters["Email"] == key else None


def broken_cutover(stage: Stage, members: int = 2, *, due: tuple[str, ...] = ("prepare", "cutover")) -> BatchRow:
    """Let u0 fail in the cutover of version 1, which the others complete."""
    batch = stage.batch(stage.publish(TWO_PHASES), members)
    stage.answers["Move"] = failing_for()
    stage.due(batch, *due)
    stage.run()
    stage.answers["Move"] = Failing()
    return batch


def sent(stage: Stage, key: str, since: int = 0) -> list[str]:
    return [job.function_name for job in stage.jobs[since:] if job.parameters["Email"] == key]


def test_o14_a_retry_runs_the_version_that_the_batch_follows_not_the_one_that_failed(stage: Stage) -> None:
    """The defect: the broken step of version 1 is sent again, for ever, because its phase had ended."""
    batch = broken_cutover(stage)
    assert stage.phases(batch)["cutover"] is PhaseStatus.COMPLETED
    stage.change_version(batch, stage.publish(FIXED))
    before = len(stage.jobs)
    shown = preview_member_retry(stage.store, batch.id)
    assert (shown.version, shown.going_on, shown.beginning_again) == (2, (), ("u0",))
    assert [(one.phase_name, one.members) for one in shown.beginnings] == [("cutover", ("u0",))]
    assert retry_members(stage.store, stage.bus, batch.id, by="anna") == shown
    stage.due(batch, "prepare", "cutover", "check")
    stage.run()
    assert sent(stage, "u0", before) == ["MoveWell", "Finish", "Test"], "what it had completed is not done again"
    assert sent(stage, "u1", before) == ["Create", "MoveWell", "Finish", "Test"]
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o14_the_first_phase_holds_for_phases_that_have_begun_when_the_member_is_caught_up(stage: Stage) -> None:
    batch = broken_cutover(stage)
    stage.change_version(batch, stage.publish(FIXED))
    stage.due(batch, "prepare")
    stage.run()
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert sent(stage, "u0", before) == [], "it waits for its cutover"
    stage.due(batch, "cutover", "check")
    stage.run()
    assert sent(stage, "u0", before) == ["MoveWell", "Finish", "Test"]


def test_o14_phases_are_due_for_members_who_begin_with_different_ones(stage: Stage) -> None:
    """Found by the simulation: it hung on the order of a set whether the tick failed."""
    names = [f"part-{number}" for number in range(9)]
    runbook = "phases:\n" + "".join(
        f"  - name: {name}\n    offset: T-0\n    steps:\n"
        f"      - {{name: do, worker_id: worker-01, function: Do-{name}, params: {{Email: '{{{{Email}}}}'}}}}\n"
        for name in (*names, "last")
    )
    batch = stage.batch(stage.publish(runbook), [*names, "well"])
    stage.answers |= {f"Do-{name}": failing_for(name) for name in names}
    stage.due(batch, *names)
    stage.run()
    stage.answers.clear()
    stage.change_version(batch, stage.publish(f"{runbook}x-fixed: true"))
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    before, later = len(stage.jobs), stage.now + timedelta(days=5)
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, later) == len(names) + 1
    stage.run()
    assert [len(sent(stage, name, before)) for name in names] == [10, 9, 8, 7, 6, 5, 4, 3, 2]
    assert len(sent(stage, "well", before)) == len(names) + 1


def test_o14_a_retry_is_refused_while_a_newer_version_waits_for_the_next_tick(stage: Stage) -> None:
    batch = broken_cutover(stage)
    stage.publish(FIXED)
    with pytest.raises(NewerVersionWaits, match="version 2 waits for the next tick"):
        preview_member_retry(stage.store, batch.id)
    with pytest.raises(NewerVersionWaits):
        retry_members(stage.store, stage.bus, batch.id, terms=ACTIVE, by="anna")
    stage.answers["Move"] = None
    done = retry_members(stage.store, stage.bus, batch.id, terms=CURRENT, by="anna")
    assert (done.version, done.active_version, done.going_on) == (1, 2, ("u0",))
    stage.run()
    assert sent(stage, "u0") == ["Create", "Move", "Move", "Finish"]


def test_o14_a_retry_is_refused_while_a_newer_version_waits_for_the_end_of_a_hold(stage: Stage) -> None:
    batch = broken_cutover(stage)
    stage.publish(FIXED)
    stage.hold(batch)
    with pytest.raises(NewerVersionWaits, match="version 2 waits for the end of its hold"):
        retry_members(stage.store, stage.bus, batch.id, by="anna")


def test_o14_a_batch_that_has_ended_keeps_its_version_unless_a_person_wants_the_active_one(stage: Stage) -> None:
    batch = broken_cutover(stage, due=("prepare", "cutover", "check"))
    assert stage.reload(batch).status is BatchStatus.COMPLETED
    stage.publish(FIXED)
    assert preview_member_retry(stage.store, batch.id).version == 1
    before = len(stage.jobs)
    done = retry_members(stage.store, stage.bus, batch.id, terms=ACTIVE, by="anna")
    assert (done.version, done.beginning_again) == (2, ("u0",))
    stage.run()
    assert [(job.function_name, job.parameters["Email"]) for job in stage.jobs[before:]] == [
        ("MoveWell", "u0"),
        ("Finish", "u0"),
        ("Test", "u0"),
    ], "phases that are past open for those who are retried alone"
    states = {(phase.runbook_version, phase.phase_name): phase.status for phase in stage.phase_rows(batch)}
    assert states[2, "prepare"] is PhaseStatus.SKIPPED
    assert states[2, "cutover"] is states[2, "check"] is PhaseStatus.COMPLETED
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o14_a_batch_that_was_taken_up_again_may_take_the_active_version_later(stage: Stage) -> None:
    batch = broken_cutover(stage, due=("prepare", "cutover", "check"))
    stage.publish(FIXED)
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.answers["Test"] = Silent()
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED, "version 1 failed again"
    retry_members(stage.store, stage.bus, batch.id, terms=ACTIVE, by="anna")
    del stage.answers["Test"]
    stage.run()
    assert sent(stage, "u0")[-3:] == ["MoveWell", "Finish", "Test"]


def test_o14_a_manual_batch_takes_the_active_version_only_for_those_who_are_retried(stage: Stage) -> None:
    stage.publish(TWO_PHASES)
    rows = [{"Email": key, "Name": key} for key in ("u0", "u1")]
    batch = create_manual_batch(stage.store, "wave", rows, by="anna").batch
    stage.answers["Move"] = failing_for()
    for _ in ("prepare", "cutover"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
    stage.publish(FIXED)
    assert preview_member_retry(stage.store, batch.id).version == 1
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, terms=ACTIVE, by="anna")
    stage.run()
    assert [job.function_name for job in stage.jobs[before:]] == ["MoveWell", "Finish"]
    assert advance_batch(stage.store, stage.bus, batch.id, by="anna").phase_name == "check"
    stage.run()
    assert sorted(sent(stage, "u1", before)) == ["Test"]
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o14_without_an_active_version_a_batch_runs_its_own(stage: Stage) -> None:
    batch = broken_cutover(stage)
    with stage.store.transaction() as tx:
        deactivate_version(tx, "wave", 1)
    with pytest.raises(NoActiveVersion):
        preview_member_retry(stage.store, batch.id, terms=ACTIVE)
    shown = preview_member_retry(stage.store, batch.id)
    assert (shown.version, shown.active_version, shown.going_on) == (1, None, ("u0",))


def test_o14_a_person_lets_members_begin_earlier_and_never_later(stage: Stage) -> None:
    batch = broken_cutover(stage)
    with pytest.raises(UnknownPhase, match="version 1 has no phase 'prepair'") as refused:
        preview_member_retry(stage.store, batch.id, terms=Terms(begin_with="prepair"))
    assert "prepare, cutover, check" in str(refused.value.hint)
    later = preview_member_retry(stage.store, batch.id, terms=Terms(begin_with="check"))
    assert later.beginnings[0].phase_name == "cutover"
    stage.answers["Move"] = None
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, terms=Terms(begin_with="PREPARE"), by="anna")
    stage.run()
    assert sent(stage, "u0", before) == ["Create", "Move", "Finish"]


def test_o14_who_has_done_all_that_the_version_has_is_done(stage: Stage) -> None:
    batch = broken_cutover(stage)
    without = TWO_PHASES.replace("name: cutover", "name: dropped")
    only_prepare = without[: without.index("  - name: dropped")]
    stage.change_version(batch, stage.publish(only_prepare))
    before = len(stage.jobs)
    done = retry_members(stage.store, stage.bus, batch.id, by="anna")
    assert [(one.phase_name, one.members) for one in done.beginnings] == [(None, ("u0",))]
    stage.due(batch, "prepare")
    stage.run()
    assert sent(stage, "u0", before) == []
    assert stage.reload(batch).status is BatchStatus.COMPLETED


def test_o14_what_was_done_in_an_epoch_before_is_remembered_by_the_next(stage: Stage) -> None:
    batch = broken_cutover(stage)
    stage.change_version(batch, stage.publish(FIXED))
    stage.answers["MoveWell"] = Failing()
    retry_members(stage.store, stage.bus, batch.id, Chosen(), by="anna")
    stage.due(batch, "cutover")
    stage.run()
    stage.change_version(batch, stage.publish(FIXED + "# 3\n"))
    done = retry_members(stage.store, stage.bus, batch.id, by="anna")
    by_phase = {one.phase_name: one.members for one in done.beginnings}
    assert "u0" in by_phase["cutover"], "it completed prepare two epochs ago"


def test_o14_an_init_that_is_held_runs_again_under_the_active_version(stage: Stage) -> None:
    """The defect: a held batch ran the version that failed, whatever was published since."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.run()
    stage.answers["Domain"] = Failing()
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
    stage.run()
    assert stage.reload(batch).is_held
    stage.publish(WITH_INIT.replace("function: Domain", "function: DomainWell"))
    before = len(stage.jobs)
    assert retry_init(stage.store, stage.bus, batch.id, by="anna").version == 3
    stage.run()
    assert stage.functions()[before:] == ["DomainWell", "Group"]
    after = stage.reload(batch)
    assert (after.status, after.is_held) == (BatchStatus.ACTIVE, False)
    current = [phase for phase in stage.phase_rows(batch) if phase.runbook_version == 3]
    assert [phase.status for phase in current] == [PhaseStatus.PENDING]


def test_o14_the_init_of_a_manual_batch_runs_again_under_its_own_version(stage: Stage) -> None:
    stage.publish(WITH_INIT)
    batch = create_manual_batch(stage.store, "wave", [{"Email": "u0", "Name": "u"}], by="anna").batch
    stage.answers["Domain"] = Failing()
    advance_batch(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    stage.publish(WITH_INIT + "# 2\n")
    assert retry_init(stage.store, stage.bus, batch.id, by="anna").version == 1
    assert stage.reload(batch).runbook_id == batch.runbook_id


def skipped_by_version_two(stage: Stage, members: int = 3) -> BatchRow:
    """Let version 2 skip the prepare that everybody has done under version 1, and u0 and u1 fail in its cutover."""
    batch = stage.batch(stage.publish(TWO_PHASES), members)
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(FIXED), keep_phases=True)
    stage.skip(batch, "prepare")
    stage.answers["MoveWell"] = lambda job: Failing() if job.parameters["Email"] in ("u0", "u1") else None
    stage.due_of(batch, 2, "cutover")
    stage.run()
    return batch


def test_o14_who_goes_on_does_not_do_what_a_new_version_skipped_before(stage: Stage) -> None:
    """The defect: a retry sent the mails of a phase again that publishing had said to be skipped."""
    batch = skipped_by_version_two(stage)
    before = len(stage.jobs)
    stage.answers["MoveWell"] = None
    for key in ("u0", "u1"):
        chosen = Chosen([stage.member(batch, key).id])
        assert preview_member_retry(stage.store, batch.id, chosen).going_on == (key,)
        retry_members(stage.store, stage.bus, batch.id, chosen, by="anna")
        stage.run()
        assert sent(stage, key, before) == ["MoveWell", "Finish"]


def test_o14_who_goes_on_does_what_came_due_since_it_failed_even_if_nobody_was_left_for_it(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.answers["Create"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    stage.skip(batch, "cutover")
    stage.answers["Create"] = None
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert sent(stage, "u0", before) == ["Create", "Move", "Finish"]


def test_o10_who_joins_late_does_what_a_new_version_skipped(stage: Stage) -> None:
    batch = skipped_by_version_two(stage)
    before = len(stage.jobs)
    stage.join(batch, "late")
    stage.run()
    assert sent(stage, "late", before) == ["Create", "MoveWell", "Finish"]
