"""What workers say they can do (rule W6)."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

import orjson

from matoolkit.domain.messages import WorkerHello
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from matoolkit.store.transaction import Transaction


def announce(tx: Transaction, hellos: Sequence[WorkerHello], at: datetime) -> None:
    """Keep the latest that each worker said of itself."""
    latest = {hello.worker_id: hello for hello in hellos}
    for hello in latest.values():
        functions = [
            AnnouncedFunction(function.name, orjson.dumps([asdict(known) for known in function.parameters]).decode())
            for function in hello.functions
        ]
        announce_functions(tx, hello.worker_id, functions, at)
