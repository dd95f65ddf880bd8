"""Write types/azure.json anew: what Azure says of the resource types that the templates use, and no more.

    python -m tests.infra.renew_types .tools/azuretypes/package/dist/azmcp

The program is in the npm package `@azure/mcp-linux-x64` (MIT). Its command `bicepschema get` prints the types that
Bicep is built with; it needs no network and sends no telemetry. `make azuretypes` fetches the package and runs this.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.infra.bicep import template
from tests.infra.checking import TYPES, Shapes, problems

TEMPLATES = sorted((Path(__file__).parents[2] / "infra").rglob("*.bicep"))
_OF_EVERY_RESOURCE = {"apiVersion", "id", "type"}


class _Read(dict[str, dict[str, str]]):
    """Shapes that know which of them were looked at."""

    def __init__(self, shapes: Shapes) -> None:
        super().__init__(shapes)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> dict[str, str]:
        self.seen.add(name)
        return super().__getitem__(name)


def shapes_of(program: str, kind: str) -> tuple[str, Shapes]:
    """Ask the program for a resource type; it answers with the newest version that it knows."""
    command = [program, "bicepschema", "get", "--resource-type", kind]
    quiet = {**os.environ, "AZURE_MCP_COLLECT_TELEMETRY": "false"}
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, env=quiet).stdout)
    shapes: Shapes = {}
    name = kind
    for found in answer["results"]["BicepSchemaResult"]:
        if found["$type"] == "Resource":
            name, shapes[""] = found["name"], _shape(found["bodyType"])
        elif found["$type"] in {"Object", "DiscriminatedObject"}:
            shapes[found["name"]] = _shape(found)
    return name, shapes


def _shape(found: dict[str, Any]) -> dict[str, str]:
    shape = dict(map(_property, found.get("properties") or found.get("baseProperties") or []))
    if rest := found.get("additionalPropertiesType"):
        shape["*"] = rest
    for variant in found.get("elements", []):
        for name, kind in map(_property, variant["properties"]):
            if name == found["discriminator"] and name in shape:
                shape[name] += " | " + kind.lstrip("!-")
            shape.setdefault(name, kind)
    return {name: kind for name, kind in shape.items() if not (name in _OF_EVERY_RESOURCE and kind.startswith("-"))}


def _property(found: dict[str, Any]) -> tuple[str, str]:
    flags = found.get("flags", "")
    mark = "-" if "ReadOnly" in flags else "!" if "Required" in flags else ""
    return found["name"], mark + found["type"]


def main(program: str) -> None:
    """Ask for every type that the templates use, and keep the objects that a check of the templates looks at."""
    by_hand = json.loads((TYPES / "by_hand.json").read_text(encoding="utf-8"))["types"]
    used = {one.kind for path in TEMPLATES for one in template(path).resources} - set(by_hand)
    known: dict[str, Any] = dict(by_hand)
    for kind in sorted({name.partition("@")[0] for name in used}):
        name, shapes = shapes_of(program, kind)
        known[name] = _Read(shapes)
    for path in TEMPLATES:
        problems(template(path), known)
    kept = {
        name: {one: shape for one, shape in sorted(shapes.items()) if one in shapes.seen}
        for name, shapes in sorted(known.items())
        if isinstance(shapes, _Read)
    }
    about = "Written by tests/infra/renew_types.py from the npm package @azure/mcp-linux-x64 2.0.5 (MIT, Microsoft)."
    text = json.dumps({"source": about, "types": kept}, indent=1, sort_keys=True)
    (TYPES / "azure.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
