"""Who is let in: real tokens, signed and verified against keys served on this machine."""

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from httpx import Client, get, request

from matoolkit.clock import VirtualClock
from matoolkit.doors.entra import Entra
from matoolkit.doors.services import Services
from matoolkit.doors.signingkeys import SECONDS_AFTER_FAILURE, SECONDS_BETWEEN_FETCHES, SECONDS_FRESH, SECONDS_KEPT
from tests.api.conftest import DOCUMENT
from tests.servers.api import serving
from tests.servers.http import Answer, Request, served
from tests.waiting import until

pytestmark = pytest.mark.on("sqlite")

TENANT = "11111111-2222-3333-4444-55555555abcd"
APP = "99999999-8888-7777-6666-55555555abcd"
KEY = rsa.generate_private_key(65537, 2048)
STRANGER = rsa.generate_private_key(65537, 2048)


@dataclass
class Keys:
    """Serves the public key, and counts how often it was asked for; `may_answer` lets it hang."""

    asked: int = 0
    instead: Answer | None = None
    may_answer: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.may_answer.set()

    def answer(self, _: Request, /) -> Answer:
        self.asked += 1
        self.may_answer.wait()
        if self.instead:
            return self.instead
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return Answer({"keys": [{**key, "kid": "one", "use": "sig"}]})


@pytest.fixture
def keys() -> Keys:
    return Keys()


@pytest.fixture
def client(services: Services, keys: Keys, clock: VirtualClock) -> Iterator[Client]:
    with served(keys) as address:
        # Somebody copied the ids from a page that writes them in capitals.
        entra = Entra(TENANT.upper(), APP.upper(), clock, keys_url=f"{address}/keys")
        with (
            serving(replace(services, sign_in=entra)) as api,
            Client(base_url=api) as client,
        ):
            yield client


def claims(**other: Any) -> dict[str, Any]:
    now = int(time.time())  # noqa: TID251 - tokens are of the real time
    usual = {
        "aud": f"api://{APP}",
        "iss": f"https://login.microsoftonline.com/{TENANT}/v2.0",
        "tid": TENANT,
        "iat": now,
        "nbf": now - 10,
        "exp": now + 3600,
        "preferred_username": "anna@contoso.example",
        "name": "Anna",
        "oid": "0aa0",
        "scp": "access_as_user",
        "roles": ["Admin"],
        **other,
    }
    return {name: value for name, value in usual.items() if value is not None}


def signed(key: Any = KEY, kid: str = "one", **other: Any) -> str:
    return jwt.encode(claims(**other), key, "RS256", headers={"kid": kid})


def reading(client: Client, token: str) -> Any:
    return client.get("/api/runbooks", headers={"Authorization": f"Bearer {token}"})


def writing(client: Client, token: str) -> Any:
    return client.post("/api/runbooks", json={"yamlContent": DOCUMENT}, headers={"Authorization": f"Bearer {token}"})


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({}, "anna@contoso.example"),
        ({"iss": f"https://sts.windows.net/{TENANT}/", "aud": APP}, "anna@contoso.example"),
        ({"preferred_username": None, "upn": "anna.v1@contoso.example", "ver": "1.0"}, "anna.v1@contoso.example"),
        ({"preferred_username": None}, "Anna"),
        ({"preferred_username": None, "name": None, "idtyp": "app", "scp": None}, "0aa0"),
        ({"preferred_username": None, "name": None, "oid": None}, "system"),
    ],
    ids=["v2", "v1", "upn", "name", "app-only", "nameless"],
)
def test_a_good_token_is_known_by_its_name(client: Client, other: dict[str, Any], name: str) -> None:
    token = signed(**other)
    assert writing(client, token).status_code == 201
    audit = client.get("/api/audit", headers={"Authorization": f"Bearer {token}"}).json()
    assert audit["items"][0]["actor"] == name


NOW = int(time.time())  # noqa: TID251


def unsigned() -> str:
    return jwt.encode(claims(), "", "none", headers={"kid": "one"})


def with_the_public_key_as_secret() -> str:
    secret = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = [{"alg": "HS256", "typ": "JWT", "kid": "one"}, claims()]
    text = b".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in parts)
    mac = base64.urlsafe_b64encode(hmac.digest(secret, text, hashlib.sha256)).rstrip(b"=")
    return f"{text.decode()}.{mac.decode()}"


