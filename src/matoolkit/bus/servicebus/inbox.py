"""What comes from one subscription: messages that were received while somebody waited are kept for the next look."""

import asyncio
from collections.abc import Sequence

from matoolkit.bus import topology
from matoolkit.bus.servicebus.links import Locked, ReceivingLink, abandon
from matoolkit.clock import Clock

# More would be settled and renewed too slowly: each message is a request of its own.
MOST_AT_ONCE = 250
# How long a look waits for what is due.
LOOK_SECONDS = 0.05
# Under a steady flow a look would go on until the pile is full, and what has come would wait.
_LONGEST_LOOK_SECONDS = 0.2
# A message whose lock ends sooner is not handed out: it could not be handled in time.
_LEAST_LOCK_SECONDS = 10.0


class Inbox:
    """The messages of a subscription, or its dead letters, on their way to one process. Lives in the private thread."""

    def __init__(self, link: ReceivingLink, clock: Clock) -> None:
        self.link = link
        self._clock = clock
        self._kept: list[Locked] = []

    async def take(self, most: int) -> list[Locked]:
        """Return messages that are due, those first that were kept."""
        most = min(most, MOST_AT_ONCE)
        await self._refuse_stale()
        # While messages come: the SDK gives back at once what comes over the link between two looks.
        time = asyncio.get_running_loop().time
        until = time() + _LONGEST_LOOK_SECONDS
        while len(self._kept) < most and (came := await self._receive(most - len(self._kept), LOOK_SECONDS)):
            self._kept += came
            if time() >= until:
                break
        taken, self._kept = self._kept[:most], self._kept[most:]
        return taken

    async def wait(self, seconds: float) -> None:
        """Wait for a message, and keep it; asked for one, the SDK returns as soon as it comes."""
        if not self._kept:
            came = await self._receive(1, seconds)
            self._kept += came

    def emptied(self) -> list[Locked]:
        """Return what is kept, and forget it."""
        kept, self._kept = self._kept, []
        return kept

    async def _receive(self, most: int, seconds: float) -> list[Locked]:
        # The lock begins at the server, after the request has left.
        ends_at = self._clock.monotonic() + topology.LOCK_DURATION.total_seconds()
        pile = await self.link.receive(most, seconds)
        for one in pile:
            one.ends_at = ends_at
        return pile

    async def _refuse_stale(self) -> None:
        soon = self._clock.monotonic() + _LEAST_LOCK_SECONDS
        stale: Sequence[Locked] = [one for one in self._kept if one.ends_at <= soon]
        if stale:
            self._kept = [one for one in self._kept if one.ends_at > soon]
            await self.link.settle(stale, abandon)
