"""What a hold says of itself: its heading, and what its button does."""

from matoolkit.admin.holding import HoldLook
from matoolkit.admin.queries import HoldView
from matoolkit.domain.holds import HoldKind
from matoolkit.words import counted


def headline(look: HoldLook) -> str:
    """Say in one line what would happen to whom."""
    batch, hold = f"batch {look.held.batch.id}", look.hold
    if hold is None:
        return f"{batch.capitalize()} is not held"
    share = f"{hold.count:,} of {counted(look.held.members, 'member')}"
    match hold.kind:
        case HoldKind.REMOVALS if hold.count:
            return f"{share} would leave {batch}"
        case HoldKind.REMOVALS:
            return f"Members would move from {batch} to another time"
        case HoldKind.CALLED_OFF:
            return f"{_all_of(hold)} would leave {batch}"
        case HoldKind.RESCHEDULE:
            return f"{batch.capitalize()} would get another start"
        case HoldKind.INIT:
            return f"The init of {batch} failed"
        case HoldKind.LATE:
            return f"{batch.capitalize()} was first seen after its T"
        case HoldKind.REPEAT:
            return f"{share} would be migrated again in {batch}"


def deed(hold: HoldView) -> str:
    """Say what an approval does, for the button that does it."""
    match hold.kind:
        case HoldKind.REMOVALS | HoldKind.CALLED_OFF if hold.count:
            return f"{counted(hold.count, 'member')} {'leaves' if hold.count == 1 else 'leave'}"
        case HoldKind.REMOVALS | HoldKind.CALLED_OFF:
            return "its members move"
        case HoldKind.RESCHEDULE:
            return "it gets the new start"
        case HoldKind.INIT:
            return "it goes on without the init"
        case HoldKind.LATE | HoldKind.REPEAT:
            return "it begins"


def _all_of(hold: HoldView) -> str:
    return "The only member" if hold.count == 1 else f"All {counted(hold.count, 'member')}"
