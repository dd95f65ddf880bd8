"""Who has a place in phases in which only so many members may be at once (rule C5)."""

from collections.abc import Collection, Iterable, Mapping

from matoolkit.domain.doors import PhaseDoor
from matoolkit.store.narrow_executions import NextStep
from matoolkit.store.places import FirstStep, first_steps_of, take_places
from matoolkit.store.sql.transaction import Transaction


class Holders:
    """Who has a place in the phases of some steps, and who takes one."""

    def __init__(self, first_steps: Iterable[FirstStep] = ()) -> None:
        self._first = {(step.phase_execution_id, step.batch_member_id, step.epoch): step for step in first_steps}
        self._taken: dict[int, int] = {}

    def has_place(self, step: NextStep) -> bool:
        """Tell whether the member of a step has a place in the step's phase."""
        first = self._first_of(step)
        return first is not None and first.holds_place is True

    def take(self, step: NextStep, door: PhaseDoor) -> None:
        """Let the member of a step that is about to be sent have a place in the step's phase."""
        first = self._first_of(step)
        if door.places is not None and first is not None and not first.holds_place:
            door.places.free -= 1
            self._taken[step.id] = first.id

    def keep(self, tx: Transaction, sent: Iterable[int]) -> None:
        """Write down who took a place, of those whose step was sent."""
        if taken := [self._taken[number] for number in sent if number in self._taken]:
            take_places(tx, taken)

    def _first_of(self, step: NextStep) -> FirstStep | None:
        return self._first.get((step.phase_execution_id, step.batch_member_id, step.epoch))


def holders_of(tx: Transaction, doors: Mapping[int, PhaseDoor], steps: Collection[NextStep]) -> Holders:
    """Look up who has a place in the phases of steps; asked for only where places are limited."""
    limited = [step for step in steps if doors[step.phase_execution_id].places is not None]
    phases = {step.phase_execution_id for step in limited}
    return Holders(first_steps_of(tx, phases, {step.batch_member_id for step in limited}))
