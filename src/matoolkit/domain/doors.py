"""The two doors that work goes through, and what gates want to know of it (rule G1)."""

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from matoolkit.domain.keys import folded
from matoolkit.domain.phaseorder import PhaseOrder
from matoolkit.records import record

if TYPE_CHECKING:
    from matoolkit.domain.cohorts import Pilots, Places
    from matoolkit.domain.signoff import SignOffs
    from matoolkit.domain.windows import Hours
    from matoolkit.runbook.model import Phase


class Door(StrEnum):
    """Where work is kept back."""

    START = "start"
    SEND = "send"


@record
class PhaseDoor:
    """A phase as gates see it at one moment: `reached` are its own number and those of the earlier ones of its version.

    `rules` is the phase as its runbook has it, and `hours` its window. What these rest on is loaded only if they are
    there.
    """

    id: int
    batch_id: int
    runbook_name: str
    order: PhaseOrder
    at: datetime
    reached: frozenset[int]
    rules: "Phase"
    hours: "Hours | None" = None
    pilots: "Pilots | None" = None
    places: "Places | None" = None
    sign_offs: "SignOffs | None" = None

    @property
    def has_gates(self) -> bool:
        """Whether it declares anything that may keep work."""
        return self.rules.rollout is not None or self.hours is not None or self.sign_offs is not None


@record
class Work:
    """What wants to go through a door; only a job has a worker, and only a member's work a member.

    Work with a phase and without a member is the phase itself, which wants to begin. `init` is what must be signed off
    before an init, if anything.
    """

    runbook_name: str
    batch_id: int
    worker_id: str | None = None
    member_key: str | None = None
    is_init: bool = False
    phase: PhaseDoor | None = None
    is_pilot: bool = False
    has_place: bool = False
    joined_no: int = 0
    init: "SignOffs | None" = None

    @property
    def member_key_fold(self) -> str | None:
        """Its member's key, folded for comparison."""
        return None if self.member_key is None else folded(self.member_key)
