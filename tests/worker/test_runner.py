"""W1: a worker fetches what there is room for, answers before it settles, and loses nothing."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest

from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.delivery import MAX_DELIVERIES
from matoolkit.domain.messages import ResultStatus
from matoolkit.errors import BusUnavailable, MessageRefused
from matoolkit.ports import Outgoing, Received, Subscription
from matoolkit.settings import Settings
from matoolkit.simulate.apart import BusApart
from matoolkit.system import build_orchestrator
from tests.waiting import until
from tests.workshop import Workshop, job_id_of


class NotedBus(SqlBus):
    """A bus that notes what is asked of it, and is down when told to be."""

    def __init__(self, inner: SqlBus) -> None:
        super().__init__(inner._store)  # noqa: SLF001
        self.asked: list[str] = []
        self.most: list[int] = []
        self.is_down = False

    def receive(self, subscription: Subscription, most: int) -> list[Received]:
        self.most.append(most)
        return self._note("receive") or super().receive(subscription, most)

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        self._note("answer")
        super().answer(answers, messages)

    def renew(self, messages: Sequence[Received]) -> list[Received]:
        self._note("renew")
        return super().renew(messages)

    def _note(self, what: str) -> list[Any]:
        self.asked.append(what)
        if self.is_down:
            raise BusUnavailable("the bus is away")
        return []


class PickyBus(SqlBus):
    """A bus that takes no answer to one job."""

    def answer(self, answers: Sequence[Outgoing], messages: Sequence[Received]) -> None:
        if any(message.message_id == job_id_of(2) for message in messages):
            raise MessageRefused(f"one of {len(answers)} messages", "its id is too long")
        super().answer(answers, messages)


def passed(clock: VirtualClock, seconds: float) -> bool:
    """Let time pass, while another thread looks at the clock."""
    clock.advance(timedelta(seconds=seconds))
    return True


@pytest.fixture
def noted(workshop: Workshop) -> NotedBus:
    return NotedBus(workshop.bus)


def test_w1_every_job_gets_one_result(workshop: Workshop) -> None:
    workshop.send("Do-It", *range(1, 201))
    with workshop.running(workshop.runner()):
        workshop.until_settled()
    results = workshop.results()
    assert len(results) == 200
    assert all(one.status is ResultStatus.SUCCESS for one in results.values())
    assert len(workshop.calls) == 200


def test_w1_jobs_run_at_the_same_time_in_as_many_threads_as_there_are(workshop: Workshop) -> None:
    workshop.send("Wait-ForDoor", 1, 2, 3, 4, 5)
    with workshop.running(workshop.runner(max_parallelism=3)):
        workshop.until_begun("u1", "u2", "u3")
        assert len(workshop.gates.begun) == 3
        workshop.gates.open("u2")
        workshop.until_begun("u4")
        workshop.gates.open("u1", "u3", "u4", "u5")
        workshop.until_settled()
    assert len(workshop.results()) == 5


def test_w1_no_more_is_fetched_than_there_is_room_for(workshop: Workshop, noted: NotedBus) -> None:
    workshop.send("Wait-ForDoor", *range(1, 10))
    with workshop.running(workshop.runner(bus=noted, max_parallelism=3)):
        workshop.until_begun("u1", "u2", "u3")
        assert noted.most == [3]
        # A second worker gets all the others.
        assert len(workshop.takeable()) == 6
        workshop.gates.open("u1", "u2", "u3")


def test_w1_a_slow_job_delays_no_other_result(workshop: Workshop) -> None:
    workshop.send("Wait-ForDoor", 1)
    workshop.send("Do-It", 2, 3, 4)
    with workshop.running(workshop.runner()):
        until(lambda: workshop.waiting() == 1)
        assert sorted(workshop.results()) == [job_id_of(2), job_id_of(3), job_id_of(4)]
        workshop.gates.open("u1")
        workshop.until_settled()


def test_w1_results_of_quick_jobs_leave_together(workshop: Workshop, noted: NotedBus) -> None:
    workshop.send("Do-It", *range(1, 501))
    with workshop.running(workshop.runner(bus=noted, max_parallelism=8)):
        workshop.until_settled()
    assert noted.asked.count("answer") < 250
    assert len(workshop.results()) == 500


def test_w1_a_job_whose_result_the_bus_never_takes_is_put_aside_and_stops_no_other(workshop: Workshop) -> None:
    workshop.send("Do-It", 1, 2, 3)
    with workshop.running(workshop.runner(bus=PickyBus(workshop.store))):
        workshop.until_settled()
    assert sorted(workshop.results()) == [job_id_of(1), job_id_of(3)]
    (letter,) = workshop.dead_letters()
    assert (letter.message_id, letter.reason) == (job_id_of(2), "Undeliverable")


def test_w1_a_crash_between_result_and_settlement_answers_once(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Do-It", 1)
    apart = BusApart(workshop.store)
    with crashing("bus.answered"), pytest.raises(SimulatedCrash), workshop.running(workshop.runner(bus=apart)):
        until(lambda: workshop.waiting("orchestrator"))
    assert workshop.waiting() == 1
    clock.advance(timedelta(seconds=61))
    with workshop.running(workshop.runner(bus=apart)):
        workshop.until_settled()
    assert len(workshop.calls) == 2
    assert workshop.waiting("orchestrator") == 1
    assert list(workshop.results()) == [job_id_of(1)]


def test_w1_a_crash_in_mid_job_leaves_it_to_the_bus(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Do-It", 1)
    with crashing("worker.called"), pytest.raises(SimulatedCrash), workshop.running(workshop.runner()):
        until(lambda: workshop.calls)
    assert workshop.results() == {}
    clock.advance(timedelta(seconds=61))
    with workshop.running(workshop.runner()):
        workshop.until_settled()
    assert list(workshop.results()) == [job_id_of(1)]


def test_w1_the_lock_of_a_running_job_is_renewed(workshop: Workshop, clock: VirtualClock, noted: NotedBus) -> None:
    workshop.send("Wait-ForDoor", 1)
    with workshop.running(workshop.runner(bus=noted)):
        workshop.until_begun("u1")
        for renewals in range(1, 6):
            clock.advance(timedelta(seconds=40))
            until(lambda expected=renewals: noted.asked.count("renew") >= expected)  # type: ignore[misc]
            assert workshop.takeable() == []
        workshop.gates.open("u1")
        workshop.until_settled()
    assert workshop.gates.begun == ["u1"]


def test_w1_a_job_that_comes_again_while_it_runs_is_not_begun_twice(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Wait-ForDoor", 1)
    runner = workshop.runner(max_parallelism=2)
    runner._settlement._renew_seconds = runner._settlement._renew_at = 1e9  # noqa: SLF001 - as if renewing were broken
    with workshop.running(runner):
        workshop.until_begun("u1")
        clock.advance(timedelta(seconds=61))
        until(lambda: workshop.deliveries() == [2])
        workshop.gates.open("u1")
        workshop.until_settled()
    assert workshop.gates.begun == ["u1"]
    assert list(workshop.results()) == [job_id_of(1)]


def test_w1_on_stop_running_jobs_end_and_the_rest_is_given_back(workshop: Workshop) -> None:
    workshop.send("Wait-ForDoor", 1, 2)
    with workshop.running(workshop.runner(max_parallelism=2)) as stop:
        workshop.until_begun("u1", "u2")
        workshop.send("Wait-ForDoor", 3)
        stop.set()
        workshop.gates.open("u1", "u2", "u3")
    assert sorted(workshop.results()) == [job_id_of(1), job_id_of(2)]
    assert [one.message_id for one in workshop.takeable()] == [job_id_of(3)]


def test_w1_after_the_grace_what_still_runs_is_given_back(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Wait-ForDoor", 1, 2)
    with workshop.running(workshop.runner(shutdown_grace_seconds=30)) as stop:
        workshop.until_begun("u1", "u2")
        stop.set()
        workshop.gates.open("u1")
        until(lambda: workshop.waiting() == 1)
        assert workshop.takeable() == []
        # The drain may begin a moment after the signal, so its grace may as well.
        until(lambda: passed(clock, 5) and workshop.takeable())
    assert list(workshop.results()) == [job_id_of(1)]
    workshop.gates.open("u2")


def test_w1_jobs_fetched_and_not_begun_are_given_back_at_once(workshop: Workshop) -> None:
    workshop.send("Do-It", *range(1, 60))
    workshop.send("Wait-ForDoor", *range(60, 100))
    with workshop.running(workshop.runner(max_parallelism=1)) as stop:
        workshop.until_begun("u60")
        stop.set()
        until(lambda: workshop.waiting() - len(workshop.takeable()) <= 1)
        workshop.gates.open("u60")
    assert len(workshop.results()) == 60
    assert workshop.waiting() == 39


def test_w1_what_was_fetched_too_early_is_given_back(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Do-It", *range(1, 60))
    workshop.send("Wait-ForDoor", *range(60, 100))
    with workshop.running(workshop.runner(max_parallelism=1)):
        workshop.until_begun("u60")
        given_back: list[Received] = []

        def all_are_given_back() -> bool:
            clock.advance(timedelta(seconds=3))
            given_back.extend(workshop.takeable())
            return len(given_back) == 39

        until(all_are_given_back)
        workshop.bus.abandon(given_back)
        workshop.gates.open(*(f"u{number}" for number in range(60, 100)))
        workshop.until_settled()
    assert len(workshop.results()) == 99


def test_w1_a_worker_without_jobs_stops_by_itself(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Wait-ForDoor", 1)
    runner = workshop.runner(idle_timeout_seconds=300)
    ended = threading.Event()

    def run() -> None:
        runner.run(threading.Event())
        ended.set()

    threading.Thread(target=run, daemon=True).start()
    workshop.until_begun("u1")
    clock.advance(timedelta(seconds=3000))
    assert not ended.wait(0.6)
    workshop.gates.open("u1")
    until(lambda: not runner._at_hand.unsettled())  # noqa: SLF001 - from then on it is idle
    clock.advance(timedelta(seconds=301))
    until(ended.is_set)


def test_w1_trouble_with_the_bus_loses_nothing(workshop: Workshop, noted: NotedBus, clock: VirtualClock) -> None:
    workshop.send("Wait-ForDoor", 1, 2, 3)
    with workshop.running(runner := workshop.runner(bus=noted)):
        workshop.until_begun("u1", "u2")
        assert runner.is_ready
        assert runner.is_alive
        noted.is_down = True
        workshop.gates.open("u1", "u2", "u3")
        until(lambda: "answer" in noted.asked and not runner.is_ready)
        noted.is_down = False
        until(lambda: passed(clock, 1) and workshop.waiting() == 0)
        until(lambda: runner.is_ready)
    assert len(workshop.results()) == 3


def test_w1_what_killed_its_process_before_runs_alone(workshop: Workshop, clock: VirtualClock) -> None:
    workshop.send("Wait-ForDoor", 1, 2)
    for _ in range(2):
        assert len(workshop.takeable()) == 2
        clock.advance(timedelta(seconds=61))
    workshop.send("Wait-ForDoor", 3)
    with workshop.running(workshop.runner(max_parallelism=3)):
        workshop.until_begun("u3")
        assert workshop.gates.begun == ["u3"]
        workshop.gates.open("u3")
        workshop.until_begun("u1")
        until(lambda: workshop.waiting() == 2)
        assert workshop.gates.begun == ["u3", "u1"]
        workshop.gates.open("u1", "u2")
        workshop.until_settled()
    assert len(workshop.results()) == 3


def test_w1_a_message_that_is_no_job_is_put_aside(workshop: Workshop) -> None:
    workshop.send("Do-It", 1)
    with workshop.store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE bus_messages SET body = '{\"JobId\": 5}'")
    workshop.send("Do-It", 2)
    with workshop.running(workshop.runner()):
        workshop.until_settled()
    assert list(workshop.results()) == [job_id_of(2)]
    (letter,) = workshop.dead_letters()
    assert (letter.message_id, letter.reason) == (job_id_of(1), "Unreadable")


@pytest.mark.parametrize("given", ["Correct-Horse-9", "secret:INITIAL_PASSWORD"])
def test_w8_a_job_that_is_given_up_is_kept_without_its_secrets(
    workshop: Workshop, clock: VirtualClock, given: str
) -> None:
    workshop.runner().announce()
    orchestrator = build_orchestrator(Settings(), workshop.store, workshop.bus)
    Consumer(workshop.store, workshop.bus, RESULTS_OF_ORCHESTRATOR, orchestrator.handle).turn()
    workshop.send("Return-It", 1, Value={"profile": {"PassWord": given}}, token=given, Password=given)
    for _ in range(MAX_DELIVERIES):
        assert len(workshop.takeable()) == 1
        clock.advance(timedelta(seconds=61))
    workshop.bus.sweep()
    (letter,) = workshop.dead_letters()
    kept = "***" if given.startswith("Correct") else given
    parameters = orjson.loads(letter.body)["Parameters"]
    assert parameters == {"Value": {"profile": {"PassWord": kept}}, "token": kept, "Password": kept}


def test_w1_two_workers_share_the_jobs(workshop: Workshop) -> None:
    workshop.send("Do-It", *range(1, 301))
    with workshop.running(workshop.runner()), workshop.running(workshop.runner()):
        workshop.until_settled()
    assert len(workshop.results()) == 300
    assert len(workshop.calls) == 300
