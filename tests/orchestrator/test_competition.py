"""Rules O11 and M5 with competing connections: one transaction is in the middle of its work when another begins."""

import threading
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Any

import pytest

from matoolkit import ports
from matoolkit.admin import gating, manual
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.manual import ManualChange, create_manual_batch
from matoolkit.admin.recording import record
from matoolkit.admin.retrying import retry_members
from matoolkit.announcing.gatekeeping import take_back_all
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import BatchStatus, PhaseStatus
from matoolkit.errors import InvalidMembers, NothingPaused, NothingToRetry, WrongBatchStatus
from matoolkit.ports import Delivery, Outgoing
from matoolkit.store.gatekeeping import unopened_gates
from matoolkit.store.sql.transaction import Transaction
from tests.databases import Database
from tests.stage import Failing, Silent, Stage
from tests.threads import in_threads

from .runbooks import ONE_STEP, TWO_PHASES, TWO_STEPS, WITH_RETRY, WITH_ROLLBACK

LONG_ENOUGH_TO_RUN_INTO_A_LOCK = 0.3


class Pause:
    """Stops the first process in the middle of its transaction, while the other begins."""

    def __init__(self) -> None:
        self.reached = threading.Event()

    def __call__(self) -> None:
        if not self.reached.is_set():
            self.reached.set()
            threading.Event().wait(LONG_ENOUGH_TO_RUN_INTO_A_LOCK)


class PausingBus(SqlBus):
    """A bus that pauses after what it does in a transaction."""

    pause: Pause

    def publish(self, tx: ports.Transaction, messages: Sequence[Outgoing]) -> None:
        super().publish(tx, messages)
        self.pause()

    def withdraw(self, tx: ports.Transaction, job_ids: Collection[str]) -> list[str]:
        withdrawn = super().withdraw(tx, job_ids)
        self.pause()
        return withdrawn


@pytest.fixture
def stages(database: Database, clock: VirtualClock) -> list[Stage]:
    return [Stage(database.open(clock), clock) for _ in range(2)]


def overlapping(first: Stage, begin: Callable[[Stage], Any], then: Callable[[], Any]) -> None:
    """Let one thing be in the middle of its transaction when another begins."""
    pause = Pause()
    bus = PausingBus(first.store)
    bus.pause = pause
    first.bus = bus

    def handle(tx: Transaction, deliveries: Sequence[Delivery]) -> None:
        first.orchestrator.handle(tx, deliveries)
        pause()

    first.results = Consumer(first.store, first.bus, RESULTS_OF_ORCHESTRATOR, handle, most=1)
    first.events = Consumer(first.store, first.bus, EVENTS_OF_ORCHESTRATOR, handle, most=1)

    def second() -> None:
        assert pause.reached.wait(20)
        then()

    in_threads([lambda: begin(first), second])


def results_one_by_one(stage: Stage) -> Callable[[], int]:
    return Consumer(stage.store, stage.bus, RESULTS_OF_ORCHESTRATOR, stage.orchestrator.handle, most=1).turn


@pytest.mark.parametrize("runbook", [ONE_STEP, WITH_RETRY], ids=["plain", "retry"])
def test_o11_two_results_that_finish_a_phase_at_the_same_moment(stages: list[Stage], runbook: str) -> None:
    one, other = stages
    batch = one.batch(one.publish(runbook), 2)
    one.due(batch, "prepare")
    one.handle()
    one.work()
    overlapping(one, lambda stage: stage.results.turn(), results_one_by_one(other))
    assert other.phases(batch) == {"prepare": PhaseStatus.COMPLETED}
    assert other.reload(batch).status is BatchStatus.COMPLETED


def test_o9_two_compensations_that_end_a_batch_at_the_same_moment(stages: list[Stage]) -> None:
    one, other = stages
    batch = one.batch(one.publish(WITH_ROLLBACK), 2)
    one.answers.update(Create={"Id": 1}, Tell=Silent())
    one.due(batch, "prepare", "cutover")
    one.run()
    batch = one.batch(one.publish(WITH_ROLLBACK, "other"), 2)
    one.due(batch, "prepare", "cutover")
    one.answers["Create"] = Silent()
    one.run()
    one.leave(batch, "u0", "u1")
    one.run()
    for job in one.jobs[-2:]:
        one.answer(job)
    one.run()
    for job in one.jobs[-2:]:
        assert job.function_name == "Tell"
        one.answer(job)
    overlapping(one, lambda stage: stage.results.turn(), results_one_by_one(other))
    assert other.reload(batch).status is BatchStatus.CANCELLED


