"""What workers announce: the catalogue has the latest announcement of each that was handled (rule W6)."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from random import Random

from matoolkit.domain.messages import AnnouncedFunction, WorkerHello
from matoolkit.ids import worker_hello_id
from matoolkit.ports import Outgoing
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry
from matoolkit.simulate.runbooks import WORKERS

# The clocks of workers are behind, whatever the clock of the system does: so the order of announcements is certain.
_FIRST = datetime(2026, 3, 1, tzinfo=UTC)


class Announcements:
    """Makes announcements of workers, and compares them with the catalogue."""

    def __init__(self, state: MemoryDatabase, rng: Random) -> None:
        self._state = state
        self._rng = rng
        self._made: dict[str, tuple[int, WorkerHello]] = {}
        self._latest: dict[str, int] = {}

    def announce(self) -> Outgoing:
        """Let a worker start that has functions which nobody had before."""
        number, worker = len(self._made), self._rng.choice(WORKERS)
        functions = tuple(AnnouncedFunction(f"Do-{number}-{part}") for part in range(self._rng.randint(1, 2)))
        hello = WorkerHello(worker, functions)
        message_id = worker_hello_id(worker, _FIRST + timedelta(seconds=number))
        self._made[message_id] = number, hello
        return Outgoing(message_id, hello)

    def check(self, entries: Iterable[Entry]) -> None:
        """Demand that the catalogue has what was handled last, in the order of the announcements."""
        handled = [self._made[entry.new] for entry in entries if entry.what == "handled" and entry.new in self._made]
        if not handled:
            return
        for number, hello in handled:
            self._latest[hello.worker_id] = max(number, self._latest.get(hello.worker_id, 0))
        kept: dict[str, set[str]] = defaultdict(set)
        for worker, function in self._state.look("SELECT worker_id, function_name FROM worker_functions"):
            kept[worker].add(function)
        made = dict(self._made.values())
        said = {worker: {one.name for one in made[number].functions} for worker, number in self._latest.items()}
        if kept != said:
            raise Violation(f"the catalogue has {dict(kept)}, and workers said {said}")
