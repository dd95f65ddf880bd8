"""An organisation's TDS endpoint: TLS, sign-in by Entra token, and canned results. It knows no SQL.

What is spoken is TDS 7.4 as Microsoft's drivers speak it: a prelogin, a TLS handshake inside prelogin packets, then
everything inside TLS.
"""

import re
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any, cast

import jwt

from tests.servers import tds_tokens as tokens
from tests.servers.entra import KEY

_BATCH, _CALL, _ATTENTION, _TRANSACTION, _LOGIN, _PRELOGIN, _ANSWER = 0x01, 0x03, 0x06, 0x0E, 0x10, 0x12, 0x04
_BY_NUMBER = 0xFFFF
_PROCEDURES = {10: "sp_executesql", 11: "sp_prepare", 12: "sp_execute", 13: "sp_prepexec", 15: "sp_unprepare"}
_LAST_PACKET = 1
_PACKET_BODY = 4096 - 8
_ENCRYPTION_REQUIRED, _NOT_OFFERED, _END_OF_OPTIONS = b"\x03", b"\x00", 0xFF
_HAS_FEATURES, _FEDERATED_SIGN_IN, _END_OF_FEATURES = 0x10, 2, 0xFF


@dataclass(frozen=True)
class Refusal:
    """An error that the server answers with."""

    number: int
    message: str


@dataclass(frozen=True)
class Result:
    """Columns with their types, and rows. The connection may break after some of them, or an error come at the end."""

    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Any]]
    rows_before_break: int | None = None
    ends_with: Refusal | None = None


@dataclass
class Knowledge:
    """What the server knows, and what it was asked."""

    certificate: Path
    answers: dict[str, Result | Refusal] = field(default_factory=dict)
    other_answer: Result | None = None
    good_tokens: frozenset[str | None] = frozenset({"token-1"})
    # What a token must be for, and the time at which it must not have ended.
    audience: tuple[str, float] | None = None
    tokens_shown: list[str | None] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    open_connections: int = 0
    all_closed: threading.Condition = field(default_factory=threading.Condition)

    def is_good(self, token: str | None) -> bool:
        if self.audience is None or token is None:
            return token in self.good_tokens
        audience, now = self.audience
        try:
            said = jwt.decode(token, KEY, ["HS256"], options={"verify_exp": False, "verify_aud": False})
        except jwt.InvalidTokenError:
            return False
        return bool(said["aud"] == audience and said["exp"] > now)


class Organisation:
    """A server on a free port. Tests talk to it through methods, for it runs in a process of its own.

    In theirs it could not answer: the driver holds Python's lock while it waits for the rest of a row.
    """

    def __init__(self, certificate: Path) -> None:
        self._knowledge = knowledge = Knowledge(certificate)

        class Handler(_Connection):
            asked = knowledge

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def port(self) -> int:
        return self._server.server_address[1]

    def answer(self, query: str, answer: Result | Refusal) -> None:
        self._knowledge.answers[query] = answer

    def answer_all_else(self, answer: Result) -> None:
        self._knowledge.other_answer = answer

    def accept(self, *tokens: str | None) -> None:
        self._knowledge.good_tokens = frozenset(tokens)

    def accept_tokens_for(self, audience: str, now: float) -> None:
        self._knowledge.audience = audience, now

    def show_certificate(self, certificate: Path) -> None:
        self._knowledge.certificate = certificate

    def tokens_shown(self) -> list[str | None]:
        return self._knowledge.tokens_shown

    def queries(self) -> list[str]:
        return self._knowledge.queries

    def calls(self) -> list[tuple[str, str]]:
        """Return the procedures that were called, each with the texts among its arguments."""
        return self._knowledge.calls

    def open_connections(self) -> int:
        return self._knowledge.open_connections

    def wait_until_nobody_is_connected(self) -> bool:
        with self._knowledge.all_closed:
            return self._knowledge.all_closed.wait_for(lambda: self._knowledge.open_connections == 0, timeout=30)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Organisations(BaseManager):
    """The process in which servers run."""

    def organisation(self, certificate: Path) -> Organisation:
        """Start a server, and return what passes calls on to it."""
        return cast("Organisation", self._organisation(certificate))  # type: ignore[attr-defined]


Organisations.register("_organisation", Organisation)


class _Broken(Exception):
    """The connection is to be closed."""


