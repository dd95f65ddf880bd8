"""What happens to a process in the middle of its turn: it dies, or others act between two of its transactions."""

from collections.abc import Callable
from datetime import timedelta
from random import Random

from matoolkit.crashpoints import SimulatedCrash, arm, disarm
from matoolkit.errors import LeaseLost
from matoolkit.simulate.database import WatchedStore
from matoolkit.simulate.faults import Fault
from matoolkit.simulate.processes import Plant

_CRASHES = {
    Fault.CRASH_BEFORE_COMMIT: ("store.before_commit", "store.before_commit", "consumer.handled"),
    Fault.CRASH_AFTER_COMMIT: ("store.after_commit", "store.after_commit", "bus.received"),
    Fault.CRASH_WHILE_SENDING: ("relay.before_send", "relay.after_send"),
}
_SLOW = timedelta(seconds=70)  # longer than a message is locked
_STALLED = timedelta(minutes=2)  # longer than a lease lasts

Act = Callable[[], object]


class Accidents:
    """Lets processes act, and lets the seed decide what happens to them during their turn."""

    def __init__(self, plant: Plant, rng: Random, others: Callable[[bool], None]) -> None:
        self._plant = plant
        self._rng = rng
        self._others = others
        self._is_nested = False
        self.interrupted: WatchedStore | None = None

    def turn(self, store: WatchedStore, act: Act, replace: Callable[[], None], *, may_lose_lease: bool = False) -> str:
        """Let a process act; `replace` starts it again if it dies."""
        if self._is_nested:
            return _told(act)
        faults, self.interrupted = self._plant.faults, store
        for kind in _CRASHES:
            if self._is_possible(kind) and faults.strikes(kind):
                return self._dying(kind, act, replace)
        if may_lose_lease and faults.strikes(Fault.LEASE_LOST):
            return self._interrupted_by(Fault.LEASE_LOST, store, act)
        if faults.strikes(Fault.INTERLEAVED):
            return self._interrupted_by(Fault.INTERLEAVED, store, act)
        return _told(act)

    def slow_down(self) -> None:
        """Let the locks of a process that is slow run out, and others get its messages."""
        if not self._is_nested:
            self._plant.clock.advance(_SLOW)
            self._let_others_act(is_lease_lost=False)

    def _is_possible(self, kind: Fault) -> bool:
        return kind is not Fault.CRASH_WHILE_SENDING or self._plant.is_apart

    def _dying(self, kind: Fault, act: Act, replace: Callable[[], None]) -> str:
        point = self._rng.choice(_CRASHES[kind])
        # Few turns send more than once.
        arm(point, on_hit=1 if kind is Fault.CRASH_WHILE_SENDING else self._rng.randint(1, 3))
        try:
            said = _told(act)
        except SimulatedCrash:
            replace()
            return f"dies at {point}"
        finally:
            disarm(point)
        self._plant.faults.missed(kind)
        return said

    def _interrupted_by(self, kind: Fault, store: WatchedStore, act: Act) -> str:
        left = self._rng.randint(1, 6)

        def between() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._let_others_act(is_lease_lost=kind is Fault.LEASE_LOST)

        store.between = between
        try:
            return _told(act)
        finally:
            store.between = None
            if left > 0:
                self._plant.faults.missed(kind)

    def _let_others_act(self, *, is_lease_lost: bool) -> None:
        if is_lease_lost:
            self._plant.clock.advance(_STALLED)
        self._is_nested = True
        try:
            self._others(is_lease_lost)
        finally:
            self._is_nested = False


def _told(act: Act) -> str:
    try:
        return str(act() or "")
    except LeaseLost:
        return "the lease is lost"
