"""`matoolkit tenant serve`, as people and pipelines use it."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from matoolkit.cli.program import run

JANE = {"displayName": "Jane", "userPrincipalName": "jane@contoso.example"}


def test_w9_a_tenant_is_served_until_it_is_stopped(tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps({"users": [JANE], "lags": {"graph": 3}, "faults": {"kind": "fail"}}), encoding="utf-8")
    command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "tenant", "serve"]
    with subprocess.Popen([*command, "--port", "0", "--seed", str(seed)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        users = httpx.get(f"{url}/_tenant/users", trust_env=False).json()
        lags = httpx.get(f"{url}/_tenant/lags", trust_env=False).json()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert [one["userPrincipalName"] for one in users] == ["jane@contoso.example"]
    assert lags["graph"] == 3


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "it is not JSON"),
        ([], "it is not a JSON object"),
        ({"user": []}, "it has user, but only domains, users, applications, groups"),
        ({"users": [{"displayName": "x"}]}, "users cannot be done: 'userPrincipalName'"),
        ({"users": [JANE], "lags": {"graf": 1}}, "there is no lag 'graf'"),
        ({"users": [JANE, JANE]}, "jane@contoso.example: there is such a user already"),
    ],
)
def test_a_seed_that_cannot_be_read_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, told: str
) -> None:
    seed = tmp_path / "seed.json"
    seed.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    assert run(["tenant", "serve", "--port", "0", "--seed", str(seed)]) == 3
    assert told in capsys.readouterr().err


def test_a_seed_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tenant", "serve", "--seed", str(tmp_path / "nothing.json")]) == 3
    assert "no such file" in capsys.readouterr().err


def test_w9_a_tenant_with_a_state_goes_on_after_it_was_killed(tmp_path: Path) -> None:
    seed, state = tmp_path / "seed.json", tmp_path / "tenant.json"
    seed.write_text(json.dumps({"users": [JANE]}), encoding="utf-8")
    command = [sys.executable, "-c", "from matoolkit.cli.main import main; main()", "tenant", "serve"]
    options = ["--port", "0", "--seed", str(seed), "--state", str(state)]
    for expected in ({"jane"}, {"jane", "joe"}):
        with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            url = process.stdout.readline().strip()
            users = httpx.get(f"{url}/_tenant/users", trust_env=False).json()
            assert {one["userPrincipalName"].partition("@")[0] for one in users} == expected
            if len(expected) == 1:
                joe = {**JANE, "userPrincipalName": "joe@contoso.example"}
                assert httpx.post(f"{url}/_tenant/users", json=joe, trust_env=False).status_code == 200
            process.kill()
