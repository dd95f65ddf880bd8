"""Functions that do nothing and answer at once as if they had, under every name of the built-in catalogue.

With them the whole system can be tried without a tenant. What would have been done is logged.
"""

import logging
import uuid
from collections.abc import Callable
from typing import Any

import orjson

from matoolkit.runbook import catalogue
from matoolkit.worker.context import Context
from matoolkit.worker.registry import Function, Registry
from matoolkit.worker.signature import Kind, Parameter

# Any namespace does, as long as it is always the same: the same person gets the same id each time.
_PEOPLE = uuid.UUID("6f3f8a52-7d0b-4a5e-9a53-0d4a1c1b7a10")

log = logging.getLogger(__name__)

_KINDS: dict[catalogue.ValueKind, Kind] = {
    "text": Kind.TEXT,
    "true or false": Kind.FLAG,
    "a list": Kind.LIST,
    "a mapping": Kind.MAPPING,
    "anything": Kind.ANYTHING,
}


def rehearsal() -> Registry:
    """Return every built-in function, none of which touches anything."""
    registry = Registry()
    for known in catalogue.BUILT_IN.values():
        parameters = tuple(_parameter(one) for one in known.parameters)
        registry.register(Function(known.name, parameters, "Pretends.", _pretending(known)))
    return registry


def _parameter(known: catalogue.Parameter) -> Parameter:
    kinds = (_KINDS[known.kind],)
    takes_null = known.kind == "anything"
    return Parameter(known.name, known.name, kinds, known.is_mandatory, known.is_secret, takes_null)


def _pretending(known: catalogue.Function) -> Callable[..., Any]:
    # Nothing secret is ever logged or returned (rule W8).
    secret = {one.name for one in known.parameters if one.is_secret}

    def pretend(context: Context, **given: Any) -> Any:  # noqa: ARG001
        shown = {name: value for name, value in given.items() if name not in secret}
        if log.isEnabledFor(logging.INFO):
            log.info("%s %s", known.name, orjson.dumps(shown).decode())
        match known.name:
            case "New-EntraUser":
                return {"Id": _id_of(given["UserPrincipalName"]), "Created": True, **shown}
            case "New-EntraB2BInvitation":
                return {"Id": _id_of(given["InvitedUserEmailAddress"]), "Status": "PendingAcceptance", **shown}
            case name if name.startswith("Test-"):
                return {"complete": True, "data": {"Match": True, **shown}}
            case _:
                return True

    return pretend


def _id_of(name: str) -> str:
    return str(uuid.uuid5(_PEOPLE, name.casefold()))
