"""Ids on their way into an address: checked, encoded as one segment, never empty (rule W3).

An id that ended a path early would turn a harmless call into another one: `DELETE …/members/{id}/$ref` takes somebody
out of a group, `DELETE …/members/{id}` deletes the account.
"""

import re
import unicodedata
from urllib.parse import quote

from matoolkit.worker.clients.failures import InvalidIdentifier

_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
# Entra lets a UPN have none of these; `#` is in the names of guests.
_UPN = re.compile(r"[^\s@/\\?%$][^\s@/\\?%]*@[^\s@/\\?%#$]+")
_LONGEST = 320


def path(template: str, *identifiers: str) -> str:
    """Put ids into the open places of a path, each as one segment."""
    return template.format(*(segment(one) for one in identifiers))


def segment(identifier: str) -> str:
    """Encode an id so that it is one segment of a path whatever is in it; what cannot be one is refused."""
    if not identifier.strip() or identifier in {".", ".."} or _has_control(identifier):
        raise InvalidIdentifier("an id is empty or not valid")
    return quote(identifier, safe="")


def object_id(value: str, name: str) -> str:
    """Check the id of an object, which is a GUID."""
    checked = value.strip()
    if not is_object_id(checked):
        raise InvalidIdentifier(f"{name} has to be an object id (a GUID)")
    return checked.lower()


def is_object_id(value: str) -> bool:
    """Whether a text is the id of an object rather than a name."""
    return _GUID.fullmatch(value) is not None


def user_key(value: str, name: str) -> str:
    """Check what stands for a user: an object id or a UPN."""
    checked = value.strip()
    if is_object_id(checked):
        return checked.lower()
    if not _UPN.fullmatch(checked) or len(checked) > _LONGEST or _has_control(checked):
        raise InvalidIdentifier(f"{name} has to be an object id (a GUID) or a user principal name")
    return checked


def exchange_identity(value: str, name: str) -> str:
    """Check an identity for Exchange; a wildcard would mean several."""
    checked = value.strip()
    if not checked or "*" in checked or _has_control(checked) or len(checked) > _LONGEST:
        raise InvalidIdentifier(f"{name} has to stand for one recipient: it is empty, too long, or has a * in it")
    return checked


def _has_control(text: str) -> bool:
    return any(unicodedata.category(letter) in {"Cc", "Cf", "Cs"} for letter in text)
