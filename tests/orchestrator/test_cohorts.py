"""Rules C1 to C5: pilots go first, so many are in a phase at once, and nobody begins it after too many failures."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.excluding import exclude_member
from matoolkit.admin.gating import Subject, open_gate, pause, resume
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Chosen, Terms
from matoolkit.admin.undoing import undo_members
from matoolkit.admin.undoplan import Wanted
from matoolkit.domain.gates import GateKind
from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.errors import GateShut
from matoolkit.orchestrator import places
from matoolkit.scheduler.gates import look_after_gates
from matoolkit.scheduler.soaks import wake_after_soaks
from matoolkit.store.gatekeeping import GateRow, gates_page
from matoolkit.store.places import candidates
from matoolkit.store.schema import phase_executions
from tests.stage import Failing, Stage

STEPS = """
phases:
  - name: prepare
    offset: T-5d
    rollout: {ROLLOUT}
    steps:
      - {name: create, worker_id: worker-01, function: Create, params: {Email: '{{Email}}'}}
      - {name: license, worker_id: worker-01, function: License, params: {Email: '{{Email}}'}}
  - name: cutover
    offset: T-0
    steps:
      - {name: move, worker_id: worker-01, function: Move, params: {Email: '{{Email}}'}}
"""
ONE_STEP = STEPS.replace(
    "      - {name: license, worker_id: worker-01, function: License, params: {Email: '{{Email}}'}}\n", ""
)


def runbook(rollout: str, pilot: str | None = None, steps: str = STEPS) -> str:
    return (f"pilot: {{{pilot}}}" if pilot else "") + steps.replace("ROLLOUT", rollout)


def started(
    stage: Stage, rollout: str, members: int | Sequence[str], pilot: str | None = None, steps: str = ONE_STEP
) -> Any:
    batch = stage.batch(stage.publish(runbook(rollout, pilot, steps)), members)
    stage.due(batch, "prepare")
    stage.handle()
    return batch


def keys(jobs: Sequence[WorkerJob]) -> list[str]:
    return [str(job.parameters["Email"]) for job in jobs]


def told(jobs: Sequence[WorkerJob]) -> list[tuple[str, str]]:
    return sorted((job.function_name, str(job.parameters["Email"])) for job in jobs)


def answered(stage: Stage, jobs: Sequence[WorkerJob], *failing: str) -> None:
    for job in jobs:
        stage.answer(job, Failing() if job.parameters["Email"] in failing else None)
    stage.handle()


def budgets(stage: Stage, *, is_unopened: bool = True) -> list[GateRow]:
    with stage.store.reading() as tx:
        return [gate for gate in gates_page(tx, is_unopened=is_unopened) if gate.kind is GateKind.BUDGET]


def opened(stage: Stage, allow: int | None = None) -> None:
    (gate,) = budgets(stage)
    open_gate(stage.store, stage.bus, gate.id, by="anna", reason="it is understood", allow=allow)
    stage.handle()


def swept(stage: Stage) -> None:
    """Do what the scheduler's short timer does about gates."""
    look_after_gates(stage.store, stage.bus, lambda _: None)
    wake_after_soaks(stage.store, stage.bus, lambda _: None)
    stage.handle()


# C1: who is a pilot


@pytest.mark.parametrize(
    ("pilot", "expected"),
    [
        ("count: 2", ["u0", "u1"]),
        ("percent: 30", ["u0", "u1"]),
        ("percent: 1", ["u0"]),
        ("count: 9", ["u0", "u1", "u2", "u3", "u4"]),
    ],
)
def test_c1_by_number_the_lowest_ids_are_pilots(stage: Stage, pilot: str, expected: list[str]) -> None:
    batch = started(stage, "pilot_first: true", 5, pilot)
    assert stage.pilots(batch) == expected
    assert keys(stage.take_jobs()) == expected