BAD = {
    "audience": (signed(aud="api://other"), "another application"),
    "issuer": (signed(iss="https://login.microsoftonline.com/other/v2.0"), "another issuer"),
    "tenant": (signed(tid="other"), "another tenant"),
    "expired": (signed(exp=NOW - 3600, nbf=NOW - 7200), "expired"),
    "early": (signed(nbf=NOW + 3600), "not valid yet"),
    "unknown key": (signed(kid="two"), "unknown key"),
    "signature": (signed(STRANGER), "signature is wrong"),
    "alg none": (unsigned(), "not signed with RS256"),
    "HS256": (with_the_public_key_as_secret(), "not signed with RS256"),
    "ID token": (signed(aud=APP, scp=None, roles=None, nonce="n"), "neither a scope nor a role"),
    "application without a role": (signed(scp=None, roles=[]), "neither a scope nor a role"),
    "no expiry": (signed(exp=None), "not valid"),
    "no tenant": (signed(tid=None), "not valid"),
    "nonsense": ("nonsense", "not valid"),
    "dots": ("a.b.c", "not valid"),
}


@pytest.mark.parametrize(("token", "why"), BAD.values(), ids=BAD)
def test_a_bad_token_is_refused_with_the_reason(client: Client, token: str, why: str) -> None:
    for answer in (reading(client, token), writing(client, token)):
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.json()["code"] == "AP401"
        assert why in answer.json()["detail"]


def test_without_the_role_one_reads_and_changes_nothing(client: Client) -> None:
    for roles in (None, [], ["Reader"], "Admin"):
        token = signed(roles=roles)
        assert reading(client, token).json()["items"] == []
        refused = writing(client, token)
        assert (refused.status_code, refused.json()["code"]) == (403, "AP403")


def test_g11_an_operator_pauses_and_resumes_and_changes_nothing_else(client: Client) -> None:
    headers = {"Authorization": f"Bearer {signed(roles=['Operator'])}"}
    gate = client.post("/api/gates", json={"reason": "legal hold"}, headers=headers)
    assert gate.status_code == 201
    assert client.post("/api/gates/resume", json={"reason": "it is over"}, headers=headers).status_code == 200
    refused = writing(client, signed(roles=["Operator"]))
    assert (refused.status_code, refused.json()["code"]) == (403, "AP403")
    for roles in ([], ["Approver"], ["Reader"]):
        denied = {"Authorization": f"Bearer {signed(roles=roles)}"}
        assert client.post("/api/gates", json={"reason": "legal hold"}, headers=denied).status_code == 403


def test_every_route_but_health_wants_a_token(client: Client) -> None:
    document = client.get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in methods:
            address = path.format(name="x", version=1, batch_id=1, member_id=1, letter_id=1, gate_id=1, phase_id=1)
            body: dict[str, Any] = {"json": {}} if method in ("post", "put") else {}
            if address.endswith(("/members", "/batches")) and method == "post":
                body = {"files": {"file": b"Email\r\na\r\n"}}
            status = client.request(method, address, **body).status_code
            assert status == (200 if path in ("/healthz", "/readyz") else 401), (method, path)


def test_nobody_without_a_token_is_told_what_is_wrong_with_a_body(client: Client) -> None:
    for path in ("/api/runbooks", "/api/batches/1/cancel", "/api/batches/1/hold/approve", "/api/nothing"):
        for body in (b"{", b'{"x": 1}', b"x" * 1_000_000):
            answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
            assert (answer.status_code, answer.json()["code"]) == (401, "AP401"), path
    assert client.put("/api/runbooks/x/automation", content=b"{").status_code == 401


def test_changes_want_the_role(client: Client) -> None:
    document = client.get("/openapi.json").json()
    bodies = {
        "/api/runbooks/{name}/automation": {"enabled": True},
        "/api/batches/{batch_id}/hold/approve": {"holdKey": "x"},
    }
    headers = {"Authorization": f"Bearer {signed(roles=None)}"}
    for path, methods in document["paths"].items():
        for method in set(methods) - {"get"}:
            address = path.format(name="x", version=1, batch_id=1, member_id=1, letter_id=1, gate_id=1, phase_id=1)
            given: dict[str, Any] = {"json": bodies.get(path)} if path in bodies else {}
            if path.endswith(("/members", "/batches")):
                given = {"files": {"file": b"Email\r\na\r\n"}}
            assert client.request(method, address, headers=headers, **given).status_code == 403, (method, path)


def test_nobody_uploads_a_file_without_the_role(client: Client) -> None:
    for token, status in (("nonsense", 401), (signed(roles=[]), 403)):
        headers = {"Authorization": f"Bearer {token}"}
        answer = client.post("/api/batches", files={"file": b"x" * 1_000_000}, headers=headers)
        assert answer.status_code == status