def in_either_order(one: Stage, other: Stage, result_first: bool, change: Callable[[Stage], Any]) -> None:
    if result_first:
        overlapping(one, lambda stage: stage.results.turn(), lambda: change(other))
    else:
        overlapping(one, change, other.results.turn)
    other.handle()


def under_way(one: Stage) -> Any:
    """A batch with a result that waits to be handled: a next step would follow from it."""
    batch = one.batch(one.publish(TWO_STEPS), 2)
    one.answers["Create"] = lambda job: {"Id": 1} if job.parameters["Email"] == "u0" else Silent()
    one.due(batch, "prepare")
    one.handle()
    one.work()
    return batch


@pytest.mark.parametrize("result_first", [True, False])
def test_o12_a_result_racing_a_cancel_leaves_nothing_open_and_nothing_sent(
    stages: list[Stage], result_first: bool
) -> None:
    one, other = stages
    batch = under_way(one)
    in_either_order(one, other, result_first, lambda stage: cancel_batch(stage.store, stage.bus, batch.id, by="anna"))
    assert {step.status for step in other.steps(batch)} <= {"succeeded", "cancelled"}
    assert other.take_jobs() == []
    assert other.reload(batch).status is BatchStatus.CANCELLED


@pytest.mark.parametrize("result_first", [True, False])
def test_o5_a_result_racing_a_removal_sends_no_step_to_who_left(stages: list[Stage], result_first: bool) -> None:
    one, other = stages
    batch = under_way(one)
    in_either_order(one, other, result_first, lambda stage: stage.leave(batch, "u0"))
    assert [job.function_name for job in other.take_jobs()] == []
    assert other.states(batch, "u0")["license"] == "cancelled"
    assert other.phases(batch) == {"prepare": PhaseStatus.DISPATCHED}, "the other one is still at it"


@pytest.mark.parametrize("result_first", [True, False])
def test_v3_a_result_racing_a_new_version_lets_the_member_do_one_thing_at_a_time(
    stages: list[Stage], result_first: bool
) -> None:
    one, other = stages
    batch = under_way(one)
    new = one.publish(TWO_STEPS + "# 2\n")
    in_either_order(one, other, result_first, lambda stage: stage.change_version(batch, new))
    other.due(batch, "prepare")
    other.handle()
    sent = [job for job in other.take_jobs() if job.parameters.get("Email") == "u0" or "User" in job.parameters]
    assert [(job.function_name, job.correlation["RunbookVersion"]) for job in sent] == [("Create", 2)]


@pytest.mark.parametrize("result_first", [True, False])
def test_o16_a_result_racing_the_sweep_of_lost_jobs_counts_once(stages: list[Stage], result_first: bool) -> None:
    one, other = stages
    batch = one.batch(one.publish(WITH_RETRY))
    one.answers["Create"] = Silent()
    one.due(batch, "prepare")
    one.run()
    one.clock.advance(timedelta(hours=24))
    one.answer(one.jobs[0])

    def sweep(stage: Stage) -> None:
        stage.orchestrator = type(stage.orchestrator)(stage.store, stage.bus)
        stage.orchestrator.sweep()

    in_either_order(one, other, result_first, sweep)
    other.later(minutes=10)
    assert [job.job_id for job in (*one.jobs, *other.jobs)] == ["step-1-attempt-1"]
    assert other.reload(batch).status is BatchStatus.COMPLETED


def pausing_upload(monkeypatch: pytest.MonkeyPatch) -> Pause:
    """Let the next upload pause when it has let people in, before it commits."""
    pause = Pause()

    def recorded(*change: Any) -> int:
        pause()
        return record(*change)

    monkeypatch.setattr(manual, "record", recorded)
    return pause


def upload(stage: Stage) -> ManualChange | None:
    try:
        return create_manual_batch(stage.store, "wave", [{"Email": "ada"}], by="anna")
    except InvalidMembers:
        return None


