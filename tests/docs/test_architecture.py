"""docs/explanation/architecture.md speaks of the house as it is."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def test_the_rooms_are_those_that_the_contract_knows() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "rooms")
    (drawn,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert drawn.split("\n") == [*layers, ""]


def test_every_module_that_is_named_is_there() -> None:
    named = re.findall(r"`([a-z_/]+\.(?:py|yaml))`", PAGE)
    assert len(named) > 50
    missing = [name for name in named if not any((at / name).exists() for at in (ROOT / "src" / "matoolkit", ROOT))]
    assert missing == []


def test_every_folder_of_the_package_is_a_room_in_the_table() -> None:
    rooms = {path.name for path in (ROOT / "src" / "matoolkit").iterdir() if (path / "__init__.py").exists()}
    told = set(re.findall(r"`(\w+)`", "\n".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert rooms - {"errors"} <= told
