"""The JSON Schema agrees with the parser as far as a schema can."""

from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml

from matoolkit.runbook.schema import Draft, json_schema

from .documents import codes, good, step

SAMPLES = sorted((Path(__file__).parents[2] / "runbooks").glob("*.yaml"))
DRAFTS = get_args(Draft)


def errors(draft: Draft, document: Any) -> list[str]:
    schema = json_schema(draft)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return [error.message for error in validator(schema).iter_errors(document)]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_samples_fit_the_schema(draft: Draft, sample: Path) -> None:
    assert errors(draft, yaml.safe_load(sample.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("draft", DRAFTS)
def test_own_keys_fit_the_schema_at_any_level(draft: Draft) -> None:
    document = {**good(), "x-top": 1, "rollbacks": {"x-own": "anything"}}
    document["phases"][0]["x-phase"] = []
    document["data_source"]["x-source"] = None
    assert errors(draft, document) == []


BROKEN: list[dict[str, Any]] = [
    {"name": "a b"},
    {"name": None},
    {"nope": 1},
    {"phases": []},
    {"phases": [{"name": "p", "offset": "T-5", "steps": [step()]}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step(timeout="5 minutes")]}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step(retry={"max_retries": -1})]}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step(retry=None)]}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step(params=[])]}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step(allowed_functions=[])]}]},
    {"rollbacks": {"bad name": [step()]}},
    {"rollbacks": {"empty": []}},
    {"safeguards": {"max_removals": "200%"}},
    {"safeguards": {"max_delay": "soon"}},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step()], "window": {"from": "8:00"}}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step()], "window": {"days": []}}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step()], "window": {"days": ["friday"]}}]},
    {"phases": [{"name": "p", "offset": "T-0", "steps": [step()], "window": {"to": None}}]},
    {"data_source": {**good()["data_source"], "type": "excel"}},
    {"data_source": {**good()["data_source"], "connection": "https://x"}},
    {"data_source": {**good()["data_source"], "batch_time": "now"}},
]


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("change", BROKEN, ids=str)
def test_what_the_schema_refuses_the_linter_refuses_too(draft: Draft, change: dict[str, Any]) -> None:
    document = {**good(), **change}
    assert errors(draft, document)
    assert any(code < "RB300" for code in codes(document))
