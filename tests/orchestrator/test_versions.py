"""Rules V3, V4 and V6: what a new version means for members under way."""

from matoolkit.domain.states import BatchStatus, MemberStatus, PhaseStatus
from tests.stage import Failing, Silent, Stage

from .runbooks import TWO_PHASES, WITH_POLL, WITH_ROLLBACK


def test_v3_the_first_step_of_the_new_version_waits_for_the_job_in_flight(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(TWO_PHASES + "# 2\n"))
    stage.due(batch, "prepare")
    stage.run()
    assert stage.functions() == ["Create"]
    stage.answers["Create"] = None
    stage.answer(stage.jobs[0])
    stage.run()
    assert [job.correlation["RunbookVersion"] for job in stage.jobs] == [1, 2]
    assert [(phase.phase_name, phase.status) for phase in stage.phase_rows(batch) if phase.runbook_version == 1] == [
        ("prepare", PhaseStatus.SUPERSEDED), ("cutover", PhaseStatus.SUPERSEDED), ("check", PhaseStatus.SUPERSEDED),
    ]  # fmt: skip


def test_v3_the_first_step_of_the_new_version_begins_when_the_job_in_flight_counts_as_lost(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(TWO_PHASES + "# 2\n"))
    stage.due(batch, "prepare")
    stage.run()
    stage.answers["Create"] = None
    stage.later(hours=24)
    assert [job.correlation["RunbookVersion"] for job in stage.jobs] == [1, 2]


def test_v3_a_late_failure_of_a_superseded_step_fails_nobody(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(WITH_ROLLBACK + "# 2\n"))
    stage.answer(stage.jobs[0], Failing())
    stage.run()
    assert stage.member(batch).status is MemberStatus.ACTIVE
    assert stage.rollbacks(batch) == []


def test_v4_unfinished_phases_of_the_old_version_finish_under_it_before_the_new_ones_begin(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.answers["Create"] = Silent()
    stage.due(batch, "prepare", "cutover")
    stage.run()
    stage.change_version(batch, stage.publish(TWO_PHASES + "# 2\n"), keep_phases=True)
    stage.due_of(batch, 2, "prepare")
    stage.run()
    assert stage.functions() == ["Create"]
    stage.answers["Create"] = None
    stage.answer(stage.jobs[0])
    stage.run()
    seen = [(job.function_name, job.correlation["RunbookVersion"]) for job in stage.jobs]
    assert seen == [("Create", 1), ("Move", 1), ("Finish", 1), ("Create", 2)]


def test_v6_publishing_does_not_stop_polls_of_phases_that_go_on(stage: Stage) -> None:
    """The defect: publishing stops polling."""
    batch = stage.batch(stage.publish(WITH_POLL))
    stage.answers["Create"] = {"complete": False}
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(WITH_POLL + "# 2\n"), keep_phases=True)
    stage.answers["Create"] = {"complete": True, "Id": 1}
    stage.later(minutes=1)
    assert stage.states(batch) == {"create": "succeeded", "license": "succeeded"}


def test_v6_compensations_finish_under_their_own_version(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 2)
    stage.answers.update(
        Create=lambda job: {"Id": 1} if job.parameters["Email"] == "u0" else Silent(),
        License=Failing(),
        Unlicense=Silent(),
    )
    stage.due(batch, "prepare")
    stage.run()
    without = WITH_ROLLBACK.replace("  undo:", "  undo:\n    - {name: other, worker_id: worker-01, function: Other}")
    stage.change_version(batch, stage.publish(without))
    stage.answer(stage.jobs[-1])
    stage.run()
    undoing = [(job.function_name, job.correlation["RunbookVersion"]) for job in stage.jobs[-2:]]
    assert undoing == [("Unlicense", 1), ("Delete", 1)]


def test_v3_a_batch_whose_new_phases_end_is_over(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "prepare")
    stage.run()
    stage.change_version(batch, stage.publish(TWO_PHASES + "# 2\n"))
    stage.due(batch, "prepare", "cutover", "check")
    stage.run()
    assert stage.reload(batch).status is BatchStatus.COMPLETED
