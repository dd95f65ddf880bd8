"""Rule W1: what is answered is settled after its answer is published, or with it, and never before."""

import pytest

from matoolkit.bus.servicebus import ServiceBus
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import LOCK_DURATION, RESULTS_OF_ORCHESTRATOR, jobs_of_worker
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.delivery import MAX_BODY_BYTES
from matoolkit.domain.messages import ResultStatus, WorkerResult
from matoolkit.errors import MessageTooLarge
from matoolkit.ids import result_id
from matoolkit.ports import Bus, Outgoing, Received
from matoolkit.simulate.apart import BusApart
from matoolkit.store import Store
from tests.databases import NOON, SERVICE_BUS

from .messages import ids, job

pytestmark = [pytest.mark.both_executions, pytest.mark.both_buses]

RESULT = "result-step-1-attempt-1"


@pytest.fixture(params=[SqlBus, BusApart])
def bus(request: pytest.FixtureRequest, store: Store, clock: VirtualClock) -> Bus:
    bus: Bus = request.param(store)
    if request.param is SqlBus and request.node.callspec.params["database"] == SERVICE_BUS:
        bus = request.getfixturevalue("namespace").bus
    bus.send([job("w", 1)])
    return bus


def jobs(bus: Bus) -> list[Received]:
    return bus.receive(jobs_of_worker("w"), 10)


def results(bus: Bus) -> list[str]:
    return ids(bus.receive(RESULTS_OF_ORCHESTRATOR, 10))


def answers_to(pile: list[Received], *, size: int = 1) -> list[Outgoing]:
    return [
        Outgoing(result_id(one.message_id), WorkerResult(one.message_id, ResultStatus.SUCCESS, NOON, result="x" * size))
        for one in pile
    ]


def test_w1_what_is_answered_does_not_come_again(bus: Bus, clock: VirtualClock) -> None:
    pile = jobs(bus)
    bus.answer(answers_to(pile), pile)
    clock.advance(LOCK_DURATION)
    assert jobs(bus) == []
    assert results(bus) == [RESULT]


def test_w1_an_answer_is_published_once_though_it_is_given_twice(bus: Bus, clock: VirtualClock) -> None:
    hung = jobs(bus)
    clock.advance(LOCK_DURATION)
    theirs = jobs(bus)
    bus.answer(answers_to(theirs), theirs)
    bus.answer(answers_to(hung), hung)
    assert results(bus) == [RESULT]


def test_w1_an_answer_to_what_another_process_has_by_now_leaves_it_to_that_process(
    bus: Bus, clock: VirtualClock
) -> None:
    hung = jobs(bus)
    clock.advance(LOCK_DURATION)
    theirs = jobs(bus)
    bus.answer(answers_to(hung), hung)
    assert results(bus) == [RESULT]
    assert bus.complete_now(theirs) == len(theirs)


def test_w1_an_answer_that_no_bus_could_carry_settles_nothing(bus: Bus) -> None:
    pile = jobs(bus)
    with pytest.raises(MessageTooLarge, match=RESULT):
        bus.answer(answers_to(pile, size=MAX_BODY_BYTES), pile)
    assert results(bus) == []
    assert bus.complete_now(pile) == len(pile)


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit", "bus.answered", "bus.settled"])
def test_w1_whoever_dies_answering_has_settled_nothing_that_is_not_answered(
    bus: Bus, clock: VirtualClock, point: str
) -> None:
    pile = jobs(bus)
    try:
        with crashing(point):
            bus.answer(answers_to(pile), pile)
    except SimulatedCrash:
        pass
    clock.advance(LOCK_DURATION)
    is_answered, is_settled = results(bus) == [RESULT], jobs(bus) == []
    if isinstance(bus, ServiceBus):
        # It has no transaction in which it could die.
        assert is_answered
        assert is_settled == (point != "bus.answered")
        return
    assert is_answered == (point != "store.before_commit")
    assert is_settled == (is_answered and (type(bus) is SqlBus or point == "bus.settled"))


def test_nothing_is_answered_with_nothing(bus: Bus) -> None:
    bus.answer([], [])
    assert results(bus) == []