class _Connection(socketserver.BaseRequestHandler):
    asked: Knowledge

    def setup(self) -> None:
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        with self.asked.all_closed:
            self.asked.open_connections += 1

    def finish(self) -> None:
        with self.asked.all_closed:
            self.asked.open_connections -= 1
            self.asked.all_closed.notify_all()

    def handle(self) -> None:
        answers = {
            _PRELOGIN: self._prelogin,
            _LOGIN: self._sign_in,
            _BATCH: self._run,
            _CALL: self._call,
            _TRANSACTION: self._begin_or_end,
            _ATTENTION: lambda _: self._send(tokens.done(attention=True)),
        }
        with suppress(_Broken, OSError):
            while True:
                kind, body = self._message()
                answers.get(kind, lambda _: self._closed())(body)

    def _prelogin(self, body: bytes) -> None:
        version, encryption, instance, thread, sessions, federated = 0, 1, 2, 3, 4, 6
        offered = {
            version: struct.pack(">BBHH", 16, 0, 1000, 0),
            encryption: _ENCRYPTION_REQUIRED,
            instance: b"\x00",
            thread: b"",
            sessions: _NOT_OFFERED,
        }
        if federated in _options(body):
            offered[federated] = b"\x01"
        heads, data = b"", b""
        for option, value in offered.items():
            heads += struct.pack(">BHH", option, 5 * len(offered) + 1 + len(data), len(value))
            data += value
        self._send(heads + b"\xff" + data)
        self._shake_hands()

    def _shake_hands(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.asked.certificate)
        # In TLS 1.3 the server would go on after the handshake, outside prelogin packets.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                self._send_handshake()
                self._incoming.write(self._message()[1])
            else:
                self._send_handshake()
                self._tls = tls
                return

    def _send_handshake(self) -> None:
        if data := self._outgoing.read():
            self._send(data, _PRELOGIN)

    def _sign_in(self, login: bytes) -> None:
        token = _token_in(login)
        self.asked.tokens_shown.append(token if self._tls else None)
        if not self.asked.is_good(token):
            refusal = tokens.error(18456, "Login failed for user '<token-identified principal>'.", severity=14)
            self._send(refusal + tokens.done(failed=True))
            raise _Broken
        self._send(tokens.signed_in("org", by_token=token is not None))

    def _run(self, body: bytes) -> None:
        (headers,) = struct.unpack_from("<I", body)
        query = body[headers:].decode("utf-16-le")
        self.asked.queries.append(query)
        match self.asked.answers.get(query, self.asked.other_answer if "SELECT" in query.upper() else None):
            case Result() as result:
                self._send_rows(result)
            case Refusal() as refusal:
                self._send(_refused(refusal))
            case None:
                # A driver's own statements, such as SET, have no result.
                self._send(tokens.done())

    def _call(self, body: bytes) -> None:
        """Answer a call as if it had changed one row; the driver calls a procedure for a statement with parameters."""
        (headers,) = struct.unpack_from("<I", body)
        (length,) = struct.unpack_from("<H", body, headers)
        arguments = headers + 2 + (2 if length == _BY_NUMBER else 2 * length)
        name = body[headers + 2 : arguments]
        known = _PROCEDURES[name[0]] if length == _BY_NUMBER else name.decode("utf-16-le")
        self.asked.calls.append((known, " ".join(_texts_in(body[arguments:]))))
        self._send(tokens.called(with_handle=known == "sp_prepexec"))

    def _begin_or_end(self, body: bytes) -> None:
        (headers,) = struct.unpack_from("<I", body)
        (request,) = struct.unpack_from("<H", body, headers)
        self._send(tokens.transaction(request))

    def _send_rows(self, result: Result) -> None:
        answer, sent = [tokens.columns(result.columns)], 0
        for sent, row in enumerate(result.rows, start=1):
            if result.rows_before_break is not None and sent > result.rows_before_break:
                self._send(b"".join(answer), is_last=False)
                raise _Broken
            answer.append(tokens.row(result.columns, row))
        end = tokens.done(sent) if result.ends_with is None else _refused(result.ends_with)
        self._send(b"".join(answer) + end)

    def _send(self, body: bytes, kind: int = _ANSWER, *, is_last: bool = True) -> None:
        starts = range(0, max(len(body), 1), _PACKET_BODY)
        packets = b"".join(
            _packet(kind, body[start : start + _PACKET_BODY], number, is_last and start == starts[-1])
            for number, start in enumerate(starts, start=1)
        )
        if self._tls and kind != _PRELOGIN:
            self._tls.write(packets)
            packets = self._outgoing.read()
        self.request.sendall(packets)

    def _message(self) -> tuple[int, bytes]:
        body = b""
        while True:
            kind, status, length, *_ = struct.unpack(">BBHHBB", self._read(8))
            body += self._read(length - 8)
            if status & _LAST_PACKET:
                return kind, body

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._read_some(count - len(data))
        return data

    def _read_some(self, most: int) -> bytes:
        if self._tls is None:
            return self._received(most)
        while True:
            try:
                return self._tls.read(most) or self._closed()
            except ssl.SSLWantReadError:
                self._incoming.write(self._received(65536))

    def _received(self, most: int) -> bytes:
        return self.request.recv(most) or self._closed()

    def _closed(self) -> bytes:
        raise _Broken


def _refused(refusal: Refusal) -> bytes:
    return tokens.error(refusal.number, refusal.message) + tokens.done(failed=True)


def _packet(kind: int, body: bytes, number: int, is_last: bool) -> bytes:
    return struct.pack(">BBHHBB", kind, is_last, len(body) + 8, 51, number & 255, 0) + body


def _options(prelogin: bytes) -> Iterator[int]:
    """Name the options that a prelogin speaks of; each has a head of five bytes, and 255 ends them."""
    place = 0
    while prelogin[place] != _END_OF_OPTIONS:
        yield prelogin[place]
        place += 5


def _texts_in(arguments: bytes) -> list[str]:
    """Find what can be read in the arguments of a call: a statement, and the declaration of its parameters."""
    return [found.decode("utf-16-le") for found in re.findall(rb"(?:[\x20-\x7e]\x00){4,}", arguments)]


def _token_in(login: bytes) -> str | None:
    """Find the Entra token among the features that a login asks for, if it asks for any."""
    if not login[27] & _HAS_FEATURES:
        return None
    (extension,) = struct.unpack_from("<H", login, 56)
    (place,) = struct.unpack_from("<I", login, extension)
    while login[place] != _END_OF_FEATURES:
        feature, length = struct.unpack_from("<BI", login, place)
        if feature == _FEDERATED_SIGN_IN:
            (size,) = struct.unpack_from("<I", login, place + 6)
            return login[place + 10 : place + 10 + size].decode("utf-16-le")
        place += 5 + length
    return None
