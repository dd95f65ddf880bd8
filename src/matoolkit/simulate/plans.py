"""What is played, and what came of it."""

from dataclasses import dataclass
from hashlib import blake2b

from matoolkit.simulate.coverage import Case
from matoolkit.simulate.faults import Fault


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: a seed, how long things go wrong, with how many people, and without which faults.

    With `is_apart` the bus is always outside the state's database, and forgets most of what it is told: settled
    messages come again, processes die after their commits, and no duplicate is dropped.
    """

    seed: int
    events: int = 160
    members: int | None = None
    disabled: tuple[Fault, ...] = ()
    is_apart: bool = False

    @property
    def undoes(self) -> bool:
        """Whether people undo and exclude: in every third play, so that the others stay as they were."""
        return self.seed % 3 == 0

    @property
    def pauses(self) -> bool:
        """Whether people pause and resume: in every fourth play, so that the others stay as they were."""
        return self.seed % 4 == 3

    @property
    def gates(self) -> bool:
        """Whether the runbook declares gates, and people freeze, sign and open: in every fifth play, likewise."""
        return self.seed % 5 == 0


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
