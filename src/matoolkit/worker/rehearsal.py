"""Functions that do nothing and answer at once as if they had, under every name of the built-in catalogue.

With them the whole system can be tried without a tenant. What would have been done is logged.
"""

import logging
import uuid
from collections.abc import Mapping
from functools import partial

import orjson

from matoolkit.runbook.catalogue import BUILT_IN
from matoolkit.runbook.templates import Json
from matoolkit.worker.functions import Registry

# Any namespace does, as long as it is always the same: the same person gets the same id each time.
_PEOPLE = uuid.UUID("6f3f8a52-7d0b-4a5e-9a53-0d4a1c1b7a10")

log = logging.getLogger(__name__)


def rehearsal() -> Registry:
    """Return every built-in function, none of which touches anything."""
    return Registry({function.name: partial(_pretended, function.name) for function in BUILT_IN.values()})


def _pretended(name: str, parameters: Mapping[str, Json]) -> Json:
    # A password is neither logged nor returned (rule W8).
    shown = {key: value for key, value in parameters.items() if key != "Password"}
    if log.isEnabledFor(logging.INFO):
        log.info("%s %s", name, orjson.dumps(shown).decode())
    if name == "New-EntraUser":
        return {"Id": _id_of(shown.get("UserPrincipalName")), "Created": True, **shown}
    if name == "New-EntraB2BInvitation":
        return {"Id": _id_of(shown.get("InvitedUserEmailAddress")), "Status": "PendingAcceptance", **shown}
    if name.startswith("Test-"):
        return {"complete": True, "data": {"Matches": True, **shown}}
    return {"Success": True, **shown}


def _id_of(name: Json) -> str:
    return str(uuid.uuid5(_PEOPLE, str(name).casefold()))
