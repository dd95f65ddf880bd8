"""Messages of the orchestrators: only handled messages are gone from the bus (rules M1 and M4)."""

from collections.abc import Iterable, Sequence

from matoolkit.ports import Delivery
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry

_GONE = """
SELECT id, message_id FROM sim_gone
WHERE NOT EXISTS (SELECT 1 FROM dead_letters WHERE dead_letters.message_id = sim_gone.message_id)
"""


class Mail:
    """Compares what was handled, where the state is, with what is gone, where the messages are."""

    def __init__(self, state: MemoryDatabase, messages: MemoryDatabase) -> None:
        self._state = state
        self._messages = messages

    def note_handled(self, deliveries: Sequence[Delivery]) -> None:
        """Record, in the open transaction, that it handles messages."""
        rows = [(delivery.received.handle, delivery.received.message_id) for delivery in deliveries]
        self._state.note("INSERT INTO sim_log (what, id, new, about) VALUES ('handled', ?, ?, '{}')", rows)

    def check(self, entries: Iterable[Entry]) -> None:
        """Demand that all messages that one event settled had been handled."""
        gone = self._messages.look(_GONE)
        if gone:
            handled = {entry.id for entry in entries if entry.what == "handled"}
            if lost := [name for number, name in gone if number not in handled]:
                raise Violation(f"messages are gone from the bus without being handled: {lost}")
        self._messages.meddle("DELETE FROM sim_gone")
