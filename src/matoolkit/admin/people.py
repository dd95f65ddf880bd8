"""People as others name them, and all that was done for them across batches."""

from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar

import orjson

from matoolkit.admin.queries import MemberHistory, member_views
from matoolkit.admin.secrecy import secret_columns
from matoolkit.domain.keys import folded
from matoolkit.domain.secrecy import row_without_secrets
from matoolkit.store import Store, Transaction
from matoolkit.store.enrolments import Enrolment
from matoolkit.store.members import members_by_id
from matoolkit.store.people import (
    enrolments_numbered,
    enrolments_of_key,
    enrolments_with_value,
)
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.steps import steps_of_members

_LARGEST_NUMBER = 2**63 - 1

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class PlaceHistory:
    """What was done for a person in one batch, and that batch."""

    enrolment: Enrolment
    history: MemberHistory


def who_is_meant(tx: Transaction, who: str, batch_id: int | None, most: int) -> list[Enrolment]:
    """Return the members who may be meant by a key, a number or an address, newest first.

    Rows are searched for an address only if it is nobody's key. A secret value is nobody's address.
    """
    found = enrolments_of_key(tx, who, most, batch_id=batch_id)
    if who.isascii() and who.isdigit() and int(who) <= _LARGEST_NUMBER:
        known = {enrolment.id for enrolment in found}
        numbered = enrolments_numbered(tx, int(who), batch_id=batch_id)
        found += [enrolment for enrolment in numbered if enrolment.id not in known]
    if found or "@" not in who:
        return found
    rows = enrolments_with_value(tx, who, most, batch_id=batch_id)
    secret = {name: secret_columns(tx, name) for name in {enrolment.runbook_name for enrolment, _ in rows}}
    return [enrolment for enrolment, row in rows if _has(row, who, secret[enrolment.runbook_name])]


def person_history(store: Store, key: str, most: int) -> list[PlaceHistory]:
    """Return all that was done for a person in all batches, newest first."""
    with store.reading() as tx:
        places = enrolments_of_key(tx, key, most)
        ids, batch_ids = [place.id for place in places], {place.batch_id for place in places}
        members = {member.row.id: member for member in member_views(tx, members_by_id(tx, ids))}
        phases = {phase.id: phase.phase_name for phase in phases_of_batches(tx, sorted(batch_ids))}
        steps = _grouped(steps_of_members(tx, ids), attrgetter("batch_member_id"))
        rollbacks = _grouped(rollbacks_of_members(tx, ids), attrgetter("batch_member_id"))
        secret = {name: secret_columns(tx, name) for name in {place.runbook_name for place in places}}
    return [
        PlaceHistory(
            place,
            MemberHistory(members[place.id], secret[place.runbook_name], phases, steps[place.id], rollbacks[place.id]),
        )
        for place in places
    ]


def _has(row: str, value: str, secret: frozenset[str]) -> bool:
    """Tell whether a row has a value in a column that is not secret, alone or among several."""
    wanted = folded(value)
    shown = row_without_secrets(orjson.loads(row), secret).values()
    cells = [one for cell in shown for one in (cell if isinstance(cell, list) else [cell])]
    return any(isinstance(cell, str) and folded(cell) == wanted for cell in cells)


def _grouped(rows: Iterable[RowT], by: Any) -> dict[Hashable, list[RowT]]:
    found: dict[Hashable, list[RowT]] = defaultdict(list)
    for row in rows:
        found[by(row)].append(row)
    return found
