"""The client against servers that are down, slow, or answer nonsense: a sentence and an exit code, whatever comes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from matoolkit.cli import http as http_module
from matoolkit.cli.client import path_of
from matoolkit.cli.http import Client
from matoolkit.cli.program import run
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.errors import (
    InvalidSettings,
    MatoolkitError,
    ProblemOfServer,
    ServerTooSlow,
    ServerUnreachable,
    UnreadableAnswer,
)
from tests.databases import NOON
from tests.servers.http import Answer, Request, served

JSON = {"Content-Type": "application/json"}


@dataclass
class Scripted:
    """Gives its answers one after the other, the last again and again."""

    answers: list[Answer]
    requests: list[Request] = field(default_factory=list)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def asking(*answers: Answer, token: str | None = None) -> Iterator[tuple[Client, Scripted]]:
    service = Scripted(list(answers))
    with served(service) as address:
        client = Client(address, 10, lambda: token, SystemClock())
        yield client, service
        client.close()


NONSENSE = {
    "HTML": (Answer(b"<html>hello</html>", headers={"Content-Type": "text/html"}), "it is text/html"),
    "half": (Answer(b'{"items": [', headers=JSON), "it is JSON that is cut off"),
    "a list": (Answer([1, 2], headers=JSON), "it is other JSON"),
    "nothing": (Answer(b""), "it is nothing"),
    "an empty 500": (Answer(b"", 500), "status 500 with nothing"),
    "a gateway's page": (Answer(b"<html/>", 502, {"Content-Type": "text/html"}), "status 502 with text/html"),
    "JSON that is no problem": (Answer({"error": "x"}, 404, JSON), "status 404 with other JSON"),
    "a detail that is no text": (Answer({"detail": [1]}, 400, JSON), "status 400"),
    "a redirect": (Answer(b"", 302, {"Location": "https://else.example/"}), "it sends us to https://else.example/"),
    "bad compression": (Answer(b"xxx", headers={"Content-Encoding": "gzip"}), "incorrect header check"),
    "a type that steers": (Answer(b"x", headers={"Content-Type": "a\x1b[2Jb"}), "it is a�[2Jb"),
}


@pytest.mark.parametrize(("answer", "said"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_said_to_be_nonsense(answer: Answer, said: str) -> None:
    with asking(answer) as (client, _), pytest.raises(UnreadableAnswer) as refused:
        client.get("/api/runbooks")
    assert said in refused.value.message
    assert refused.value.exit_code == 6
    assert refused.value.message.isprintable()


@pytest.mark.parametrize("page", [{}, {"items": 1}, {"items": [1]}, {"items": {"a": 1}}])
def test_a_page_that_is_no_list_is_nonsense(page: Any) -> None:
    with asking(Answer(page, headers=JSON)) as (client, _), pytest.raises(UnreadableAnswer):
        list(client.pages("/api/batches"))


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "MOST_BYTES", 1024)
    with asking(Answer(b" " * 5000, headers=JSON)) as (client, _), pytest.raises(UnreadableAnswer, match="longer than"):
        client.get("/api/runbooks")


def test_an_answer_that_breaks_off_is_a_broken_connection() -> None:
    with asking(Answer(b'{"items": []}', headers=JSON, bytes_sent=5)) as (client, _), pytest.raises(ServerUnreachable):
        client.get("/api/runbooks")


def test_a_text_that_breaks_off_or_is_another_is_not_taken_for_one() -> None:
    csv = {"Content-Type": "text/csv"}
    with asking(Answer(b"a,b\r\n1,2", headers=csv, bytes_sent=5)) as (client, _), pytest.raises(ServerUnreachable):
        list(client.text("/x", "text/csv"))
    page = Answer(b"<html/>", headers={"Content-Type": "text/html"})
    with asking(page) as (client, _), pytest.raises(UnreadableAnswer, match="status 200 with text/html"):
        list(client.text("/x", "text/csv"))


def test_a_server_that_is_down_is_said_to_be() -> None:
    client = Client("http://127.0.0.1:1", 5, lambda: None, SystemClock())
    with pytest.raises(ServerUnreachable, match="connection refused") as refused:
        client.get("/api/runbooks")
    assert refused.value.hint
    assert "matoolkit api serve" in refused.value.hint
    client.close()


def test_a_server_that_does_not_answer_in_time_is_said_to_be_slow() -> None:
    over = threading.Event()

    class Slow:
        def answer(self, _: Request) -> Answer:
            over.wait(10)
            return Answer({})

    with served(Slow()) as address:
        client = Client(address, 0.05, lambda: None, SystemClock())
        with pytest.raises(ServerTooSlow) as read:
            client.get("/api/runbooks")
        with pytest.raises(ServerTooSlow) as previewed:
            client.preview("/api/runbooks/x/query/preview")
        with pytest.raises(ServerTooSlow) as changed:
            client.post("/api/batches/1/cancel", {})
        over.set()
        client.close()
    assert "may have been done" not in f"{read.value.hint} {previewed.value.hint}"
    assert "may have been done" in (changed.value.hint or "")


def test_an_answer_that_only_trickles_is_slow_too() -> None:
    class Hurrying(VirtualClock):
        def monotonic(self) -> float:
            self.sleep(6)
            return super().monotonic()

    with served(Scripted([Answer({"a": 1}, headers=JSON)])) as address:
        client = Client(address, 5, lambda: None, Hurrying(NOON))
        with pytest.raises(ServerTooSlow):
            client.get("/x")
        client.close()


PROBLEM = {"type": "x", "title": "t", "detail": "no such thing", "status": 404, "code": "AD404", "hint": "look"}


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (400, "AD400", 2),
        (400, "AD410", 5),
        (401, "AP401", 4),
        (403, "AP403", 4),
        (404, "AD404", 3),
        (409, "AD411", 5),
        (421, "AP421", 4),
        (422, "RB400", 1),
        (422, "AP422", 2),
        (500, "MT500", 6),
        (503, "DB511", 6),
        (404, "XX999", 3),
        (409, None, 5),
        (412, "XX999", 5),
        (418, "XX999", 2),
    ],
)
def test_a_problem_of_the_server_has_its_words_and_the_exit_code_of_its_kind(
    status: int, code: str | None, exit_code: int
) -> None:
    problem = {**PROBLEM, "status": status, "code": code}
    with asking(Answer(problem, status, JSON)) as (client, _), pytest.raises(ProblemOfServer) as refused:
        client.get("/api/batches/1")
    found = refused.value
    assert (found.message, found.code, found.exit_code) == ("no such thing", code or "CL400", exit_code)
    assert found.hint == ("look" if status != 401 else found.hint)
    assert found.transient is (status >= 500)
    assert status != 401 or "matoolkit auth login" in (found.hint or "")


def test_what_a_server_says_cannot_steer_a_terminal() -> None:
    problem = {**PROBLEM, "detail": "a\x1b[2J\nb" + "c" * 5000, "hint": "\x07"}
    with asking(Answer(problem, 404, JSON)) as (client, _), pytest.raises(ProblemOfServer) as refused:
        client.get("/x")
    assert refused.value.message.startswith("a�[2J b")
    assert len(refused.value.message) == 2000
    assert refused.value.hint == "�"


def test_what_is_lost_on_the_way_is_sent_again_and_a_change_with_its_key() -> None:
    lost, good = Answer(is_reset=True), Answer({"ok": 1}, headers=JSON)
    with asking(lost, good) as (client, service):
        assert client.post("/api/batches/1/advance", {}) == {"ok": 1}
        keys = [request.headers["Idempotency-Key"] for request in service.requests]
    assert len(keys) == 2
    assert keys[0] == keys[1]
    with asking(lost, good) as (client, service):
        assert client.get("/x") == {"ok": 1}
        assert "Idempotency-Key" not in service.requests[0].headers
    with asking(lost) as (client, service), pytest.raises(ServerUnreachable):
        client.post("/api/batches/1/cancel", {})
    assert len(service.requests) == 2


def test_a_change_whose_answer_is_lost_may_have_been_done() -> None:
    lost, broken = Answer(is_reset=True), Answer(b'{"ok": 1}', headers=JSON, bytes_sent=5)
    for answer in (lost, broken):
        with asking(answer) as (client, _):
            with pytest.raises(ServerUnreachable) as looked:
                client.get("/x")
            with pytest.raises(ServerUnreachable) as changed:
                client.post("/api/batches/1/cancel", {})
        assert "may have been done" not in (looked.value.hint or "")
        assert "may have been done" in (changed.value.hint or "")
        assert "cannot reach" not in changed.value.message


def test_a_change_that_was_lost_with_its_server_may_have_been_done_and_one_that_was_not_sent_was_not() -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def take_one_and_go() -> None:
        connection, _ = listener.accept()
        listener.close()
        connection.recv(100_000)
        connection.close()

    server = threading.Thread(target=take_one_and_go)
    server.start()
    client = Client(f"http://127.0.0.1:{listener.getsockname()[1]}", 10, lambda: None, SystemClock())
    with pytest.raises(ServerUnreachable) as sent:
        client.post("/api/batches/1/cancel", {})
    server.join()
    with pytest.raises(ServerUnreachable, match="cannot reach") as not_sent:
        client.post("/api/batches/1/cancel", {})
    client.close()
    assert "may have been done" in (sent.value.hint or "")
    assert "may have been done" not in (not_sent.value.hint or "")


def test_what_has_not_changed_is_not_sent_again() -> None:
    first = Answer({"n": 1}, headers={**JSON, "ETag": '"a"'})
    with asking(first, Answer(b"", 304, {"ETag": '"a"'}), Answer({"n": 2}, headers=JSON)) as (client, service):
        assert [client.get("/x")["n"] for _ in range(3)] == [1, 1, 2]
        assert [request.headers.get("If-None-Match") for request in service.requests] == [None, '"a"', '"a"']
    with asking(Answer(b"", 304)) as (client, _), pytest.raises(UnreadableAnswer):
        client.get("/x")


def test_two_changes_have_two_keys() -> None:
    with asking(Answer({}, headers=JSON)) as (client, service):
        client.post("/x", {})
        client.post("/x", {})
        assert len({request.headers["Idempotency-Key"] for request in service.requests}) == 2


def test_a_token_goes_with_every_request_but_never_in_the_open_to_another_machine() -> None:
    with asking(Answer({}, headers=JSON), token="t-1") as (client, service):
        client.get("/x")
        assert service.requests[0].headers["Authorization"] == "Bearer t-1"
    elsewhere = Client("http://api.example", 5, lambda: "t-1", SystemClock())
    with pytest.raises(InvalidSettings, match="is not sent to http"):
        elsewhere.get("/x")
    elsewhere.close()


@pytest.mark.parametrize("token", ["a\nb", "tokén", "a b", "a\x00"])
def test_a_token_that_is_none_is_refused_before_it_is_sent(token: str) -> None:
    with asking(Answer({}, headers=JSON), token=token) as (client, service):
        with pytest.raises(InvalidSettings) as refused:
            client.get("/x")
        assert service.requests == []
    assert token not in refused.value.message


@pytest.mark.parametrize(
    ("part", "path"),
    [("a/b?c#d", "/api/x/a%2Fb%3Fc%23d"), ("..", "/api/x/%2E%2E"), ("ü", "/api/x/%C3%BC"), (7, "/api/x/7")],
)
def test_a_name_never_leads_to_another_address(part: str | int, path: str) -> None:
    assert path_of("x", part) == path
    with asking(Answer({}, headers=JSON)) as (client, service):
        client.get(path_of("x", part))
        assert service.requests[0].path == path


def test_pages_are_followed_until_there_are_enough() -> None:
    pages = [
        Answer({"items": [{"n": 1}, {"n": 2}], "next": "c"}, headers=JSON),
        Answer({"items": [{"n": 3}]}, headers=JSON),
    ]
    with asking(*pages) as (client, service):
        assert [item["n"] for item in client.pages("/api/x", status=None, phase="a b")] == [1, 2, 3]
        assert [request.path for request in service.requests] == [
            "/api/x?phase=a+b&limit=1000",
            "/api/x?phase=a+b&limit=1000&cursor=c",
        ]
    with asking(*pages) as (client, service):
        assert len(list(client.pages("/api/x", most=2))) == 2
        assert len(service.requests) == 1


@pytest.mark.parametrize("items", [[], [{"n": 1}]])
def test_a_server_whose_pages_never_end_does_not_keep_us(items: list[dict[str, int]]) -> None:
    with asking(Answer({"items": items, "next": "c"}, headers=JSON)) as (client, service):
        if items:
            with pytest.raises(UnreadableAnswer, match="repeat themselves"):
                list(client.pages("/x"))
        else:
            assert list(client.pages("/x")) == []
        assert len(service.requests) <= 2


def test_every_command_says_nonsense_in_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    commands = [
        "runbook list",
        "batch get 1",
        "batch list",
        "batch members 1",
        "member find x",
        "hold show 1",
        "api status",
    ]
    odd = {"id": "x", "members": 5, "phases": {"a": 1}, "initSteps": "no", "items": [{"members": 3, "phases": 4}]}
    answers = [
        Answer(odd, headers=JSON),
        Answer({}, headers=JSON),
        Answer({"items": None}, headers=JSON),
        Answer(b"", 500),
        Answer([], headers=JSON),
    ]
    for answer in answers:
        with served(Scripted([answer])) as address:
            monkeypatch.setenv("MATOOLKIT_API_URL", address)
            for command in commands:
                assert run(command.split()) in (0, 6)
                said = capsys.readouterr()
                assert "bug" not in said.err, f"{command}: {answer}"
                assert "Traceback" not in said.err


def test_the_errors_of_the_client_are_our_own() -> None:
    for error in (ServerUnreachable("a", "b"), ServerTooSlow("a", 1, may_be_done=False), UnreadableAnswer("a", "b")):
        assert isinstance(error, MatoolkitError)
        assert error.exit_code == 6
