"""Watching and waiting while a server is away for a while, or for good."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from matoolkit.cli.program import run
from matoolkit.clock import VirtualClock
from tests.cli.test_client import JSON, Scripted
from tests.databases import NOON
from tests.servers.http import Answer, Request, served

AWAY = Answer({"detail": "the database is away", "code": "DB503", "status": 503}, 503, JSON)
RESET = Answer(is_reset=True)


def batch(status: str) -> Answer:
    return Answer({"id": 1, "runbookName": "wave", "status": status, "items": []}, headers=JSON)


@pytest.fixture
def api(home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    service = Scripted([])
    with served(service) as address:
        monkeypatch.setenv("MATOOLKIT_API_URL", address)
        yield service


def test_a_server_that_is_away_for_a_while_does_not_end_a_watch(
    api: Scripted, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = [batch("active"), batch("active")]
    api.answers = [*seen, AWAY, RESET, RESET, AWAY, *seen, batch("completed")]
    assert run(["batch", "get", "1", "--watch", "--wait"], VirtualClock(NOON)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [orjson.loads(line)["status"] for line in lines] == ["active", "completed"]


def test_a_server_that_stays_away_ends_it_with_an_error(api: Scripted, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers = [batch("active"), AWAY]
    clock = VirtualClock(NOON)
    assert run(["batch", "get", "1", "--wait"], clock) == 6
    assert clock.monotonic() == 62
    assert "the database is away" in capsys.readouterr().err


def test_what_is_not_there_from_the_beginning_is_not_waited_for(api: Scripted) -> None:
    api.answers = [AWAY]
    clock = VirtualClock(NOON)
    assert run(["batch", "get", "1", "--watch"], clock) == 6
    assert clock.monotonic() == 0


def test_a_refusal_ends_a_wait_at_once(api: Scripted) -> None:
    api.answers = [batch("active"), Answer({"detail": "no", "code": "AD404"}, 404, JSON)]
    assert run(["batch", "get", "1", "--wait"], VirtualClock(NOON)) == 3


@pytest.mark.parametrize(("status", "code"), [("completed", 0), ("failed", 1), ("cancelled", 1)])
def test_the_exit_code_tells_the_outcome(
    api: Scripted, capsys: pytest.CaptureFixture[str], status: str, code: int
) -> None:
    api.answers = [batch("active"), batch(status)]
    assert run(["batch", "get", "1", "--wait", "--json"], VirtualClock(NOON)) == code
    said = capsys.readouterr()
    assert orjson.loads(said.out)["status"] == status
    assert said.err == f"waiting: batch 1: active\nwaiting: batch 1: {status}\nbatch 1 is {status}\n"


def test_requests_carry_who_asks(api: Scripted) -> None:
    api.answers = [Answer({"items": []}, headers=JSON)]
    assert run(["runbook", "list"]) == 0
    (request,) = api.requests
    assert isinstance(request, Request)
    assert request.headers["User-Agent"].startswith("matoolkit/")
