"""Many seeds, in several processes, and what they came to."""

import gc
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from statistics import median

from matoolkit.simulate.coverage import Case, legal_cases
from matoolkit.simulate.faults import Fault
from matoolkit.simulate.plans import Outcome, Plan
from matoolkit.simulate.world import World


@dataclass(slots=True)
class Summary:
    """What many seeds came to."""

    seeds: int = 0
    events: list[int] = field(default_factory=list)
    faults: Counter[Fault] = field(default_factory=Counter)
    cases: Counter[Case] = field(default_factory=Counter)
    failures: list[Outcome] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        """Count a seed."""
        self.seeds += 1
        self.events.append(outcome.events)
        self.faults.update(outcome.faults)
        self.cases.update(outcome.cases)
        if outcome.violation is not None:
            self.failures.append(outcome)

    @property
    def median_events(self) -> float:
        """The number of events of the middle seed."""
        return median(self.events) if self.events else 0

    @property
    def cases_not_met(self) -> list[Case]:
        """Moves that no seed made, and situations that none met."""
        return sorted(legal_cases() - set(self.cases))


def play(plan: Plan) -> Outcome:
    """Play one seed."""
    # A world lives for a second, so one garbage collection after each is enough.
    gc.disable()
    try:
        return World(plan).run()
    finally:
        gc.enable()


def played(plans: Sequence[Plan], jobs: int = 1) -> Iterator[Outcome]:
    """Play many seeds, each on its own, and return what comes of them in their order; histories only of failures."""
    if jobs == 1:
        yield from map(_played, plans)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_played, plans, chunksize=4)


def summed_up(outcomes: Iterable[Outcome]) -> Summary:
    """Sum up what seeds came to."""
    summary = Summary()
    for outcome in outcomes:
        summary.add(outcome)
    return summary


def _played(plan: Plan) -> Outcome:
    outcome = play(plan)
    if outcome.violation is None:
        outcome.history.clear()
    return outcome