def test_c1_by_number_who_left_before_the_first_phase_is_none(stage: Stage) -> None:
    batch = stage.batch(stage.publish(runbook("pilot_first: true", "count: 2")), 5)
    stage.leave(batch, "u0")
    stage.handle()
    stage.due(batch, "prepare")
    assert stage.pilots(batch) == ["u1", "u2"]


def test_c1_by_column_it_follows_the_row_until_the_first_phase_begins(stage: Stage) -> None:
    batch = stage.batch(stage.publish(runbook("pilot_first: true", "column: NAME")), 3)
    stage.refresh(batch, "u0", {"Email": "u0", "Name": "YES"})
    stage.refresh(batch, "u1", {"Email": "u1", "Name": "no"})
    stage.refresh(batch, "u2", {"Email": "u2", "Name": True})
    stage.due(batch, "prepare")
    stage.refresh(batch, "u1", {"Email": "u1", "Name": "yes"})
    stage.due(batch, "cutover")
    assert stage.pilots(batch) == ["u0", "u2"]


def test_c1_nobody_becomes_a_pilot_later(stage: Stage) -> None:
    text = runbook("pilot_first: true", "count: 2")
    batch = started(stage, "pilot_first: true", 2, "count: 2")
    stage.join(batch, "late")
    stage.leave(batch, "u0")
    stage.come_back(batch, "u0")
    stage.handle()
    stage.change_version(batch, stage.publish(text.replace("count: 2", "count: 9")))
    stage.due(batch, "prepare")
    stage.handle()
    assert stage.pilots(batch) == ["u0", "u1"]


def test_c1_who_is_chosen_in_no_phase_that_begins_is_chosen_in_no_later_one(stage: Stage) -> None:
    """A new version that asks for pilots finds a batch that has begun."""
    batch = started(stage, "at_once: 9", 3)
    stage.change_version(batch, stage.publish(runbook("pilot_first: true", "count: 2")))
    stage.due(batch, "prepare")
    stage.handle()
    assert stage.pilots(batch) == []
    assert keys(stage.take_jobs())[-3:] == ["u0", "u1", "u2"], "without pilots nobody waits"


# C2: pilots go first


