"""The values of template variables for a piece of work (rule R6)."""

from collections.abc import Mapping

import orjson

from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import Dispatchable
from matoolkit.runbook.templates import Scope, special_variables
from matoolkit.store.narrow_members import MemberInFull


def scope_of(
    agenda: Agenda, state: Dispatchable, version: int, members: Mapping[int, MemberInFull]
) -> tuple[Scope, str | None]:
    """Return the variables and the key of the member of some work; init and its rollback have no member."""
    batch = agenda.batches[state.batch_id]
    member = members[state.batch_member_id] if state.batch_member_id is not None else None
    specials = special_variables(
        batch_id=batch.id,
        batch_start_time=batch.batch_start_time,
        runbook_name=batch.runbook_name,
        runbook_version=version,
        member_key=member.member_key if member is not None else None,
    )
    if member is None:
        return Scope(specials, {}, {}), None
    outputs, data = orjson.loads(member.worker_data_json), orjson.loads(member.data_json)
    return Scope(specials, outputs, data), member.member_key