def test_o13_of_two_uploads_at_the_same_moment_one_has_the_person(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stages
    one.publish(ONE_STEP)
    pause = pausing_upload(monkeypatch)
    changes = in_threads([lambda: upload(one), lambda: pause.reached.wait(20) and upload(other)])
    assert [change is not None for change in changes] == [True, False]


def test_o13_an_upload_and_a_retry_at_the_same_moment_one_has_the_person(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stages
    batch = one.batch(one.publish(ONE_STEP), ["ada"])
    one.answers["Create"] = Failing()
    one.due(batch, "prepare")
    one.run()
    pause = pausing_upload(monkeypatch)

    def retry_meanwhile() -> None:
        assert pause.reached.wait(20)
        with pytest.raises(NothingToRetry, match="another batch has ada"):
            retry_members(other.store, other.bus, batch.id, by="anna")

    in_threads([lambda: upload(one), retry_meanwhile])


def test_any_number_of_orchestrators_work_beside_each_other(database: Database, clock: VirtualClock) -> None:
    stages = [Stage(database.open(clock), clock) for _ in range(4)]
    worker, orchestrators = stages[0], stages[1:]
    runbook = worker.publish(TWO_PHASES)
    batches = [worker.batch_at(runbook, [f"{number}-{n}" for n in range(20)], days=number) for number in range(1, 5)]
    for batch in batches:
        worker.due(batch, "prepare", "cutover", "check")
    done = threading.Event()

    def orchestrate(stage: Stage) -> None:
        events = Consumer(stage.store, stage.bus, EVENTS_OF_ORCHESTRATOR, stage.orchestrator.handle, most=7)
        results = Consumer(stage.store, stage.bus, RESULTS_OF_ORCHESTRATOR, stage.orchestrator.handle, most=7)
        while not done.is_set():
            events.turn()
            results.turn()

    def work() -> None:
        try:
            for _ in range(2000):
                worker.work()
                if all(worker.reload(batch).status is BatchStatus.COMPLETED for batch in batches):
                    return
        finally:
            done.set()

    in_threads([work, *(lambda stage=stage: orchestrate(stage) for stage in orchestrators)])
    assert {worker.reload(batch).status for batch in batches} == {BatchStatus.COMPLETED}
    names = [job.job_id for job in worker.jobs]
    assert len(names) == len(set(names)) == 4 * 20 * 4


def test_g8_of_two_people_who_resume_at_once_one_opens_the_gate_and_the_other_is_told(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stages
    batch = one.batch(one.publish(ONE_STEP), 1)
    one.due(batch, "prepare")
    one.handle()
    gating.pause(one.store, one.bus, gating.Subject(), by="anna", reason="legal hold")
    pause, look = Pause(), unopened_gates

    def look_and_wait(tx: Transaction) -> Any:
        found = look(tx)
        pause()
        return found

    monkeypatch.setattr(gating, "unopened_gates", look_and_wait)

    def resume(stage: Stage, by: str) -> int:
        try:
            done = gating.resume(stage.store, stage.bus, gating.Subject(), by=by, reason=None)
        except NothingPaused:
            return 0
        return len(done.opened)

    def second() -> int:
        assert pause.reached.wait(20)
        return resume(other, "kim")

    assert sorted(in_threads([lambda: resume(one, "anna"), second])) == [0, 1]
    one.handle()
    assert len(one.take_jobs()) == 1


def test_g8_a_pause_that_somebody_ends_at_once_is_answered_as_ended(
    stages: list[Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stages
    batch = one.batch(one.publish(ONE_STEP), 1)
    one.due(batch, "prepare")
    one.handle()

    def resume_meanwhile(*args: Any) -> Any:
        gating.resume(other.store, other.bus, gating.Subject(), by="kim", reason="it is over")
        return take_back_all(*args)

    monkeypatch.setattr(gating, "take_back_all", resume_meanwhile)
    done = gating.pause(one.store, one.bus, gating.Subject(), by="anna", reason="legal hold")
    assert (done.gate.opened_by, done.jobs.taken_back) == ("kim", 0)
    one.handle()
    assert len(one.take_jobs()) == 1, "nothing is taken back that nobody would send again"


def test_g8_a_pause_beside_a_resume_stays_shut_and_the_answer_names_it(stages: list[Stage]) -> None:
    one, other = stages
    subject = gating.Subject(runbook_name="wave")
    one.batch(one.publish(ONE_STEP), 1)
    gating.pause(one.store, one.bus, subject, by="anna", reason="legal hold")
    late = gating.pause(other.store, other.bus, gating.Subject(), by="kim", reason="outage").gate
    done = gating.resume(one.store, one.bus, subject, by="anna", reason=None)
    assert [gate.id for gate in done.still] == [late.id]


def test_g2_what_has_ended_cannot_be_paused(stages: list[Stage]) -> None:
    one, _ = stages
    batch = one.batch(one.publish(ONE_STEP), 1)
    cancel_batch(one.store, one.bus, batch.id, by="anna")
    with pytest.raises(WrongBatchStatus):
        gating.pause(one.store, one.bus, gating.Subject(batch_id=batch.id), by="anna", reason="legal hold")
