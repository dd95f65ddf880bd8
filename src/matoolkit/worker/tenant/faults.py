"""What can go wrong with a call, on demand: throttling, busy servers, failures, slowness, broken connections."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal, get_args

from matoolkit.clock import Clock

Kind = Literal["throttle", "busy", "fail", "slow", "hang", "malformed", "reset", "lost", "limit", "refuse", "forbid"]


@dataclass(slots=True)
class Fault:
    """Something that goes wrong with the calls whose label contains `match`.

    It happens `times` times, or without end if that is None, and no longer than `for_seconds`.
    """

    kind: Kind
    match: str = ""
    times: int | None = 1
    for_seconds: float | None = None
    seconds: float = 0
    status: int = 429
    retry_after: float | str | None = None
    retry_after_as_date: bool = False
    code: str = ""
    calls: int = 0
    ends_at: datetime | None = None
    happened: int = 0
    recent: deque[float] = field(default_factory=deque)
    released: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "Fault":
        """Read a fault; a word that means nothing is an error."""
        unknown = set(given) - {one.name for one in fields(cls)} | (
            set() if given.get("kind") in get_args(Kind) else {"kind"}
        )
        if unknown:
            raise ValueError(f"cannot read {', '.join(sorted(unknown))}; kinds are {', '.join(get_args(Kind))}")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """Return what can be looked at."""
        shown = ("kind", "match", "times", "happened", "seconds", "status", "retry_after", "calls")
        return {name: getattr(self, name) for name in shown}


class Faults:
    """The faults that are set; each call draws at most one, the oldest that fits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Let something go wrong from now on."""
        if fault.for_seconds is not None:
            fault.ends_at = self._clock.now() + timedelta(seconds=fault.for_seconds)
            fault.times = None
        with self._lock:
            self._faults.append(fault)

    def clear(self) -> None:
        """Let everything go right again; calls that hang are released."""
        with self._lock:
            for fault in self._faults:
                fault.released.set()
            self._faults.clear()

    def shown(self) -> list[dict[str, Any]]:
        """List the faults that are set."""
        with self._lock:
            return [fault.to_json() for fault in self._faults]

    def drawn(self, label: str) -> Fault | None:
        """Return the fault that a call meets, and count it."""
        with self._lock:
            for fault in self._faults:
                if fault.match.casefold() in label.casefold() and self._happens(fault):
                    fault.happened += 1
                    return fault
        return None

    def _happens(self, fault: Fault) -> bool:
        if fault.ends_at is not None and self._clock.now() >= fault.ends_at:
            return False
        if fault.kind == "limit":
            return self._is_over(fault)
        return fault.times is None or fault.happened < fault.times

    def _is_over(self, fault: Fault) -> bool:
        """Whether more calls were let through in the last seconds than the limit allows."""
        now = self._clock.monotonic()
        while fault.recent and fault.recent[0] <= now - fault.seconds:
            fault.recent.popleft()
        if len(fault.recent) < fault.calls:
            fault.recent.append(now)
            return False
        fault.retry_after = max(1, round(fault.recent[0] + fault.seconds - now))
        return True

    def retry_after(self, fault: Fault) -> dict[str, str]:
        """Return the header with which a throttled caller is told when to come back, if it is told."""
        if fault.retry_after is None:
            return {}
        if fault.retry_after_as_date:
            moment = self._clock.now() + timedelta(seconds=float(fault.retry_after))
            return {"Retry-After": format_datetime(moment, usegmt=True)}
        return {"Retry-After": str(fault.retry_after)}
