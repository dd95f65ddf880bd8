"""Functions that do nothing and answer at once as if they had, under every name of the built-in catalogue.

With them the whole system can be tried without a tenant.
"""

import uuid
from collections.abc import Mapping

from matoolkit.runbook.catalogue import BUILT_IN
from matoolkit.runbook.templates import Json
from matoolkit.worker.functions import Function, Registry

# Any namespace does, as long as it is always the same: the same person gets the same id each time.
_PEOPLE = uuid.UUID("6f3f8a52-7d0b-4a5e-9a53-0d4a1c1b7a10")


def rehearsal() -> Registry:
    """Return every built-in function, none of which touches anything."""
    return Registry(
        {function.name: _ANSWERS.get(function.name, _answer_for(function.name)) for function in BUILT_IN.values()}
    )


def _new_user(parameters: Mapping[str, Json]) -> Json:
    name = parameters.get("UserPrincipalName")
    return {"Id": _id_of(name), "UserPrincipalName": name, "Created": True}


def _invite(parameters: Mapping[str, Json]) -> Json:
    return {"Id": _id_of(parameters.get("InvitedUserEmailAddress")), "Status": "PendingAcceptance"}


def _answer_for(name: str) -> Function:
    return _found if name.startswith("Test-") else _changed


def _found(parameters: Mapping[str, Json]) -> Json:
    return {"complete": True, "data": {"Matches": True, **_plain(parameters)}}


def _changed(parameters: Mapping[str, Json]) -> Json:
    return {"Success": True, **_plain(parameters)}


def _plain(parameters: Mapping[str, Json]) -> dict[str, Json]:
    """Leave out what is never to be returned (rule W8)."""
    return {name: value for name, value in parameters.items() if name != "Password"}


def _id_of(name: Json) -> str:
    return str(uuid.uuid5(_PEOPLE, str(name).casefold()))


_ANSWERS: dict[str, Function] = {"New-EntraUser": _new_user, "New-EntraB2BInvitation": _invite}
