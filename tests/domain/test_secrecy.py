"""W8: what is kept of a job that nobody could do."""

import orjson
import pytest

from matoolkit.domain.secrecy import job_without_secrets, known_secrets


def test_w8_secret_parameters_are_masked_at_any_depth() -> None:
    job = {
        "JobId": "step-1-attempt-1",
        "parameters": {
            "Password": "p",
            "Token": ["a", {"b": 5}],
            "Name": "Ada",
            "More": [{"PASSWORD": "q", "Other": None}],
            "password": None,
        },
    }
    assert orjson.loads(job_without_secrets(orjson.dumps(job).decode(), {"send-it": frozenset({"token"})})) == {
        "JobId": "step-1-attempt-1",
        "parameters": {
            "Password": "***",
            "Token": ["***", {"b": "***"}],
            "Name": "Ada",
            "More": [{"PASSWORD": "***", "Other": None}],
            "password": None,
        },
    }


@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "[1]",
        '{"Parameters": 5}',
        '{ "Parameters": {"Password": "secret:NAME", "x": 1} }',
        '{"Password": 1}',
    ],
)
def test_w8_anything_else_is_kept_as_it_is(body: str) -> None:
    assert job_without_secrets(body, {}) == body


def test_w8_what_workers_announce_as_secret_is_secret() -> None:
    announced = [
        ("Send-It", '[{"name": "Token", "is_secret": true}, {"name": "User", "is_secret": false}]'),
        ("send-it", '[{"name": "Key", "is_secret": true}]'),
        ("New-EntraUser", "[]"),
        ("Bad-1", "not json"),
        ("Bad-2", "{}"),
        ("Bad-3", "[5]"),
    ]
    built_in = known_secrets([])
    assert built_in["new-entrauser"] == built_in["set-entrauserpassword"] == frozenset({"password"})
    assert known_secrets(announced) == {**built_in, "send-it": frozenset({"token", "key"})}


def test_w8_what_the_row_keeps_as_a_template_is_masked_in_its_job_too() -> None:
    job = {"Parameters": {"Name": "Ada", "Note": ["pin 271828", "{{x}}"], "Other": "{{Name}}"}}
    kept = {"Name": "Ada", "Note": ["pin {{Pin}}", "{{x}}"], "Other": "{{Name}}"}
    body, row = orjson.dumps(job).decode(), orjson.dumps(kept).decode()
    masked = {"Parameters": {"Name": "Ada", "Note": ["***", "{{x}}"], "Other": "{{Name}}"}}
    assert orjson.loads(job_without_secrets(body, {}, row)) == masked
    assert job_without_secrets(body, {}, '{"Name": 5, "Note": []}') == body
