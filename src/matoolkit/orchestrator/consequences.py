"""What follows from what a pile has touched, until nothing more does; then everything leaves at once."""

from matoolkit.orchestrator.agenda import Pile
from matoolkit.orchestrator.endings import end_batches, end_phases
from matoolkit.orchestrator.failures import settle_failed_inits, settle_failed_steps
from matoolkit.orchestrator.init import move_inits
from matoolkit.orchestrator.progress import move_members


def settle(pile: Pile) -> None:
    """Fail, move on and end whatever was touched.

    A step of which no job can be made fails on the way, and sets other things in motion. The number of rounds is that
    of such steps in a row for one member, whatever the number of members.
    """
    while not pile.is_settled():
        settle_failed_steps(pile)
        settle_failed_inits(pile)
        move_inits(pile)
        move_members(pile)
    end_phases(pile)
    end_batches(pile)
    pile.publisher.publish(pile.tx, pile.messages)
