"""W6: a worker says what it can do when it starts, and the catalogue keeps it."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from matoolkit.admin.catalogue import known_catalogue
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import AnnouncedFunction, WorkerHello
from matoolkit.errors import BusFull, MatoolkitError, MessageRefused
from matoolkit.ids import worker_hello_id
from matoolkit.ports import Outgoing
from matoolkit.settings import Settings
from matoolkit.store.catalogue import known_functions
from matoolkit.system import build_orchestrator
from tests.waiting import until
from tests.workshop import WORKER, Workshop


def test_w6_a_worker_announces_its_functions_when_it_starts(workshop: Workshop) -> None:
    with workshop.running(workshop.runner(worker_announce=True)):
        until(lambda: workshop.waiting("orchestrator"))
    assert workshop.answers() == [WorkerHello(WORKER, workshop.registry.catalogue())]


def test_w6_it_can_be_told_not_to(workshop: Workshop) -> None:
    workshop.send("Do-It", 1)
    with workshop.running(workshop.runner(worker_announce=False)):
        workshop.until_settled()
    assert len(workshop.answers()) == 1


class DeafBus(SqlBus):
    """A bus that takes no announcement, until it does."""

    error: MatoolkitError | None = None

    def send(self, messages: Sequence[Outgoing]) -> None:
        if self.error is not None:
            raise self.error
        super().send(messages)


@pytest.mark.parametrize("error", [BusFull("worker-results"), MessageRefused("one message", "its id is too long")])
def test_w6_a_worker_that_cannot_announce_itself_does_its_jobs_and_tries_again(
    workshop: Workshop, clock: VirtualClock, caplog: pytest.LogCaptureFixture, error: MatoolkitError
) -> None:
    deaf = DeafBus(workshop.store)
    deaf.error = error
    workshop.send("Do-It", 1)
    with workshop.running(workshop.runner(bus=deaf, worker_announce=True)):
        workshop.until_settled()
        assert len(workshop.answers()) == 1
        deaf.error = None
        clock.advance(timedelta(minutes=1))
        until(lambda: workshop.waiting("orchestrator"))
    assert workshop.answers() == [WorkerHello(WORKER, workshop.registry.catalogue())]
    assert "announcing functions fails, and is tried again" in caplog.text


def test_w6_a_worker_that_starts_again_announces_again(workshop: Workshop, clock: VirtualClock) -> None:
    for _ in range(2):
        clock.sleep(1)
        workshop.runner().announce()
    assert len(workshop.answers()) == 2


def test_w6_what_is_announced_is_known_to_who_checks_runbooks(workshop: Workshop) -> None:
    workshop.runner().announce()
    orchestrator = build_orchestrator(Settings(), workshop.store, workshop.bus)
    Consumer(workshop.store, workshop.bus, RESULTS_OF_ORCHESTRATOR, orchestrator.handle).turn()
    with workshop.store.reading() as tx:
        known = known_catalogue(tx)["show-secret"]
    assert [(one.name, one.is_mandatory, one.is_secret, one.kind) for one in known.parameters] == [
        ("Password", True, True, "text"),
        ("Name", False, False, "text"),
    ]


def test_w6_an_older_announcement_that_comes_again_does_not_replace_a_newer_one(
    workshop: Workshop, clock: VirtualClock
) -> None:
    def hello(seconds: float, *functions: str) -> Outgoing:
        message = WorkerHello(WORKER, tuple(AnnouncedFunction(name) for name in functions))
        return Outgoing(worker_hello_id(WORKER, clock.now() + timedelta(seconds=seconds)), message)

    def known() -> set[str]:
        Consumer(workshop.store, workshop.bus, RESULTS_OF_ORCHESTRATOR, orchestrator.handle).turn()
        with workshop.store.reading() as tx:
            return {row.function_name for row in known_functions(tx)}

    orchestrator = build_orchestrator(Settings(), workshop.store, workshop.bus)
    older, newer, fast = hello(-20, "Old-One", "Both"), hello(-10, "New-One", "Both"), hello(3600, "Fast-One")
    workshop.bus.send([newer, older])
    assert known() == {"New-One", "Both"}
    resent = Outgoing(f"{older.message_id}-s1", older.message)
    workshop.bus.send([resent])
    assert known() == {"New-One", "Both"}
    workshop.bus.send([fast])
    assert known() == {"Fast-One"}
    clock.sleep(1)
    workshop.bus.send([hello(0, "Right-One")])
    assert known() == {"Right-One"}
    workshop.bus.send([Outgoing("an id of another program", older.message)])
    assert known() == {"Old-One", "Both"}
