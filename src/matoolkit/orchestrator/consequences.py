"""What follows from what an agenda notes as touched, until nothing more does; then everything leaves at once."""

from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.endings import end_batches, end_phases
from matoolkit.orchestrator.failures import handle_failed_inits, handle_failed_steps
from matoolkit.orchestrator.init import continue_inits
from matoolkit.orchestrator.progress import continue_members


def follow_up(agenda: Agenda) -> None:
    """Fail, continue and end whatever was touched.

    A step of which no job can be made fails on the way, and sets other things in motion. The number of rounds is that
    of such steps in a row for one member, whatever the number of members.
    """
    while not agenda.is_done():
        handle_failed_steps(agenda)
        handle_failed_inits(agenda)
        continue_inits(agenda)
        continue_members(agenda)
    end_phases(agenda)
    end_batches(agenda)
    agenda.publisher.publish(agenda.tx, agenda.messages)
