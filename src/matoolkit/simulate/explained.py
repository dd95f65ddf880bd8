"""Everything open says for what it waits, as the product itself explains it (rule X5).

That nothing is forgotten is demanded beside this from rows alone: two oracles of one fact.
"""

from collections.abc import Iterable

from matoolkit.admin.explaining import unexplained
from matoolkit.admin.transit import transit_of
from matoolkit.simulate.invariants import Violation
from matoolkit.store import Store


def everything_is_explained(store: Store, message_ids: Iterable[str]) -> None:
    """Demand a reason for everything that is open, of batches, phases and members."""
    with store.reading() as tx:
        found = unexplained(tx, transit_of(message_ids))
    if found:
        raise Violation(f"open, and nothing says for what it waits (rule X5): {found}")
