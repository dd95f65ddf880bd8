"""What the worker's application must be allowed for a function to work, and which document says so.

`@function("New-EntraUser", needs=(...))` declares it beside the function; docs/reference/functions.md lists it,
and `matoolkit worker check` compares it with what the application has.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

# Ids of Entra's built-in roles, which are the same in every tenant (Entra, "Microsoft Entra built-in roles").
ROLE_IDS: Mapping[str, str] = {
    "Exchange Administrator": "29232cdf-9323-42fd-ade2-1d097af3e4de",
    "Exchange Recipient Administrator": "31392ffb-586c-42d1-9346-e59415a2cc4e",
    "Global Reader": "f2ef992c-3afb-46b9-b7cf-a126ee74c451",
}


class NeedKind(StrEnum):
    """Where something is granted."""

    GRAPH = "Graph application permission"
    EXCHANGE = "Exchange application permission"
    ROLE = "role of the application"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that has to be granted: any of these names is enough, and the first one allows the least."""

    kind: NeedKind
    any_of: tuple[str, ...]
    source: str


def lacking(needs: Sequence[Need], api: str) -> str:
    """Name the least permissions that a refused application needs; empty if they are not known."""
    names = [need.any_of[0] for need in needs if (need.kind is NeedKind.GRAPH) == (api == "Graph")]
    return f"; the application needs {' and '.join(dict.fromkeys(names))}" if names else ""


def graph_permission(*any_of: str, source: str) -> Need:
    """Need one of these application permissions of Microsoft Graph."""
    return Need(NeedKind.GRAPH, any_of, source)


def exchange_permission(*any_of: str, source: str) -> Need:
    """Need one of these application permissions of Office 365 Exchange Online."""
    return Need(NeedKind.EXCHANGE, any_of, source)


def role(*any_of: str, source: str) -> Need:
    """Need one of these Entra roles, or an Exchange role group that allows the same cmdlets."""
    return Need(NeedKind.ROLE, any_of, source)
