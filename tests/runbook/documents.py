"""Small runbooks for tests: a good one, and ways to change it."""

import copy
from typing import Any

import yaml

from matoolkit.errors import Finding
from matoolkit.runbook.parse import lint_runbook

STEP: dict[str, Any] = {
    "name": "rename",
    "worker_id": "worker-01",
    "function": "Set-EntraUserUPN",
    "params": {"UserId": "{{Id}}", "NewUserPrincipalName": "{{Upn}}"},
}

GOOD: dict[str, Any] = {
    "name": "move",
    "data_source": {
        "type": "sql",
        "connection": "SOURCE_URL",
        "query": "SELECT Id, Upn, T, Aliases FROM people",
        "primary_key": "Id",
        "batch_time_column": "T",
        "multi_valued_columns": [{"name": "Aliases", "format": "json_array"}],
    },
    "phases": [{"name": "cutover", "offset": "T-0", "steps": [STEP]}],
}


def good() -> dict[str, Any]:
    return copy.deepcopy(GOOD)


def step(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(STEP), **changes}


def phase(name: str, offset: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "offset": offset, "steps": list(steps) or [step()]}


def findings(document: Any) -> list[Finding]:
    text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
    return list(lint_runbook(text).findings)


def codes(document: Any) -> list[str]:
    return [found.code for found in findings(document)]
