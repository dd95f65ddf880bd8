"""What both doors work with."""

from collections.abc import Callable
from dataclasses import dataclass

from matoolkit.admin.deadletters import Read
from matoolkit.clock import Clock
from matoolkit.doors.identity import SignIn
from matoolkit.ports import Publisher, Source
from matoolkit.runbook.model import DataSource
from matoolkit.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The store, the bus, and the outside world as far as the API and the pages need it."""

    store: Store
    publisher: Publisher
    read: Read
    open_source: Callable[[DataSource], Source]
    clock: Clock
    sign_in: SignIn
