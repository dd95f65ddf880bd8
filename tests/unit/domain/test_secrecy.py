"""W8: what is kept of a job that nobody could do."""

import orjson
import pytest

from matoolkit.domain.secrecy import job_without_secrets, secret_names


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
    assert orjson.loads(job_without_secrets(orjson.dumps(job).decode(), {"token"})) == {
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
    assert job_without_secrets(body, ()) == body


def test_w8_what_workers_announce_as_secret_is_secret() -> None:
    announced = [
        '[{"name": "Token", "is_secret": true}, {"name": "User", "is_secret": false}]',
        "not json",
        "{}",
        "[5]",
    ]
    assert secret_names(announced) == {"Token"}
