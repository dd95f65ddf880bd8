"""W6: a worker says what it can do when it starts, and the catalogue keeps it."""

from matoolkit.admin.catalogue import known_catalogue
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.topology import RESULTS_OF_ORCHESTRATOR
from matoolkit.clock import VirtualClock
from matoolkit.domain.messages import WorkerHello
from matoolkit.settings import Settings
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
