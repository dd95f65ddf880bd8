"""What is on its way to the orchestrator: the messages that will have somebody looked at again (rule X5)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from matoolkit.store import Transaction
from matoolkit.store.transit import knows_the_bus, messages_on_their_way

EVENTS = "orchestrator-events"
# With more, it cannot be said what is among them, and there is much to do.
_MOST = 2_000
_NAME = re.compile(r"(phase-due|member-added|member-removed|batch-init|batch-wake)-([0-9]+)-")
_CHECK = re.compile(r"(?:poll|retry)-check-(step|init|rollback)-([0-9]+)-")


@dataclass(frozen=True, slots=True)
class Transit:
    """Messages by what they are about; a `blind` one knows only that there may be some."""

    about: frozenset[tuple[str, int]] = frozenset()
    is_blind: bool = False

    def has(self, *names: tuple[str, int]) -> bool:
        """Tell whether one of these may be on its way."""
        return self.is_blind or not self.about.isdisjoint(names)

    @property
    def members(self) -> list[int]:
        """The members that a message is about."""
        return sorted(number for name, number in self.about if name in ("member-added", "member-removed"))


def transit_of(message_ids: Iterable[str]) -> Transit:
    """Read from the ids of messages what they are about."""
    named = [(found[1], int(found[2])) for name in message_ids if (found := _NAME.match(name) or _CHECK.match(name))]
    return Transit(frozenset(named))


def look_for_messages(tx: Transaction) -> Transit:
    """Look at the messages that wait in this database; those on Service Bus nobody can look at."""
    found = messages_on_their_way(tx, EVENTS, limit=_MOST)
    is_blind = len(found) == _MOST or not knows_the_bus(tx)
    return Transit(is_blind=True) if is_blind else transit_of(found)
