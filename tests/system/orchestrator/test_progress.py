"""Rules O2, O3, R8, R9: members go through steps and phases in order, each at its own pace."""

from matoolkit.domain.states import BatchStatus, PhaseStatus
from tests.stage import Stage

TWO_STEPS = """
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: Create
        params: {Email: '{{Email}}'}
        output_params: {UserId: Id}
      - {name: license, worker_id: worker-01, function: License, params: {User: '{{UserId}}'}}
"""


def test_o2_a_phase_that_is_due_gives_each_member_its_steps_and_sends_the_first(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 3)
    stage.due(batch, "prepare")
    stage.handle()
    assert sorted(str(job.parameters["Email"]) for job in stage.take_jobs()) == ["u0", "u1", "u2"]
    assert len(stage.steps(batch)) == 6


def test_r8_a_step_sees_the_outputs_of_the_one_before_it_in_the_same_phase(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 2)
    stage.answers["Create"] = lambda job: {"id": f"id-of-{job.parameters['Email']}"}
    stage.due(batch, "prepare")
    stage.run()
    licensed = [str(job.parameters["User"]) for job in stage.jobs if job.function_name == "License"]
    assert sorted(licensed) == ["id-of-u0", "id-of-u1"]
    assert stage.phases(batch) == {"prepare": PhaseStatus.COMPLETED}
    assert stage.reload(batch).status is BatchStatus.COMPLETED
