"""What is played, and what came of it."""

from dataclasses import dataclass
from hashlib import blake2b

from matoolkit.simulate.coverage import Case
from matoolkit.simulate.faults import Fault


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: a seed, how long things go wrong, with how many people, and without which faults."""

    seed: int
    events: int = 160
    members: int | None = None
    disabled: tuple[Fault, ...] = ()


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    plan: Plan
    events: int
    history: list[str]
    faults: dict[Fault, int]
    cases: set[Case]
    violation: str | None

    @property
    def fingerprint(self) -> str:
        """The same for the same history."""
        return blake2b("\n".join(self.history).encode(), digest_size=16).hexdigest()
