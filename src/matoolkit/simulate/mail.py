"""Messages of the orchestrators: gone from the bus are only those that somebody has handled (rules M1 and M4)."""

from collections.abc import Sequence

from matoolkit.ports import Delivery
from matoolkit.simulate.database import MemoryDatabase
from matoolkit.simulate.invariants import Violation

_HANDLED = "SELECT id FROM sim_handled"
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
        """Write down, in the transaction at hand, that messages were handled."""
        rows = [(delivery.received.handle,) for delivery in deliveries]
        self._state.note("INSERT OR IGNORE INTO sim_handled (id) VALUES (?)", rows)

    def check(self) -> None:
        """Demand that all messages that one event was done with had been handled."""
        gone = self._messages.look(_GONE)
        if gone:
            handled = set(self._state.look(_HANDLED))
            if lost := [name for number, name in gone if (number,) not in handled]:
                raise Violation(f"nobody has handled what is gone from the bus: {lost}")
        self._messages.meddle("DELETE FROM sim_gone")
        self._state.meddle("DELETE FROM sim_handled")
