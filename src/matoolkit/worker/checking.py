"""Checks whether a worker can work: does it sign in, what is its application granted, do reads answer.

Nothing is changed. What the application has been granted is read from its own tokens: `roles` lists permissions, `wids`
the Entra roles. No token names an Exchange role group that allows the same, so a role may stay unknown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from matoolkit.worker.clients import Clients
from matoolkit.worker.clients.connection import SignIn
from matoolkit.worker.clients.failures import Forbidden
from matoolkit.worker.clients.identifiers import is_object_id
from matoolkit.worker.failures import FunctionFailed
from matoolkit.worker.needs import ROLE_IDS, Need, NeedKind
from matoolkit.worker.registry import Function

_APIS = {NeedKind.GRAPH: "Graph", NeedKind.EXCHANGE: "Exchange", NeedKind.ROLE: "Exchange"}

_Read = Callable[[], Mapping[str, Any] | None]


class Outcome(StrEnum):
    """How a check came out."""

    OK = "ok"
    MISSING = "missing"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at, for the functions that need it."""

    kind: str
    name: str
    outcome: Outcome
    said: str
    functions: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether the check passed, or cannot be known."""
        return self.outcome in (Outcome.OK, Outcome.UNKNOWN)


def check_tenant(clients: Clients, functions: Sequence[Function], tenant_id: str | None) -> Iterator[Checked]:
    """Sign in where the functions need it, compare what they need with what is granted, and read one of each."""
    needs = [(need, function.name) for function in functions for need in function.needs]
    wanted = {_APIS[need.kind] for need, _ in needs} or set(_APIS.values())
    claims: dict[str, Mapping[str, Any] | None] = {}
    for sign_in in clients.sign_ins:
        if sign_in.api in wanted:
            checked, claims[sign_in.api] = _signed_in(sign_in, tenant_id)
            yield checked
    readings = [_reading(name, read) for api, name, read in _readings(clients) if claims.get(api) is not None]
    is_refused = any(isinstance(reading.why, Forbidden) for reading in readings if reading.checked.name == "recipient")
    for (kind, any_of), asked in _grouped(needs).items():
        need = Need(kind, any_of, ", ".join(asked.sources))
        yield _need(need, claims.get(_APIS[kind]), is_refused=is_refused, functions=asked.functions)
    yield from (reading.checked for reading in readings)
    for function in functions:
        if not function.needs:
            yield Checked("function", function.name, Outcome.UNKNOWN, "it does not declare what it needs")


@dataclass(slots=True)
class _Asked:
    functions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


def _grouped(needs: Sequence[tuple[Need, str]]) -> dict[tuple[NeedKind, tuple[str, ...]], _Asked]:
    """Put together what is granted with the same names, permissions first."""
    found: dict[tuple[NeedKind, tuple[str, ...]], _Asked] = {}
    for need, function in sorted(needs, key=lambda one: (list(NeedKind).index(one[0].kind), one[0].any_of)):
        asked = found.setdefault((need.kind, need.any_of), _Asked())
        asked.functions = tuple(dict.fromkeys((*asked.functions, function)))
        asked.sources = tuple(dict.fromkeys((*asked.sources, need.source)))
    return found


def _signed_in(sign_in: SignIn, tenant_id: str | None) -> tuple[Checked, Mapping[str, Any] | None]:
    try:
        sign_in.tokens.token()
        claims = sign_in.tokens.claims()
    except FunctionFailed as failed:
        return Checked("sign-in", sign_in.api, Outcome.FAILED, failed.message), None
    tenant = claims.get("tid")
    who = f"application {claims.get('app_displayname') or claims.get('appid') or claims.get('azp') or 'of no name'}"
    # A tenant may also be given by one of its domains, which no token has.
    if tenant_id and is_object_id(tenant_id) and tenant and str(tenant).casefold() != tenant_id.casefold():
        said = f"{who} signed in to tenant {tenant}, and TARGET_TENANT_ID is another"
        return Checked("sign-in", sign_in.api, Outcome.FAILED, said), claims
    return Checked("sign-in", sign_in.api, Outcome.OK, f"{who} in tenant {tenant}" if tenant else who), claims


def _need(need: Need, claims: Mapping[str, Any] | None, *, is_refused: bool, functions: tuple[str, ...]) -> Checked:
    if not claims:
        said = "the worker did not sign in" if claims is None else "the token cannot be read"
        return Checked(_kind(need), need.any_of[0], Outcome.UNKNOWN, said, functions)
    is_role = need.kind is NeedKind.ROLE
    listed = claims.get("wids" if is_role else "roles")
    granted = {str(one).casefold() for one in listed} if isinstance(listed, list) else set()
    has = [name for name in need.any_of if (ROLE_IDS.get(name, name) if is_role else name).casefold() in granted]
    if has:
        said = "granted" if has[0] == need.any_of[0] else f"granted by {has[0]}"
        return Checked(_kind(need), need.any_of[0], Outcome.OK, said, functions)
    if is_role and not is_refused:
        said = "no such Entra role is in the token; an Exchange role group may allow it, which cannot be read"
        return Checked(_kind(need), need.any_of[0], Outcome.UNKNOWN, said, functions)
    others = f" (or {', '.join(need.any_of[1:])})" if need.any_of[1:] else ""
    said = f"grant {need.any_of[0]}{others}; source: {need.source}"
    return Checked(_kind(need), need.any_of[0], Outcome.MISSING, said, functions)


def _kind(need: Need) -> str:
    return "role" if need.kind is NeedKind.ROLE else "permission"


@dataclass(frozen=True, slots=True)
class _Reading:
    checked: Checked
    why: FunctionFailed | None = None


def _readings(clients: Clients) -> tuple[tuple[str, str, _Read], ...]:
    return (
        ("Graph", "user", clients.graph.any_user),
        ("Graph", "group", clients.graph.any_group),
        ("Exchange", "recipient", clients.exchange.any_recipient),
    )


def _reading(name: str, read: _Read) -> _Reading:
    try:
        found = read()
    except FunctionFailed as failed:
        return _Reading(Checked("read", name, Outcome.FAILED, failed.message), failed)
    if found is None:
        return _Reading(Checked("read", name, Outcome.OK, f"answered: there is no {name}"))
    names = (found.get(key) for key in ("userPrincipalName", "displayName", "PrimarySmtpAddress", "DisplayName"))
    return _Reading(Checked("read", name, Outcome.OK, f"answered: {next((one for one in names if one), 'one')}"))
