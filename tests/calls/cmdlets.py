"""Reads parameters of Exchange Online's cmdlets, and properties of what they return, out of their documentation."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_ONLINE = "Exchange Online"
_PARAMETER = re.compile(r"^### -(\w+)\n(.*?)(?=^### |^## |\Z)", re.MULTILINE | re.DOTALL)
_FACTS = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_PROPERTY = re.compile(r"^## (\w+)(?: to \w+?(\d+))?\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SUPPORTED = re.compile(r"!\[Supported\]\([^)]*\) Exchange Online")
_SETS = re.compile(r"^## Get-EXO(\w+) property sets\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def parameters(page: Path) -> dict[str, Any]:
    """Read the parameters that a cmdlet has online: the type, or type and sets where it is not optional in all of them.

    Sets are those in which the parameter may be given, each with whether it must be; `*` is every set. A set that needs
    a parameter which is not there online is not there either.
    """
    read = [(name, *_kind_and_sets(text)) for name, text in _PARAMETER.findall(page.read_text(encoding="utf-8"))]
    elsewhere = {one for _, _, sets, is_online in read if not is_online for one, is_needed in sets.items() if is_needed}
    found: dict[str, Any] = {}
    for name, kind, sets, is_online in read:
        left = {one: is_needed for one, is_needed in sets.items() if one not in elsewhere}
        if is_online and kind and left:
            found[name] = kind if left == {"*": False} else {"type": kind, "sets": left}
    return found


def _kind_and_sets(text: str) -> tuple[str, dict[str, bool], bool]:
    applicable = re.search(r"^> Applicable: (.*)$", text, re.MULTILINE)
    kind = ""
    sets: dict[str, bool] = {}
    for facts in _FACTS.findall(text):
        kind = _fact(facts, "Type") or kind
        listed = filter(None, (_fact(facts, "Parameter Sets") or "(All)").replace(" ", "").split(","))
        sets |= dict.fromkeys(("*" if one == "(All)" else one for one in listed), _fact(facts, "Required") == "True")
    return kind, sets, applicable is None or _ONLINE in applicable[1]


def properties(folder: Path, cmdlets: Iterable[str]) -> dict[str, set[str]]:
    """Read which properties a recipient has: those that can be filtered by, and those in the property sets."""
    found: dict[str, set[str]] = defaultdict(set)
    filters = (folder / "filter-properties.md").read_text(encoding="utf-8")
    for name, last, text in _PROPERTY.findall(filters):
        if _SUPPORTED.search(text):
            for cmdlet in re.findall(r"\*\*(Get-\w+)\*\*", text):
                found[cmdlet].update(_numbered(name, last))
    sets = (folder / "cmdlet-property-sets.md").read_text(encoding="utf-8")
    for cmdlet, text in _SETS.findall(sets):
        for row in re.findall(r"^\|\*\*\w+\*\*\|(.*)\|$", text, re.MULTILINE):
            found[f"Get-{cmdlet}"].update(one.strip() for one in row.split("<br>"))
    return {name: found[name] for name in cmdlets if name in found}


def _numbered(name: str, last: str) -> list[str]:
    return [f"{name.rstrip('1')}{number}" for number in range(1, int(last) + 1)] if last else [name]


def _fact(facts: str, name: str) -> str:
    found = re.search(rf"^{name}:[ \t]*(.*)$", facts, re.MULTILINE)
    return found[1].strip() if found else ""
