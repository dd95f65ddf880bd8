"""What goes wrong on purpose. A test sets it; the server takes it back when it is reset."""

from dataclasses import dataclass


@dataclass
class Faults:
    """Numbers count down: a fault happens to the next so many, then no more."""

    busy: int = 0  # sends, settlements and requests that are answered with server-busy
    lost_sends: int = 0  # messages that are taken while the answer never comes
    lost_settlements: int = 0  # settlements that are carried out while the answer never comes
    doubled: int = 0  # messages that arrive twice
    late: int = 0  # messages that arrive later, by the clock, than they were sent
    late_by: float = 60.0  # seconds
    behind: float = 0.0  # seconds by which the server's clock is behind the client's
    refused_id: str = ""  # the message with this id is refused, and whatever is sent together with it
    disabled: str = ""  # the subscription with this path takes messages and gives none
    unauthorised: bool = False  # whatever token a client shows is refused

    def strike(self, kind: str) -> bool:
        """Say whether a fault happens now, and count it."""
        left: int = getattr(self, kind)
        if left > 0:
            setattr(self, kind, left - 1)
        return left > 0
