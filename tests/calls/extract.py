"""Makes contract.json again from local copies of what it is extracted from. Nothing is fetched, imported or run.

    python -m tests.calls.extract --graph msgraph_sdk-….whl --graph-beta msgraph_beta_sdk-….whl \\
        --databricks databricks_sdk-….whl --exchange FOLDER --exchange-commit COMMIT

The wheels are those of `msgraph-sdk`, `msgraph-beta-sdk` and `databricks-sdk` (`pip download --no-deps`). FOLDER is the
folder `exchange` of a copy of the repository `MicrosoftDocs/office-docs-powershell` at that commit.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from tests.calls import wanted
from tests.calls.checking import CONTRACT
from tests.calls.cmdlets import parameters, properties
from tests.calls.wheels import GraphWheel, databricks, version_of


def main() -> None:
    """Read the arguments and write the contract."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("graph", "graph-beta", "databricks", "exchange"):
        reader.add_argument(f"--{name}", type=Path, required=True)
    reader.add_argument("--exchange-commit", required=True)
    given = reader.parse_args()
    contract = {
        "origin": _origin(given),
        "graph": _graph(given.graph, given.graph_beta),
        "exchange": _exchange(given.exchange),
        "databricks": databricks(given.databricks, wanted.DATABRICKS),
    }
    CONTRACT.write_text(written(contract), encoding="utf-8")


def written(contract: dict[str, Any]) -> str:
    """Write a contract with one line for each call, type and cmdlet, so that a change shows where it is."""
    return _written(contract, depth=0) + "\n"


def _written(value: Any, depth: int) -> str:
    if depth == 3 or not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    inner = ",\n".join(f'{" " * (depth + 1)}"{key}": {_written(value[key], depth + 1)}' for key in sorted(value))
    return f"{{\n{inner}\n{' ' * depth}}}"


def _origin(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "graph": {"from": f"msgraph-sdk {version_of(given.graph)}", "licence": "MIT"},
        "graph beta": {"from": f"msgraph-beta-sdk {version_of(given.graph_beta)}", "licence": "MIT"},
        "databricks": {"from": f"databricks-sdk {version_of(given.databricks)}", "licence": "Apache-2.0"},
        "exchange": {
            "from": f"MicrosoftDocs/office-docs-powershell {given.exchange_commit}",
            "licence": "CC-BY-4.0, names of parameters and properties only",
        },
        "by hand": {"from": "tests/calls/wanted.py: DEFAULTS, ANSWERS_LIKE, ANSWERS_BY_HAND", "licence": "MIT"},
    }


def _graph(path: Path, beta: Path) -> dict[str, Any]:
    wheels = (GraphWheel(path, "v1.0", wanted.NESTED), GraphWheel(beta, "beta", wanted.NESTED))
    calls = dict(wheels[0].calls(wanted.GRAPH)) | dict(wheels[1].calls(wanted.GRAPH_BETA))
    # What beta adds to a type that both have is not there in v1.0.
    return {
        "calls": calls,
        "types": wheels[1].types | wheels[0].types,
        "enums": wheels[1].enums | wheels[0].enums,
        "defaults": {name: sorted(listed) for name, listed in wanted.DEFAULTS.items()},
    }


def _exchange(folder: Path) -> dict[str, Any]:
    pages = folder / "exchange-ps" / "ExchangePowerShell"
    listed = properties(folder / "docs-conceptual", wanted.ANSWERS_BY_HAND)
    known = {name: sorted(listed.get(name, set()).union(more)) for name, more in wanted.ANSWERS_BY_HAND.items()}
    return {
        "cmdlets": {name: parameters(pages / f"{name}.md") for name in wanted.CMDLETS},
        "answers": known,
        "answers like": dict(wanted.ANSWERS_LIKE),
    }


if __name__ == "__main__":
    main()
