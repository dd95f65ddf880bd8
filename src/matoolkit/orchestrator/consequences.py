"""Works out the consequences of an agenda until nothing is left to do; then all messages leave together."""

from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.budgets import look_after_pilots, watch_budgets
from matoolkit.orchestrator.endings import end_batches, end_phases
from matoolkit.orchestrator.failures import handle_failed_inits, handle_failed_steps
from matoolkit.orchestrator.init import continue_inits
from matoolkit.orchestrator.places import offer_places
from matoolkit.orchestrator.progress import continue_members


def follow_up(agenda: Agenda) -> None:
    """Fail, continue and end everything that was touched.

    A step for which no job can be made fails here, and its failure has consequences of its own: hence the loop. The
    number of rounds is the number of such steps in a row for one member. It does not grow with the number of members.
    When nobody has anything left to do, free places are offered to those who wait for one.
    """
    look_again = True
    while look_again:
        while not agenda.is_done():
            handle_failed_steps(agenda)
            watch_budgets(agenda)
            handle_failed_inits(agenda)
            continue_inits(agenda)
            continue_members(agenda)
        look_after_pilots(agenda)
        offer_places(agenda)
        look_again = not agenda.is_done()
    end_phases(agenda)
    end_batches(agenda)
    agenda.publisher.publish(agenda.tx, agenda.messages)
