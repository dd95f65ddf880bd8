"""The whole over Service Bus: every part is a process of its own, and each is killed in the middle of its work."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
from azure.servicebus import ServiceBusClient, ServiceBusMessage
from azure.servicebus.exceptions import ServiceBusError

from matoolkit.clock import SystemClock
from matoolkit.store import Store
from tests.databases import Database
from tests.system.wave import Wave, counted
from tests.waiting import until

if TYPE_CHECKING:
    import subprocess

    from tests.servers.servicebus.server import ServiceBus

MEMBERS = 40
PYTHON, POWERSHELL = "worker-01", "powershell-01"
STEPS = [PYTHON, POWERSHELL, PYTHON]
NOTES = MEMBERS * STEPS.count(PYTHON)

JOBS = ("worker-jobs", f"worker-{PYTHON}")
RESULTS = ("worker-results", "orchestrator")
EVENTS = ("orchestrator-events", "orchestrator")

WORDS = {
    "scheduler": ["scheduler", "run"],
    "orchestrator": ["orchestrator", "run"],
    "worker": ["worker", "run", "--id", PYTHON],
}


class PowerShellWorker:
    """A worker that somebody else wrote: it knows the documents of the protocol, the SDK, and nothing of ours."""

    def __init__(self, address: str) -> None:
        self.jobs: list[dict[str, object]] = []
        self._address = address
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                self._work()
            except ServiceBusError:
                continue  # it begins anew, as its container would

    def _work(self) -> None:
        with (
            ServiceBusClient.from_connection_string(self._address) as client,
            client.get_subscription_receiver("worker-jobs", f"worker-{POWERSHELL}") as receiver,
            client.get_topic_sender("worker-results") as sender,
        ):
            while not self._is_over.is_set():
                for message in receiver.receive_messages(20, max_wait_time=1):
                    job = json.loads(str(message))
                    self.jobs.append(job)
                    sender.send_messages(ServiceBusMessage(json.dumps(self._result(job))))
                    receiver.complete_message(message)

    @staticmethod
    def _result(job: dict[str, object]) -> dict[str, object]:
        return {
            "JobId": job["JobId"],
            "Status": "Success",
            "ResultType": "Object",
            "Result": {"complete": True, "data": {"Note": "by PowerShell"}},
            "Error": None,
            "DurationMs": 12,
            "Timestamp": f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}",
            "CorrelationData": job["CorrelationData"],
        }


class Parts:
    """The processes, each of which can be killed and started again."""

    def __init__(self, wave: Wave, settings: dict[str, dict[str, str]]) -> None:
        self._wave, self._settings = wave, settings
        self._stack = ExitStack()
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        for part in WORDS:
            self._start(part)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self, part: str) -> None:
        self._running[part] = self._stack.enter_context(self._wave.process(WORDS[part], self._settings[part]))

    def replace(self, part: str) -> None:
        """Kill a part without a word, and start another."""
        self._running[part].kill()
        self._running[part].wait(20)
        self._start(part)


@pytest.fixture
def store(database: Database) -> Iterator[Store]:
    store = database.open()
    yield store
    store.close()


@pytest.mark.waits
@pytest.mark.on("postgresql")
def test_m8_over_service_bus_a_kill_of_any_part_loses_nothing_and_repeats_nothing(
    database: Database, store: Store, service_bus: "ServiceBus", tmp_path: Path
) -> None:
    service_bus.lay_out(PYTHON, POWERSHELL)
    wave = Wave(tmp_path, MEMBERS, STEPS)
    wave.publish(store)
    bus = {
        "MATOOLKIT_BUS": "servicebus",
        "MATOOLKIT_SERVICE_BUS_CONNECTION_STRING": service_bus.connection_string_of("SendAndListen"),
    }
    state = {**bus, "MATOOLKIT_DATABASE_URL": database.url}
    no_state = {**bus, "MATOOLKIT_DATABASE_URL": "sqlite:////nowhere/at-all.db", "STEP_SECONDS": "0.05"}
    settings = {"scheduler": state, "orchestrator": state, "worker": no_state}
    with Parts(wave, settings) as parts, PowerShellWorker(service_bus.connection_string) as powershell:
        until(lambda: "this scheduler works from now on" in wave.logged(), 60)
        wave.make_people(timedelta(seconds=6))  # a batch that is late when first seen would be held
        until(wave.notes, 60)
        parts.replace("scheduler")
        until(lambda: len(wave.notes()) >= NOTES / 4, 60)
        parts.replace("worker")
        held = service_bus.expire(*JOBS)
        until(lambda: len(wave.notes()) >= NOTES * 3 / 4, 60)
        parts.replace("orchestrator")
        service_bus.expire(*EVENTS)
        service_bus.expire(*RESULTS)
        ended = "SELECT status, COUNT(*) FROM batches GROUP BY status"
        until(lambda: counted(store, ended) == {"completed": 1}, 90, pause=0.2)
        until(lambda: not _left(service_bus), 20)
    steps = counted(store, "SELECT status, COUNT(*) FROM step_executions GROUP BY status")
    assert steps == {"succeeded": MEMBERS * len(STEPS)}, wave.logged()
    noted = Counter(wave.notes())
    assert len(noted) == NOTES, "no step of anybody was forgotten"
    assert sum(noted.values()) - len(noted) <= held, "only what the dead worker had in its hands was done again"
    assert counted(store, "SELECT 'dead', COUNT(*) FROM dead_letters") == {"dead": 0}
    assert {job["FunctionName"] for job in powershell.jobs} == {"Note-Step"}


def _left(server: "ServiceBus") -> list[str]:
    """Bodies of messages that nobody has settled, dead letters too."""
    places = [EVENTS, RESULTS, JOBS, ("worker-jobs", f"worker-{POWERSHELL}")]
    kept = [server.messages(*place, dead=is_dead) for place in places for is_dead in (False, True)]
    return [message.body.decode() for messages in kept for message in messages]
