"""Errors of Graph name the call and not the object."""

from collections.abc import Callable
from typing import Any

import pytest

from matoolkit.worker.clients.failures import Rejected
from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.tenant.calls import Answer, Request
from tests.worker.functions.office import JANE, OMAR, STAFF, Office

CALLS: dict[str, Callable[[GraphClient], Any]] = {
    "PATCH /v1.0/users/{id}": lambda graph: graph.change_user("jane@contoso.example", {}),
    "DELETE /v1.0/users/{id}": lambda graph: graph.delete_user(JANE),
    "DELETE /v1.0/groups/{id}/members/{id}/$ref": lambda graph: graph.remove_member(STAFF, OMAR),
    "POST /v1.0/groups/{id}/members/$ref": lambda graph: graph.add_member(STAFF, OMAR),
    "PUT /v1.0/users/{id}/manager/$ref": lambda graph: graph.set_manager(JANE, OMAR),
    "GET /v1.0/directory/deletedItems/{id}": lambda graph: graph.is_deleted(JANE),
    "POST /beta/users/{id}/convertExternalToInternalMemberUser": lambda graph: graph.convert_to_internal(JANE, {}),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_error_names_the_call_and_no_id(office: Office, call: str) -> None:
    def refuse(request: Request) -> Answer:
        return Answer(400, {"error": {"code": "Request_BadRequest", "message": f"not {request.method}"}})

    office.tenant.answer = refuse  # type: ignore[method-assign]
    with pytest.raises(Rejected) as caught:
        CALLS[call](office.context.graph)
    assert caught.value.message == f"Graph: {call}: not {call.split(maxsplit=1)[0]} (Request_BadRequest)"