def test_made_up_keys_do_not_make_us_fetch_each_time(client: Client, keys: Keys) -> None:
    for number in range(5):
        reading(client, signed(kid=f"made-up-{number}"))
    assert keys.asked == 1


@pytest.mark.parametrize(
    "instead",
    [
        Answer({}, 500),
        Answer(b"<html>Sign in to the proxy</html>"),
        Answer([]),
        Answer({"keys": 1}),
        Answer(is_reset=True),
    ],
    ids=["500", "HTML", "a list", "a number", "reset"],
)
def test_a2_keys_that_cannot_be_fetched_are_our_trouble_and_are_not_fetched_each_time(
    client: Client, keys: Keys, clock: VirtualClock, instead: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    keys.instead = instead
    for _ in range(3):
        answer = reading(client, signed())
        assert (answer.status_code, answer.json()["code"]) == (503, "AP503")
    assert keys.asked == 1
    keys.instead = None
    clock.advance(timedelta(seconds=SECONDS_AFTER_FAILURE))
    assert reading(client, signed()).status_code == 200
    told = [record.getMessage() for record in caplog.records if record.name.startswith("matoolkit.doors")]
    assert [line.partition(":")[0] for line in told] == [
        "fetching the signing keys fails, and is tried again",
        "fetching the signing keys works again after 10 seconds",
    ]


def test_a2_known_keys_are_good_for_a_day_without_entra_and_fetched_again_in_good_time(
    client: Client, keys: Keys, clock: VirtualClock
) -> None:
    assert reading(client, signed()).status_code == 200
    keys.instead = Answer({}, 500)
    clock.advance(timedelta(seconds=SECONDS_FRESH))
    assert reading(client, signed()).status_code == 200
    until(lambda: keys.asked == 2)
    clock.advance(timedelta(seconds=SECONDS_KEPT - SECONDS_FRESH))
    assert reading(client, signed()).status_code == 503


def test_a2_while_the_address_of_the_keys_hangs_nobody_waits_for_made_up_tokens(
    client: Client, keys: Keys, clock: VirtualClock
) -> None:
    good = signed()
    assert reading(client, good).status_code == 200
    clock.advance(timedelta(seconds=SECONDS_BETWEEN_FETCHES))
    keys.may_answer.clear()
    with ThreadPoolExecutor(60) as pool:
        made_up = [pool.submit(reading, client, signed(kid=f"made-up-{number}")) for number in range(60)]
        until(lambda: keys.asked == 2)
        until(lambda: sum(one.done() for one in made_up) >= 50)
        assert reading(client, good).status_code == 200
        assert client.get("/healthz").status_code == 200
        assert not all(one.done() for one in made_up)
        keys.may_answer.set()
    assert {one.result().status_code for one in made_up} == {401, 503}
    assert keys.asked == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Host", "evil.example"),
        ("Host", "localhost.evil.example"),
        ("Host", "127.0.0.1@evil.example"),
        ("Host", "["),
        ("Host", "[::1"),
        ("Host", "127.0.0.1:port"),
        ("Host", ""),
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://["),
        ("Origin", "http://localhost:99999999"),
        ("Origin", "http://127.0.0.1:{another}"),
        ("Origin", "http://127.0.0.1"),
        ("Origin", "https://127.0.0.1:{port}"),
        ("Origin", "http://evil.example:{port}"),
        ("Origin", ""),
    ],
)
def test_a2_without_entra_only_programs_and_pages_of_this_very_address_are_answered(
    services: Services, name: str, value: str
) -> None:
    with serving(services) as address:
        port = int(address.rpartition(":")[2])
        headers = {name: value.format(port=port, another=port - 1)}
        for method, path in (("GET", "/api/runbooks"), ("POST", "/api/batches"), ("POST", "/api/nothing")):
            answer = request(method, f"{address}{path}", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (421, "AP421")


@pytest.mark.parametrize("headers", [{}, {"Origin": "http://127.0.0.1:{port}"}, {"Host": "localhost:1"}])
def test_a2_without_entra_a_program_here_is_answered(services: Services, headers: dict[str, str]) -> None:
    with serving(services) as address:
        given = {name: value.format(port=address.rpartition(":")[2]) for name, value in headers.items()}
        assert get(f"{address}/api/runbooks", headers=given).status_code == 200
        assert get(f"{address}/nothing", headers=given).status_code == 404


def test_s11_an_address_that_is_nowhere_is_not_found_under_a_host_that_is_none(services: Services) -> None:
    with serving(services) as address:
        assert get(f"{address}/nothing", headers={"Host": "["}).status_code == 404
