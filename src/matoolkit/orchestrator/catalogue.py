"""The functions that workers announce (rule W6)."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

import orjson

from matoolkit.domain.messages import WorkerHello
from matoolkit.ids import hello_started_at
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.sql.transaction import Transaction

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hello:
    """An announcement of a worker, and the id of its message."""

    message_id: str
    message: WorkerHello

    def said_at(self, now: datetime) -> datetime:
        """Return when the worker started; never later than now, because its clock may be fast."""
        return min(hello_started_at(self.message_id, self.message.worker_id) or now, now)


def keep_hellos(tx: Transaction, hellos: Sequence[Hello], at: datetime) -> None:
    """Keep the latest announcement of each worker; an older one that comes again replaces nothing."""
    latest: dict[str, Hello] = {}
    for hello in sorted(hellos, key=lambda hello: hello.said_at(at)):
        latest[hello.message.worker_id] = hello
    for worker_id, hello in latest.items():
        functions = [
            AnnouncedFunction(function.name, orjson.dumps([asdict(known) for known in function.parameters]).decode())
            for function in hello.message.functions
        ]
        if not announce_functions(tx, worker_id, functions, hello.said_at(at)):
            log.info("worker %s has announced itself again since %s", worker_id, hello.message_id)
