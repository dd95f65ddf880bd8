"""Whom a simulated tenant has to know so that the steps of a runbook find them.

Somebody whom a step names by a value of its row, and whom no step makes, is there from the beginning; so are groups,
and those in them whom a step looks for there and no step adds. Only built-in functions are known well enough for that.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from matoolkit.errors import TemplateError
from matoolkit.ports import Piece
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.templates import Json, Resolver, Scope, compiled, uses
from matoolkit.worker.tenant import Tenant
from matoolkit.worker.tenant.directory import ACCOUNT, INITIAL_DOMAIN, MAIL_USER, MAILBOX, Directory, GroupKind

# Which parameter of a function names an account that the function makes, or gives a new name.
_MADE = {
    "new-entrauser": "UserPrincipalName",
    "new-exchangemailuser": "UserPrincipalName",
    "convert-entrab2btointernal": "NewUserPrincipalName",
    "set-entrauserupn": "NewUserPrincipalName",
    "new-distributiongroup": "GroupName",
}
_NAMES_AN_ACCOUNT = frozenset(
    {"userid", "userprincipalname", "identity", "memberidentity", "managerid", "targetuser", "sender"}
)
_NAMES_A_GROUP: Mapping[str, GroupKind] = {"groupid": "security", "groupidentity": "distribution"}
_OF_MAILBOXES = frozenset({"get-mailboxinfo", "remove-mailforwarding", "send-mail", "new-entratemporaryaccesspass"})
_OF_GUESTS = frozenset({"convert-entrab2btointernal"})
_LOOKS_FOR_MEMBERS = frozenset({"test-entragroupmembership", "test-exchangegroupmembership"})
_ADDS_MEMBERS = frozenset({"add-entragroupmember", "add-exchangegroupmember"})
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_KINDS = (ACCOUNT, MAIL_USER, MAILBOX)


@dataclass(frozen=True, slots=True)
class _Naming:
    """A parameter that names an account or a group."""

    function: str
    parameter: str
    resolve: Resolver
    makes: bool

    @property
    def kind(self) -> str:
        """What an account has to be to Exchange."""
        if self.function in _OF_MAILBOXES and self.parameter != "managerid":
            return MAILBOX
        return MAIL_USER if "exchange" in self.function or "mailbox" in self.function else ACCOUNT


@dataclass(slots=True)
class _Named:
    """All that the rows name: accounts with what they are to Exchange, groups, and what steps make."""

    accounts: dict[str, str] = field(default_factory=dict)
    guests: set[str] = field(default_factory=set)
    groups: dict[str, GroupKind] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    members: set[tuple[str, str]] = field(default_factory=set)

    def note(self, naming: _Naming, value: str) -> None:
        key = value.casefold()
        if naming.makes:
            self.made.add(key)
        elif kind := _NAMES_A_GROUP.get(naming.parameter):
            self.groups.setdefault(key, kind)
        else:
            self.accounts[key] = max(self.accounts.get(key, ACCOUNT), naming.kind, key=_KINDS.index)
            if naming.function in _OF_GUESTS:
                self.guests.add(key)

    def look_for(self, found: Mapping[str, str]) -> None:
        """Note a group, and who is looked for in it."""
        group = next((value for name, value in found.items() if name in _NAMES_A_GROUP), None)
        who = next((value for name, value in found.items() if name not in _NAMES_A_GROUP), None)
        if group and who:
            self.members.add((group, who))


@dataclass(frozen=True)
class People:
    """Tells a tenant of those whom the rows of a runbook name; each row is looked at once."""

    tenant: Tenant
    steps: Sequence[Step]
    _seen: set[str] = field(default_factory=set)

    def meet(self, piece: Piece) -> None:
        """Put those there whom these rows name and whom nobody will make."""
        new = {repr(row): row for row in piece.rows if repr(row) not in self._seen}
        if not new:
            return
        self._seen.update(new)
        named = _Named()
        for row in new.values():
            scope = Scope({}, {}, dict(zip(piece.columns, map(_text, row), strict=False)))
            for naming, value in _values(self._namings, scope):
                named.note(naming, value)
            for looking in self._looking:
                named.look_for({naming.parameter: value.casefold() for naming, value in _values(looking, scope)})
        self.tenant.change(lambda directory: _add_missing(directory, named))

    @cached_property
    def _namings(self) -> Sequence[_Naming]:
        return [naming for step in self.steps for naming in _namings_of(step, self._outputs)]

    @cached_property
    def _looking(self) -> Sequence[Sequence[_Naming]]:
        """Return the steps that look for somebody in a group to which no step adds anybody."""
        groups = [_group_of(step) for step in self.steps if step.function.casefold() in _ADDS_MEMBERS]
        looking = [step for step in self.steps if step.function.casefold() in _LOOKS_FOR_MEMBERS]
        return [list(_namings_of(step, self._outputs)) for step in looking if _group_of(step) not in groups]

    @cached_property
    def _outputs(self) -> frozenset[str]:
        return frozenset(name.casefold() for step in self.steps for name in step.output_params)


def steps_forward(runbook: Runbook) -> list[Step]:
    """Return the steps that people go through, without those that undo."""
    return [*runbook.init, *(step for phase in runbook.phases for step in phase.steps)]


def _group_of(step: Step) -> Json:
    return next((value for name, value in step.params.items() if name.casefold() in _NAMES_A_GROUP), None)


def _values(namings: Sequence[_Naming], scope: Scope) -> Iterator[tuple[_Naming, str]]:
    for naming in namings:
        try:
            value = naming.resolve(scope)
        except TemplateError:
            continue
        if isinstance(value, str) and value.strip():
            yield naming, value.strip()


def _namings_of(step: Step, outputs: frozenset[str]) -> Iterator[_Naming]:
    function = step.function.casefold()
    made = _MADE.get(function, "").casefold()
    for name, value in step.params.items():
        parameter = name.casefold()
        if parameter != made and parameter not in _NAMES_AN_ACCOUNT and parameter not in _NAMES_A_GROUP:
            continue
        # What an earlier step returns is in the tenant by then.
        if not any(use.variable.casefold() in outputs for use in uses(value)):
            yield _Naming(function, parameter, compiled(value), parameter == made)


def _add_missing(directory: Directory, named: _Named) -> None:
    # A name has to be of a domain of the tenant.
    directory.domains |= {name.rpartition("@")[2] for name in named.made if "@" in name}
    for name, kind in named.accounts.items():
        if name not in named.made and ("@" in name or _GUID.fullmatch(name)):
            _add_account(directory, name, kind, is_guest=name in named.guests)
    for name, group_kind in named.groups.items():
        if name not in named.made and not _has_group(directory, name):
            directory.add_group(name, name if _GUID.fullmatch(name) else None, kind=group_kind)
    for group_name, who in named.members:
        group, user = directory.groups.get(group_name), directory.users.get(who) or directory.owner_of_upn(who)
        if group is not None and user is not None:
            group.members.setdefault(user.id, group.created_at)


def _add_account(directory: Directory, name: str, kind: str, *, is_guest: bool) -> None:
    is_id = _GUID.fullmatch(name) is not None
    upn = f"{name}@{INITIAL_DOMAIN}" if is_id else name
    if name in directory.users or name in directory.deleted or directory.owner_of_upn(upn):
        return
    # Somebody who moves takes the alias along, and here the old account and the new one are in the same tenant.
    properties: dict[str, Any] = {"userPrincipalName": upn, "displayName": name, "mailNickname": upn.replace("@", ".")}
    if is_id:
        properties["id"] = name
    if is_guest:
        properties |= {"userType": "Guest", "externalUserState": "Accepted"}
    if kind != ACCOUNT:
        properties["exchange"] = {"RecipientTypeDetails": kind}
    if kind == MAILBOX:
        # It may move here from another tenant as well: this one plays both.
        guid, legacy = str(uuid5(NAMESPACE_URL, upn)), f"/o=Source/ou=Recipients/cn={upn.partition('@')[0]}"
        properties["exchange"] |= {"ExchangeGuid": guid, "LegacyExchangeDN": legacy}
        directory.remote_mailboxes[guid] = {"LegacyExchangeDN": legacy}
    directory.add_user(properties, is_seeded=True)


def _has_group(directory: Directory, name: str) -> bool:
    groups = directory.groups
    return name in groups or any(name in {one.display_name.casefold(), one.mail.casefold()} for one in groups.values())


def _text(value: Any) -> Json:
    return value if value is None or isinstance(value, str | int | float) else str(value)
