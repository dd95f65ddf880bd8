"""What Graph knows of a user's properties: which there are, which must be given, which only Exchange may write."""

import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from matoolkit.worker.tenant.calls import Refusal
from matoolkit.worker.tenant.directory import Directory, User, domain_of

_REQUIRED = ("accountEnabled", "displayName", "mailNickname", "userPrincipalName", "passwordProfile")
LICENCE_PROPERTIES = frozenset({"assignedLicenses", "assignedPlans"})
_READ_ONLY = LICENCE_PROPERTIES | frozenset(
    {"id", "proxyAddresses", "createdDateTime", "externalUserState", "creationType", "onPremisesSyncEnabled"}
)
# What Graph returns without `$select`.
_DEFAULT = (
    *("businessPhones", "displayName", "givenName", "id", "jobTitle", "mail", "mobilePhone", "officeLocation"),
    *("preferredLanguage", "surname", "userPrincipalName"),
)
_KNOWN = _READ_ONLY | frozenset(
    {
        *_REQUIRED,
        *("businessPhones", "city", "companyName", "country", "department", "employeeId", "employeeType"),
        *("employeeHireDate", "faxNumber", "givenName", "jobTitle", "mail", "mobilePhone", "officeLocation"),
        *("onPremisesExtensionAttributes", "onPremisesImmutableId", "otherMails", "passwordPolicies", "postalCode"),
        *("preferredLanguage", "state", "streetAddress", "surname", "usageLocation", "userType"),
        "showInAddressList",
    }
)
_UPN = re.compile(r"[^@\s/?\\]+@[^@\s/?\\]+\.[^@\s/?\\]+")
_LEAST_LETTERS = 8
_LEAST_KINDS = 3


def check_created(body: Mapping[str, Any]) -> None:
    """Refuse a new user with missing or unknown properties."""
    for name in _REQUIRED:
        if body.get(name) in (None, ""):
            raise _invalid(f"A value is required for property '{name}' of resource 'User'.", name)
    check_changed(body)
    check_password(body["passwordProfile"])


def check_changed(body: Mapping[str, Any]) -> None:
    """Refuse properties that do not exist or may not be written, and an invalid UPN."""
    for name in body:
        if name not in _KNOWN:
            raise _invalid(f"Property '{name}' does not exist as a declared property or extension property.", name)
        if name in _READ_ONLY:
            raise _invalid(f"Property '{name}' is read-only and cannot be set.", name)
    upn = body.get("userPrincipalName")
    if upn is not None and not _UPN.fullmatch(str(upn)):
        raise _invalid("Property userPrincipalName is invalid.", "userPrincipalName")


def check_upn_is_free(directory: Directory, upn: str, but_for: User | None) -> None:
    """Refuse a name that somebody else has, as a name or an address, and one of a domain that is not the tenant's."""
    if domain_of(upn) not in directory.domains:
        message = (
            "The domain portion of the userPrincipalName property is invalid."
            " You must use one of the verified domain names in your organization."
        )
        raise _invalid(message, "userPrincipalName")
    owners = {
        "userPrincipalName": directory.owner_of_upn(upn),
        "proxyAddresses": directory.owner_of_address(f"smtp:{upn}"),
    }
    for target, owner in owners.items():
        if owner is not None and owner is not but_for:
            message = f"Another object with the same value for property {target} already exists."
            detail = {"code": "ObjectConflict", "message": message, "target": target}
            raise Refusal(HTTPStatus.BAD_REQUEST, "Request_BadRequest", message, (detail,))


def check_password(profile: Any) -> None:
    """Refuse a password that Entra would find too simple."""
    password = str(profile.get("password") or "") if isinstance(profile, Mapping) else ""
    kinds = sum(bool(re.search(kind, password)) for kind in ("[a-z]", "[A-Z]", "[0-9]", "[^a-zA-Z0-9]"))
    if len(password) < _LEAST_LETTERS or kinds < _LEAST_KINDS:
        message = (
            "The specified password does not comply with password complexity requirements."
            " Please provide a different password."
        )
        raise _invalid(message, "passwordProfile")


def selected(user: Mapping[str, Any], select: str | None) -> dict[str, Any]:
    """Return the selected properties, or the default ones."""
    names = select.split(",") if select else _DEFAULT
    for name in names:
        if name not in _KNOWN:
            message = (
                "Parsing OData Select and Expand failed: Could not find a property named"
                f" '{name}' on type 'microsoft.graph.user'."
            )
            raise Refusal(HTTPStatus.BAD_REQUEST, "BadRequest", message)
    return {name: user.get(name) for name in names if name != "passwordProfile"}


def _invalid(message: str, target: str) -> Refusal:
    detail = {"code": "InvalidValue", "message": message, "target": target}
    return Refusal(HTTPStatus.BAD_REQUEST, "Request_BadRequest", message, (detail,))
