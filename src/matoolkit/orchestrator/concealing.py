"""Masks secrets that answers repeat, before anything is stored (rule W8).

Our own worker masks its answers itself. Another program may not, and it does not know what is secret beyond its own
parameters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matoolkit.domain.answers import without_fields
from matoolkit.domain.masking import Mask, texts_in
from matoolkit.domain.messages import WorkerResult
from matoolkit.orchestrator.agenda import Agenda
from matoolkit.orchestrator.definitions import definition_of
from matoolkit.orchestrator.scopes import scope_of
from matoolkit.runbook.templates import Json
from matoolkit.store.narrow_executions import State
from matoolkit.store.narrow_members import members_in_full


def masks_of(agenda: Agenda, states: Sequence[State]) -> Mapping[int, Mask]:
    """Return what hides the secrets that work was given, by its id; most work was given none."""
    given = [(state, known) for state in states if (known := definition_of(agenda, state)).call.has_secrets]
    ids = {state.batch_member_id for state, _ in given if state.batch_member_id is not None}
    members = {member.id: member for member in members_in_full(agenda.tx, ids)}
    masks: dict[int, Mask] = {}
    for state, known in given:
        scope, _ = scope_of(agenda, state, known.version.number, members)
        masks[state.id] = Mask(text for value in known.call.secret_values(scope) for text in texts_in(value))
    return masks


def concealed(result: WorkerResult, mask: Mask | None) -> WorkerResult:
    """Return an answer without the secrets that its work was given."""
    if mask is None:
        return result
    error = result.error
    if error is not None:
        error = replace(error, message=mask.text(error.message), type=mask.value(error.type))
    return replace(result, result=mask.value(result.result), error=error)


def kept_result(agenda: Agenda, state: State, result: Json) -> Json:
    """Return what is stored of a result: all but the fields that become secret variables."""
    fields = definition_of(agenda, state).call.secret_fields
    return without_fields(result, fields) if fields else result
