"""Finding a batch by its number, or a person by a key, a part of it, a number or an address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matoolkit.admin.people import who_is_meant
from matoolkit.domain.states import MemberState
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow, batches_by_id
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.memberstates import states_of_members
from matoolkit.store.people import enrolments_containing, enrolments_numbered, enrolments_of_key

MOST_FOUND = 50
_LARGEST_NUMBER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Found:
    """Batches and members that may be meant, newest first; `is_whole` if they are what was typed, not a part of it."""

    batches: Sequence[BatchRow]
    members: Sequence[Enrolment]
    states: Mapping[int, MemberState]
    is_whole: bool
    has_more: bool

    @property
    def count(self) -> int:
        """How many were found."""
        return len(self.batches) + len(self.members)


def find(store: Store, text: str, *, parts_too: bool = False) -> Found:
    """Find what is named by a text: a whole number or key first, and only then a part of a key, and an address."""
    text = text.strip()
    with store.reading() as tx:
        batches, members = _named(tx, text) if text else ([], [])
        is_whole = bool(batches or members)
        if text and (parts_too or not is_whole):
            known = {member.id for member in members}
            members += [member for member in _containing(tx, text) if member.id not in known]
        shown = members[:MOST_FOUND]
        states = states_of_members(tx, [member.id for member in shown])
    return Found(batches, shown, states, is_whole and not parts_too, len(members) > len(shown))


def _named(tx: Transaction, text: str) -> tuple[list[BatchRow], list[Enrolment]]:
    number = int(text) if text.isascii() and text.isdigit() and int(text) <= _LARGEST_NUMBER else None
    members = enrolments_of_key(tx, text, MOST_FOUND + 1)
    if number is None:
        return [], members
    known = {member.id for member in members}
    numbered = [member for member in enrolments_numbered(tx, number) if member.id not in known]
    return batches_by_id(tx, [number]), [*members, *numbered]


def _containing(tx: Transaction, text: str) -> list[Enrolment]:
    found = enrolments_containing(tx, text, before=None, limit=MOST_FOUND + 1)
    # Rows are searched for an address only if it is part of nobody's key: every one of them is read.
    return found or (who_is_meant(tx, text, None, MOST_FOUND + 1) if "@" in text else [])
