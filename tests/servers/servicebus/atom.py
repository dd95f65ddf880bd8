"""Entities as the administration client reads and writes them: entries of Atom, with durations by ISO 8601."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element, SubElement

ATOM = "{http://www.w3.org/2005/Atom}"
BUS = "{http://schemas.microsoft.com/netservices/2010/10/servicebus/connect}"
COUNTS = "{http://schemas.microsoft.com/netservices/2011/06/servicebus}"
TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
FOREVER = "P10675199DT2H48M5.4775807S"

_BORN = "2026-01-01T00:00:00Z"
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")

Fields = Mapping[str, object]


def entry(title: str, kind: str, fields: Fields) -> Element:
    """One entity. A field that is itself a mapping becomes an element with children; `type` becomes an attribute."""
    made = Element(f"{ATOM}entry")
    for name, text in (
        ("id", f"https://localhost/{title}"),
        ("title", title),
        ("published", _BORN),
        ("updated", _BORN),
    ):
        SubElement(made, ATOM + name).text = text
    content = SubElement(made, f"{ATOM}content", {"type": "application/xml"})
    _fill(SubElement(content, BUS + kind), fields)
    return made


def feed(title: str, entries: Iterable[Element], following: str | None) -> Element:
    """A page of entities, with the address of the page that follows."""
    made = Element(f"{ATOM}feed")
    for name, text in (("id", f"https://localhost/{title}"), ("title", title), ("updated", _BORN)):
        SubElement(made, ATOM + name).text = text
    SubElement(made, f"{ATOM}link", {"rel": "self", "href": f"https://localhost/{title}"})
    if following:
        SubElement(made, f"{ATOM}link", {"rel": "next", "href": following})
    made.extend(entries)
    return made


def error(status: int, detail: str) -> Element:
    made = Element("Error")
    SubElement(made, "Code").text = str(status)
    SubElement(made, "Detail").text = detail
    return made


def written(element: Element) -> bytes:
    return bytes(ET.tostring(element, encoding="utf-8", xml_declaration=True))


def description(body: bytes, kind: str) -> Element:
    """The entity that a client sends."""
    found = ET.fromstring(body).find(f"{ATOM}content/{BUS}{kind}")
    if found is None:
        raise ValueError(f"there is no {kind} in the request")
    return found


def text(element: Element, name: str) -> str | None:
    found = element.find(BUS + name)
    return None if found is None else found.text


def duration(element: Element, name: str) -> timedelta | None:
    """Read a span of time; forever, and no word about it, are None."""
    given = text(element, name)
    if given is None:
        return None
    found = _DURATION.fullmatch(given)
    if found is None:
        raise ValueError(f"{name} is not a duration: {given}")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return None if days > 10_000_000 else timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def span(given: timedelta | None) -> str:
    if given is None:
        return FOREVER
    return f"P{given.days}DT{given.seconds // 3600}H{given.seconds // 60 % 60}M{given.seconds % 60}S"


def _fill(element: Element, fields: Fields) -> None:
    for name, value in fields.items():
        if name == "type":
            element.set(TYPE, str(value))
        elif isinstance(value, Mapping):
            _fill(SubElement(element, name if name.startswith("{") else BUS + name), value)
        else:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            SubElement(element, name if name.startswith("{") else BUS + name).text = shown