def test_c2_the_others_begin_when_the_last_pilot_has_ended_the_phase(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true", 5, "count: 2", STEPS)
    answered(stage, stage.take_jobs())
    one, two = stage.take_jobs()
    answered(stage, [one])
    assert stage.take_jobs() == []
    answered(stage, [two])
    assert keys(stage.take_jobs()) == ["u2", "u3", "u4"]
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_c2_with_a_soak_they_begin_that_long_after_the_last_pilot(stage: Stage) -> None:
    """The defect: the soak counts from the first pilot."""
    started(stage, "pilot_first: true, soak: 2h", 4, "count: 2")
    one, two = stage.take_jobs()
    answered(stage, [one])
    stage.later(hours=1)
    answered(stage, [two])
    for hours, expected in ((1, []), (0.9, []), (0.2, ["u2", "u3"])):
        stage.later(hours=hours)
        swept(stage)
        assert keys(stage.take_jobs()) == expected


def test_c2_others_are_woken_once(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true, soak: 2h", 4, "count: 2")
    answered(stage, stage.take_jobs())
    assert wake_after_soaks(stage.store, stage.bus, lambda _: None) == 0
    stage.later(hours=2)
    assert wake_after_soaks(stage.store, stage.bus, lambda _: None) == 1
    assert wake_after_soaks(stage.store, stage.bus, lambda _: None) == 0
    stage.handle()
    assert keys(stage.take_jobs()) == ["u2", "u3"]
    assert stage.reload(batch).status is BatchStatus.ACTIVE


def test_c2_a_reminder_or_a_resume_does_not_let_others_begin_early(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true, soak: 2h", 4, "count: 2")
    stage.remind(batch, "prepare")
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="anna", reason="legal hold")
    resume(stage.store, stage.bus, Subject(batch_id=batch.id), by="anna", reason=None)
    stage.handle()
    jobs = stage.take_jobs()
    assert keys(jobs) == ["u0", "u1"]
    answered(stage, jobs)
    stage.remind(batch, "prepare", times=2)
    stage.join(batch, "late")
    stage.handle()
    assert stage.take_jobs() == []


def test_c2_a_pilot_who_leaves_is_not_waited_for(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true", 4, "count: 2")
    (one, _) = stage.take_jobs()
    answered(stage, [one])
    stage.leave(batch, "u1")
    stage.handle()
    assert keys(stage.take_jobs()) == ["u2", "u3"]


def test_c2_a_pilot_who_has_yet_to_catch_up_is_waited_for(stage: Stage) -> None:
    """Who joins in the tick in which the phase begins may be announced after it."""
    batch = stage.batch(stage.publish(runbook("pilot_first: true", "column: NAME", ONE_STEP)), 2)
    stage.add_row(batch, "new")
    stage.refresh(batch, "new", {"Email": "new", "Name": "yes"})
    stage.due(batch, "prepare")
    stage.handle()
    assert (budgets(stage), stage.take_jobs()) == ([], [])
    stage.announce(batch, "new", times=1)
    stage.handle()
    jobs = stage.take_jobs()
    assert keys(jobs) == ["new"]
    answered(stage, jobs)
    assert keys(stage.take_jobs()) == ["u0", "u1"]


def test_c2_without_pilots_nobody_waits(stage: Stage) -> None:
    started(stage, "pilot_first: true, soak: 2h", 3, "column: NAME")
    assert keys(stage.take_jobs()) == ["u0", "u1", "u2"]
    assert budgets(stage) == []


def test_c2_a_pilot_that_fails_shuts_the_budget(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true", 4, "count: 2")
    answered(stage, stage.take_jobs(), "u1")
    (gate,) = budgets(stage)
    assert (gate.batch_id, gate.reach, gate.shut_by) == (batch.id, "start", "system")
    assert gate.reason == "1 of 2 pilots has failed in phase 'prepare', and none may"
    assert stage.take_jobs() == []
    opened(stage)
    assert keys(stage.take_jobs()) == ["u2", "u3"]


def test_c2_max_failures_says_how_many_of_the_pilots_may_fail(stage: Stage) -> None:
    started(stage, "pilot_first: true, max_failures: 25%", 12, "count: 4")
    answered(stage, stage.take_jobs(), "u1")
    assert budgets(stage) == []
    assert len(stage.take_jobs()) == 8


def test_c2_a_percentage_of_failures_is_one_of_the_pilots(stage: Stage) -> None:
    started(stage, "pilot_first: true, max_failures: 25%", 12, "count: 4")
    answered(stage, stage.take_jobs(), "u1", "u2")
    (gate,) = budgets(stage)
    assert gate.reason == "2 of 4 pilots have failed in phase 'prepare', and 1 may"


def excluded(stage: Stage, batch: Any) -> None:
    exclude_member(stage.store, stage.bus, "wave", "u1", by="anna", reason="it did not work")


def undone(stage: Stage, batch: Any) -> None:
    undo_members(stage.store, stage.bus, batch.id, Wanted(member_keys=["u1"]), by="anna", reason="it did not work")


@pytest.mark.parametrize("takes_back", [excluded, undone])
def test_c2_a_pilot_who_is_undone_or_excluded_counts_as_failed(stage: Stage, takes_back: Callable[..., None]) -> None:
    batch = started(stage, "pilot_first: true, soak: 2h", 4, "count: 2")
    answered(stage, stage.take_jobs())
    takes_back(stage, batch)
    stage.handle()
    assert [gate.reason for gate in budgets(stage)] == ["1 of 2 pilots has failed in phase 'prepare', and none may"]
    stage.clock.advance(timedelta(hours=2))
    swept(stage)
    assert stage.take_jobs() == []


def test_c2_pilots_of_whom_none_went_through_shut_the_budget(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true, max_failures: 2", 4, "count: 2")
    stage.leave(batch, "u0", "u1")
    stage.handle()
    (gate,) = budgets(stage)
    assert gate.reason == "no pilot of 2 went through phase 'prepare'"
    stage.work()
    stage.handle()
    assert {job.parameters["Email"] for job in stage.jobs} <= {"u0", "u1"}
    opened(stage)
    assert keys(stage.take_jobs()) == ["u2", "u3"]
    assert budgets(stage) == [], "what became of the pilots was decided"


def test_c2_a_later_phase_that_no_pilot_can_go_through_waits_for_a_person(stage: Stage) -> None:
    first = "pilot_first: true"
    text = runbook(first, "count: 1", ONE_STEP).replace("offset: T-0\n", f"offset: T-0\n    rollout: {{{first}}}\n")
    batch = stage.batch(stage.publish(text), 3)
    stage.due(batch, "prepare")
    stage.handle()
    answered(stage, stage.take_jobs())
    answered(stage, stage.take_jobs())
    stage.leave(batch, "u0")
    stage.due(batch, "cutover")
    stage.handle()
    assert [gate.reason for gate in budgets(stage)] == ["no pilot of 1 went through phase 'cutover'"]
    assert "Move" not in stage.functions() + [job.function_name for job in stage.take_jobs()]


def test_c2_a_soak_that_a_pilots_retry_interrupts_begins_again(stage: Stage) -> None:
    batch = started(stage, "pilot_first: true, soak: 2h, max_failures: 1", 4, "count: 2")
    answered(stage, stage.take_jobs(), "u1")
    stage.clock.advance(timedelta(hours=1))
    stage.retry(batch, "u1")
    stage.handle()
    stage.clock.advance(timedelta(hours=3))
    swept(stage)
    (job,) = stage.take_jobs()
    assert keys([job]) == ["u1"]
    answered(stage, [job])
    stage.clock.advance(timedelta(hours=1))
    swept(stage)
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(hours=1))
    swept(stage)
    assert keys(stage.take_jobs()) == ["u2", "u3"]


# C3 and C4: budgets


def test_c3_a_percentage_is_one_of_those_who_were_active_when_the_phase_began(stage: Stage) -> None:
    """The defect (ansible 32255): a percentage of those who are left stops the play after one failure."""
    batch = started(stage, "max_failures: 20%, at_once: 10", 10)
    jobs = stage.take_jobs()
    answered(stage, jobs[:7])
    stage.leave(batch, *(f"u{number}" for number in range(7)))
    stage.handle()
    answered(stage, jobs[7:9], "u7", "u8")
    assert budgets(stage) == []
    answered(stage, jobs[9:], "u9")
    assert [gate.reason for gate in budgets(stage)] == ["3 members have failed in phase 'prepare', and 2 may"]


def test_c4_whoever_has_begun_goes_on_and_nobody_begins_that_phase_or_a_later_one(stage: Stage) -> None:
    batch = started(stage, "max_failures: 0, at_once: 3", 6, steps=STEPS)
    one, two, three = stage.take_jobs()
    answered(stage, [one, two], "u1")
    assert len(budgets(stage)) == 1
    stage.due(batch, "cutover")
    answered(stage, [three])
    jobs = stage.take_jobs()
    assert told(jobs) == [("License", "u0"), ("License", "u2")]
    answered(stage, jobs)
    assert stage.take_jobs() == []
    opened(stage, allow=5)
    moved, created = [("Move", "u0"), ("Move", "u2")], [("Create", "u3"), ("Create", "u4"), ("Create", "u5")]
    assert told(stage.take_jobs()) == [*created, *moved]


def test_c4_who_comes_from_an_earlier_phase_in_the_same_pile_does_not_begin(stage: Stage) -> None:
    text = ONE_STEP.replace("rollout: {ROLLOUT}", "").replace("offset: T-0\n", "offset: T-0\n    rollout: {ROLLOUT}\n")
    batch = stage.batch(stage.publish(runbook("max_failures: 0", steps=text)), 2)
    stage.due(batch, "prepare", "cutover")
    stage.handle()
    one, two = stage.take_jobs()
    answered(stage, [one])
    (move,) = stage.take_jobs()
    stage.answer(two)
    answered(stage, [move], "u0")
    assert (len(budgets(stage)), stage.take_jobs()) == (1, [])


def test_c4_a_manual_batch_is_not_advanced_past_a_budget(stage: Stage) -> None:
    stage.publish(runbook("max_failures: 0", steps=ONE_STEP))
    rows = [{"Email": "u0", "Name": "Ada", "Start": ""}, {"Email": "u1", "Name": "Bob", "Start": ""}]
    batch_id = create_manual_batch(stage.store, "wave", rows, by="anna").batch.id
    advance_batch(stage.store, stage.bus, batch_id, by="anna")
    stage.handle()
    answered(stage, stage.take_jobs(), "u0")
    with pytest.raises(GateShut, match="1 member has failed in phase 'prepare', and none may"):
        advance_batch(stage.store, stage.bus, batch_id, by="anna")
    opened(stage)
    assert advance_batch(stage.store, stage.bus, batch_id, by="anna").phase_name == "cutover"


def test_c4_stop_keeps_every_job_of_the_phase_and_takes_back_what_nobody_has_received(stage: Stage) -> None:
    batch = started(stage, "max_failures: 0, on_exceeded: stop", 4, steps=STEPS)
    jobs = stage.take_jobs(most=2)
    answered(stage, jobs, "u1")
    assert [gate.reach for gate in budgets(stage)] == ["send"]
    stage.sweep()
    assert stage.take_jobs() == []
    assert stage.states(batch, "u0") == {"create": "succeeded", "license": "pending"}
    assert stage.states(batch, "u2") == {"create": "pending", "license": "pending"}
    opened(stage)
    assert told(stage.take_jobs()) == [("Create", "u2"), ("Create", "u3"), ("License", "u0")]


def test_c4_stop_lets_compensations_go_on(stage: Stage) -> None:
    text = runbook("max_failures: 0, on_exceeded: stop", steps=STEPS) + (
        "rollbacks:\n  undo:\n    - {name: delete, worker_id: worker-01, function: Delete}\n"
    )
    text = text.replace("function: License, ", "function: License, on_failure: undo, ")
    batch = stage.batch(stage.publish(text), 2)
    stage.due(batch, "prepare")
    stage.handle()
    answered(stage, stage.take_jobs())
    answered(stage, stage.take_jobs(), "u0")
    assert [job.function_name for job in stage.take_jobs()] == ["Delete"]


def test_c4_after_opening_it_is_shut_again_after_so_many_more(stage: Stage) -> None:
    started(stage, "max_failures: 1, at_once: 10", 10)
    jobs = stage.take_jobs()
    answered(stage, jobs[:2], "u0", "u1")
    opened(stage, allow=2)
    answered(stage, jobs[2:4], "u2", "u3")
    assert budgets(stage) == []
    answered(stage, jobs[4:5], "u4")
    assert [gate.reason for gate in budgets(stage)] == ["5 members have failed in phase 'prepare', and 4 may"]
    opened(stage)
    answered(stage, jobs[5:6], "u5")
    assert [gate.reason for gate in budgets(stage)] == ["6 members have failed in phase 'prepare', and 5 may"]


def test_c3_a_retry_that_succeeds_gives_back(stage: Stage) -> None:
    batch = started(stage, "max_failures: 2, at_once: 10", 6)
    jobs = stage.take_jobs()
    answered(stage, jobs[:2], "u0", "u1")
    stage.retry(batch, "u0")
    stage.handle()
    answered(stage, stage.take_jobs())
    answered(stage, jobs[2:3], "u2")
    assert budgets(stage) == []
    answered(stage, jobs[3:4], "u3")
    assert len(budgets(stage)) == 1


def test_c3_who_fails_and_leaves_gives_nothing_back(stage: Stage) -> None:
    batch = started(stage, "max_failures: 1, at_once: 10", 6)
    jobs = stage.take_jobs()
    answered(stage, jobs[:1], "u0")
    stage.leave(batch, "u0")
    stage.handle()
    answered(stage, jobs[1:2], "u1")
    assert len(budgets(stage)) == 1


def test_c3_the_failure_of_who_begins_a_phase_again_does_not_count(stage: Stage) -> None:
    batch = started(stage, "max_failures: 1, at_once: 10", 6)
    jobs = stage.take_jobs()
    answered(stage, jobs[:1], "u0")
    chosen, terms = Chosen([stage.member(batch, "u0").id]), Terms(begin_with="prepare")
    retry_members(stage.store, stage.bus, batch.id, chosen, terms, by="anna", reason="all anew")
    stage.handle()
    answered(stage, jobs[1:2], "u1")
    assert budgets(stage) == []
    answered(stage, jobs[2:3], "u2")
    assert len(budgets(stage)) == 1


def test_c3_a_phase_that_was_opened_for_a_retry_of_some_has_no_budget(stage: Stage) -> None:
    """It never began for all, so nobody counted how many were active then."""
    started(stage, "max_failures: 0", 3)
    with stage.store.transaction() as tx:
        tx.execute(update(phase_executions).values(member_count=None))
    answered(stage, stage.take_jobs(), "u0", "u1")
    assert budgets(stage) == []


def test_c4_a_new_version_counts_anew_and_the_gate_of_the_old_one_opens(stage: Stage) -> None:
    batch = started(stage, "max_failures: 0", 3)
    answered(stage, stage.take_jobs(), "u0")
    stage.change_version(batch, stage.publish(runbook("max_failures: 0", steps=ONE_STEP)))
    stage.due(batch, "prepare")
    stage.handle()
    assert keys(stage.take_jobs()) == ["u1", "u2"]
    swept(stage)
    (gate,) = budgets(stage, is_unopened=False)
    assert (gate.opened_by, gate.allowed) == ("system", None)


def test_c4_what_a_person_allowed_counts_after_a_gate_that_opened_by_itself(stage: Stage) -> None:
    """The defect: the gate of a phase that had ended opened without an allowance, and a retry met the runbook's."""
    text = runbook("max_failures: 0", steps=ONE_STEP[: ONE_STEP.index("  - name: cutover")])
    batch = stage.batch(stage.publish(text), 5)
    stage.due(batch, "prepare")
    stage.handle()
    jobs = stage.take_jobs()
    answered(stage, jobs[:1], "u0")
    opened(stage, allow=2)
    answered(stage, jobs[1:4], "u1", "u2", "u3")
    answered(stage, jobs[4:])
    swept(stage)
    assert [gate.opened_by for gate in budgets(stage, is_unopened=False)] == ["system", "anna"]
    stage.retry(batch, "u0", "u1", "u2", "u3")
    stage.handle()
    answered(stage, stage.take_jobs(), "u0", "u1", "u2")
    assert budgets(stage) == [], "three may fail, as the person said"


def test_c4_failures_of_one_pile_shut_before_anybody_else_begins(stage: Stage) -> None:
    started(stage, "max_failures: 1, at_once: 2", 6)
    answered(stage, stage.take_jobs(), "u0", "u1")
    assert (len(budgets(stage)), stage.take_jobs()) == (1, [])


# C5: so many at once


def test_c5_so_many_members_are_in_a_phase_at_once_and_the_lowest_ids_are_next(stage: Stage) -> None:
    started(stage, "at_once: 2", 5, steps=STEPS)
    jobs = stage.take_jobs()
    assert keys(jobs) == ["u0", "u1"]
    answered(stage, jobs)
    second = stage.take_jobs()
    assert told(second) == [("License", "u0"), ("License", "u1")]
    answered(stage, second[1:])
    assert keys(stage.take_jobs()) == ["u2"]
    answered(stage, second[:1])
    assert keys(stage.take_jobs()) == ["u3"]


def test_c5_who_comes_with_a_message_has_no_advantage_over_who_waits(stage: Stage) -> None:
    text = ONE_STEP.replace("rollout: {ROLLOUT}", "").replace("offset: T-0\n", "offset: T-0\n    rollout: {ROLLOUT}\n")
    batch = stage.batch(stage.publish(runbook("at_once: 1", steps=text)), 3)
    stage.due(batch, "prepare", "cutover")
    stage.handle()
    jobs = stage.take_jobs()
    subject = Subject(runbook_name="wave", member_key="u0")
    pause(stage.store, stage.bus, subject, by="anna", reason="legal hold", let_finish=True)
    answered(stage, jobs[:1])
    assert stage.take_jobs() == []
    resume(stage.store, stage.bus, subject, by="anna", reason=None)
    # The answer of u2 is handled before the message that wakes u0.
    stage.answer(jobs[2])
    stage.results.turn()
    assert keys(stage.take_jobs()) == ["u0"]


def failed_u1(stage: Stage, jobs: Sequence[WorkerJob], _: Any) -> None:
    answered(stage, jobs[1:], "u1")


def left_u1(stage: Stage, _: Any, batch: Any) -> None:
    stage.leave(batch, "u1")
    stage.handle()


@pytest.mark.parametrize("ends", [failed_u1, left_u1])
def test_c5_a_place_is_free_when_its_member_fails_or_leaves(stage: Stage, ends: Callable[..., None]) -> None:
    batch = started(stage, "at_once: 2", 4)
    ends(stage, stage.take_jobs(), batch)
    assert keys(stage.take_jobs()) == ["u2"]


def test_c5_a_retry_asks_for_a_place_whatever_step_it_takes_up(stage: Stage) -> None:
    """The defect: only a first step asks."""
    batch = started(stage, "at_once: 1", 3, steps=STEPS)
    answered(stage, stage.take_jobs())
    answered(stage, stage.take_jobs(), "u0")
    stage.retry(batch, "u0")
    stage.handle()
    (job,) = stage.take_jobs()
    assert keys([job]) == ["u1"]
    answered(stage, [job])
    answered(stage, stage.take_jobs())
    (job,) = stage.take_jobs()
    assert (job.function_name, *keys([job])) == ("License", "u0"), "the lowest id is next"


def test_c5_polls_and_retries_go_on_in_their_place(stage: Stage) -> None:
    text = ONE_STEP.replace(
        "function: Create,",
        "function: Create, retry: {max_retries: 1, interval: 1m}, poll: {interval: 1m, timeout: 1h},",
    )
    batch = started(stage, "at_once: 1", 2, steps=text)
    stage.answer(stage.take_jobs()[0], {"complete": False})
    stage.later(minutes=0)
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(minutes=1))
    stage.sweep()
    stage.handle()
    stage.answer(stage.take_jobs()[0], Failing())
    stage.handle()
    assert stage.take_jobs() == []
    stage.clock.advance(timedelta(minutes=1))
    stage.sweep()
    stage.handle()
    (job,) = stage.take_jobs()
    assert keys([job]) == ["u0"]
    assert stage.places(batch) == ["u0"]


def test_c5_candidates_that_another_gate_keeps_do_not_starve_others(stage: Stage) -> None:
    batch = stage.batch(stage.publish(runbook("at_once: 2", steps=ONE_STEP)), 300)
    for key in [f"u{number}" for number in range(60)]:
        pause(stage.store, stage.bus, Subject(runbook_name="wave", member_key=key), by="anna", reason="legal hold")
    stage.due(batch, "prepare")
    stage.handle()
    assert keys(stage.take_jobs()) == ["u60", "u61"]


def test_c5_who_cannot_be_sent_takes_no_place(stage: Stage) -> None:
    text = runbook("at_once: 2", steps=ONE_STEP).replace("{{Email}}", "{{Nobody}}", 1)
    batch = stage.batch(stage.publish(text), 40)
    stage.refresh(batch, "u39", {"Email": "u39", "Nobody": "u39"})
    stage.due(batch, "prepare")
    stage.handle()
    assert keys(stage.take_jobs()) == ["u39"]
    assert sum(member.status is MemberStatus.FAILED for member in stage.members(batch)) == 39


def test_c5_a_paused_place_is_kept_and_one_that_is_taken_back_too(stage: Stage) -> None:
    batch = started(stage, "at_once: 2", 4)
    subject = Subject(runbook_name="wave", member_key="u0")
    assert pause(stage.store, stage.bus, subject, by="anna", reason="legal hold").jobs.taken_back == 1
    stage.remind(batch, "prepare")
    stage.handle()
    (job,) = stage.take_jobs()
    answered(stage, [job])
    assert keys(stage.take_jobs()) == ["u2"]
    resume(stage.store, stage.bus, subject, by="anna", reason=None)
    stage.handle()
    assert keys(stage.take_jobs()) == ["u0"]


def test_c5_a_late_joiner_waits_for_a_place(stage: Stage) -> None:
    batch = started(stage, "at_once: 1", 1)
    stage.join(batch, "late")
    stage.handle()
    (job,) = stage.take_jobs()
    answered(stage, [job])
    assert keys(stage.take_jobs()) == ["late"]


def test_c5_pilots_ask_for_places_too_and_others_do_not_take_them(stage: Stage) -> None:
    started(stage, "pilot_first: true, at_once: 2", 6, "count: 3")
    jobs = stage.take_jobs()
    assert keys(jobs) == ["u0", "u1"]
    answered(stage, jobs)
    (job,) = stage.take_jobs()
    assert keys([job]) == ["u2"]
    answered(stage, [job])
    assert keys(stage.take_jobs()) == ["u3", "u4"]


def test_c5_who_is_still_in_an_earlier_phase_takes_no_place_in_the_next(stage: Stage) -> None:
    text = runbook("at_once: 9", steps=ONE_STEP).replace("offset: T-0\n", "offset: T-0\n    rollout: {at_once: 1}\n")
    batch = stage.batch(stage.publish(text), 3)
    stage.due(batch, "prepare", "cutover")
    stage.handle()
    first, second, third = stage.take_jobs()
    answered(stage, [third])
    (job,) = stage.take_jobs()
    assert (job.function_name, *keys([job])) == ("Move", "u2")
    answered(stage, [first, second])
    assert stage.take_jobs() == []
    answered(stage, [job])
    assert keys(stage.take_jobs()) == ["u0"]


def test_c5_a_wave_goes_through_in_turns_to_its_end(stage: Stage) -> None:
    batch = started(stage, "at_once: 3", 20, steps=STEPS)
    most = 0
    while jobs := stage.take_jobs():
        most = max(most, len(stage.places(batch)))
        answered(stage, jobs[:2])
        for job in jobs[2:]:
            stage.answer(job)
        stage.handle()
    assert most == 3
    assert (stage.phases(batch)["prepare"], stage.places(batch)) == ("completed", [])


def test_c5_an_init_that_runs_again_keeps_who_waits_for_a_place_and_nobody_is_looked_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Phases that have begun go on under an init of a new version; who has not begun waits for it (rule V5)."""
    init = "init:\n  - {name: announce, worker_id: worker-01, function: Announce}\n"
    batch = started(stage, "at_once: 2", 9, steps=STEPS)
    (one, two) = stage.take_jobs()
    stage.change_version(batch, stage.publish(init + runbook("at_once: 2")), rerun_init=True, keep_phases=True)
    stage.handle()
    looked: list[int] = []

    def counting(*given: Any, **known: Any) -> Any:
        found = candidates(*given, **known)
        looked.append(len(found))
        return found

    monkeypatch.setattr(places, "candidates", counting)
    answered(stage, [one, two], "u0")
    assert sum(looked) == 0
    assert sorted(job.function_name for job in stage.take_jobs()) == ["Announce", "License"]
