"""The fields of a JSON object, found whatever their spelling, and refused in words when they are not right."""

from functools import lru_cache
from typing import Any

from matoolkit.errors import UnreadableMessage
from matoolkit.ids import Kind

_MOST_DIGITS = 18
_KINDS = {str(kind): kind for kind in Kind}


class Fields(dict[str, Any]):
    """The fields of an object; one that is spelled as the contract has it comes first."""

    def __missing__(self, name: str) -> Any:
        """Return what a field holds whatever its spelling, or nothing."""
        wanted = _plain(name)
        return next((value for known, value in self.items() if _plain(known) == wanted), None)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field that is text."""
        value = self[name]
        if isinstance(value, str):
            return value
        if value is None and default is not None:
            return default
        raise UnreadableMessage(f"'{name}' is missing" if value is None else f"'{name}' is not text")

    def number(self, name: str, default: int | None = None) -> int:
        """Return a field that is a whole number, also if it is written as text."""
        value = self[name]
        if type(value) is int:  # and no flag
            return value
        if value is None and default is not None:
            return default
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS:
            return int(value)
        raise UnreadableMessage(f"'{name}' is missing" if value is None else f"'{name}' is not a whole number")

    def flag(self, name: str) -> bool:
        """Return a field that is true or false; a missing one is false."""
        value = self[name]
        return value.casefold() == "true" if isinstance(value, str) else bool(value)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return a field that is an object; a missing one is empty."""
        value = self[name]
        if value is None or isinstance(value, dict):
            return value or {}
        raise UnreadableMessage(f"'{name}' is not an object")

    def part(self, name: str) -> "Fields":
        """Return the fields of an object in a field."""
        return Fields(self.mapping(name))

    def parts(self, name: str) -> list["Fields"]:
        """Return the fields of each object in a list."""
        value = self[name] or []
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return [Fields(item) for item in value]
        raise UnreadableMessage(f"'{name}' is not a list of objects")

    def kind(self) -> Kind:
        """Tell which table the execution is in; without `Kind`, which is newer, `IsInitStep` decides."""
        written = self["Kind"]
        if written is None:
            return Kind.INIT if self.flag("IsInitStep") else Kind.STEP
        kind = _KINDS.get(str(written).casefold())
        if kind is None:
            raise UnreadableMessage("'Kind' is none of step, init and rollback")
        return kind


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.replace("_", "").casefold()
