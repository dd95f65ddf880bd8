"""Signing in to the pages at Entra: the code flow, played against an Entra that refuses what the real one refuses."""

import re
from base64 import b64decode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.services import Services
from matoolkit.web.entrance import Entrance
from matoolkit.web.entries import LASTING
from tests.servers.entra import ANN
from tests.servers.entra_for_pages import APP, KEY, STRANGER, TENANT
from tests.servers.http import Answer
from tests.web.signing import Browser, Place, onward_from, place

pytestmark = pytest.mark.on("sqlite")

DONE = "/signin/done"
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that starts now: tokens are of the real time."""
    return VirtualClock(SystemClock().now())


@pytest.fixture
def pages(services: Services, clock: VirtualClock, tmp_path: Path) -> Iterator[Place]:
    with place(services, clock, tmp_path) as served:
        yield served


def came_back(browser: Browser, **wanted: str) -> str:
    """Sign in as far as the address to which Entra sends the browser back."""
    return browser.stop_before(DONE, "/signin" + (f"?{urlencode(wanted)}" if wanted else ""))


def test_a_person_signs_in_and_comes_to_the_page_that_was_wanted(pages: Place) -> None:
    browser = pages.browser()
    answer = browser.go("/preferences?back=%2Fbatches")
    assert answer.status_code == 200
    assert str(answer.url) == f"{pages.address}/preferences?back=%2Fbatches"
    assert ANN in answer.text
    assert "sign out" in answer.text
    assert browser.send("/change", csrf=browser.token()).text == f"changed by {ANN}"


def test_entra_is_asked_for_who_it_is_and_for_nothing_else(pages: Place) -> None:
    pages.signed_in()
    (asked,) = pages.entra.asked("/authorize")
    assert (asked["scope"], asked["response_mode"]) == ("openid profile", "query")
    assert "prompt" not in asked
    (redeemed,) = pages.entra.asked("/token")
    assert redeemed["scope"] == "openid profile"
    assert not {"client_secret", "refresh_token"} & set(redeemed)


def test_no_token_reaches_the_browser(pages: Place) -> None:
    browser = pages.signed_in()
    browser.look("/batches")
    (redeemed,) = pages.entra.asked("/token")
    secrets = [*pages.entra.issued, redeemed["client_assertion"]]
    assert len(secrets) == 3
    ours = [answer for answer in browser.answers if str(answer.url).startswith(pages.address)]
    cookies = [value for answer in ours for value in re.findall(r"=([\w-]+)\.", str(answer.headers))]
    read = [b64decode(value + "=" * (-len(value) % 4), "-_").decode() for value in cookies]
    assert any(ANN in one for one in read)
    for said in [*read, *(answer.text + str(answer.headers) for answer in ours)]:
        assert not [secret for secret in secrets if secret in said]


@pytest.mark.parametrize(
    ("claims", "name", "is_admin"),
    [
        ({}, ANN, True),
        ({"roles": None}, ANN, False),
        ({"roles": ["Reader"]}, ANN, False),
        ({"roles": "Admin"}, ANN, False),
        ({"preferred_username": None}, "Ann", True),
        ({"preferred_username": None, "name": None}, "0aa0", True),
        ({"name": "Ann", "preferred_username": "<b>ann</b>"}, "&lt;b&gt;ann&lt;/b&gt;", True),
    ],
)
def test_name_and_role_are_those_of_the_api(pages: Place, claims: dict[str, Any], name: str, is_admin: bool) -> None:
    browser = pages.signed_in(**claims)
    answer = browser.look("/preferences")
    assert name in answer.text
    assert ("who may look" in answer.text) is not is_admin
    sent = browser.send("/change", csrf=browser.token())
    assert sent.status_code == (200 if is_admin else 403)
    assert is_admin or "AP403" in sent.text


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "another tenant": ({"tid": "other"}, "another tenant"),
    "another issuer": ({"iss": "https://login.microsoftonline.com/other/v2.0"}, "another issuer"),
    "another application": ({"aud": "other"}, "another application"),
    "a token for the API": ({"aud": f"api://{APP}", "scp": "access_as_user"}, "another application"),
    "another sign-in": ({"nonce": "other"}, "another sign-in"),
    "no nonce": ({"nonce": None}, "not valid"),
    "expired": ({"exp": -2 * MINUTE}, "expired"),
    "early": ({"nbf": 2 * MINUTE}, "not valid yet"),
    "no tenant": ({"tid": None}, "not valid"),
}


@pytest.mark.parametrize(("claims", "why"), BAD.values(), ids=BAD)
def test_a2_a_bad_id_token_signs_nobody_in(pages: Place, claims: dict[str, Any], why: str) -> None:
    pages.entra.other = claims
    browser = pages.browser()
    answer = browser.go("/preferences")
    assert (answer.status_code, "WB411" in answer.text, why in answer.text) == (403, True, True)
    assert onward_from(browser.look("/preferences")), "nobody is signed in"


@pytest.mark.parametrize(
    "sign",
    [
        lambda claims: jwt.encode(claims, STRANGER, "RS256", headers={"kid": "one"}),
        lambda claims: jwt.encode(claims, "", "none", headers={"kid": "one"}),
        lambda claims: jwt.encode(claims, "k" * 32, "HS256", headers={"kid": "one"}),
        lambda claims: jwt.encode(claims, KEY, "RS256", headers={"kid": "two"}),
        lambda _: "nonsense",
    ],
    ids=["a stranger's key", "unsigned", "HS256", "unknown key", "nonsense"],
)
def test_a2_an_id_token_that_entra_has_not_signed_signs_nobody_in(pages: Place, sign: Any) -> None:
    pages.entra.sign = sign
    assert pages.browser().go("/preferences").status_code == 403


@pytest.mark.parametrize("claims", [{"nbf": MINUTE / 2}, {"exp": -MINUTE / 2}], ids=["ahead", "behind"])
def test_a2_a_clock_that_is_off_by_less_than_a_minute_is_no_reason(pages: Place, claims: dict[str, Any]) -> None:
    pages.signed_in(**claims)


def test_who_did_not_begin_here_is_not_signed_in(pages: Place) -> None:
    """Somebody sends a person an address that would sign that person in as somebody else."""
    sent = came_back(pages.browser())
    victim = pages.browser()
    answer = victim.look(sent)
    assert (answer.status_code, "WB412" in answer.text) == (400, True)
    assert pages.entra.asked("/token") == [], "the code was not even looked at"
    # Not even if the person has begun to sign in.
    victim.look("/signin")
    assert "WB412" in victim.look(sent).text
    assert onward_from(victim.look("/preferences"))


def test_a_code_of_somebody_else_is_worth_nothing(pages: Place) -> None:
    """PKCE: a code that was stolen on its way does not fit the verifier of the thief."""
    thief = pages.browser()
    stolen = parse_qs(urlsplit(came_back(pages.browser())).query)["code"][0]
    own = parse_qs(urlsplit(came_back(thief)).query)["state"][0]
    answer = thief.look(f"{DONE}?{urlencode({'state': own, 'code': stolen})}")
    assert (answer.status_code, "AADSTS501481" in answer.text) == (403, True)


def test_an_answer_is_good_once(pages: Place) -> None:
    browser = pages.browser()
    back = came_back(browser)
    kept = dict(browser.http.cookies)
    assert browser.go(back).status_code in (200, 404)
    # The same address once more, as by the button for the page before.
    assert onward_from(browser.look(back)) == f"{pages.address}/"
    assert len(pages.entra.asked("/token")) == 1
    # With a copy of what the browser kept, it is Entra that refuses the code.
    copy = pages.browser()
    copy.http.cookies.update(kept)
    answer = copy.look(back)
    assert (answer.status_code, "AADSTS54005" in answer.text) == (403, True)


@pytest.mark.parametrize("late", [timedelta(0), timedelta(seconds=1)])
def test_a_sign_in_has_a_quarter_of_an_hour(pages: Place, clock: VirtualClock, late: timedelta) -> None:
    browser = pages.browser()
    back = came_back(browser)
    clock.advance(LASTING - timedelta(seconds=1) + late)
    answer = browser.look(back)
    assert (answer.status_code == 400) is bool(late)
    assert ("WB412" in answer.text) is bool(late)


@pytest.mark.parametrize("change", [lambda _: "", lambda state: state[:-1] + "~", lambda state: state + "x"])
def test_a_state_that_is_not_ours_is_refused(pages: Place, change: Any) -> None:
    browser = pages.browser()
    parts = urlsplit(came_back(browser))
    asked = parse_qs(parts.query)
    given = {"code": asked["code"][0], "state": change(asked["state"][0])}
    assert "WB412" in browser.look(f"{DONE}?{urlencode(given)}").text


def test_tabs_sign_in_beside_each_other(pages: Place) -> None:
    browser = pages.browser()
    backs = [came_back(browser, to=f"/preferences?back=%2F{number}") for number in range(3)]
    for number in (2, 0, 1):
        assert onward_from(browser.look(backs[number])) == f"{pages.address}/preferences?back=%2F{number}"


def test_sign_ins_that_nobody_finishes_are_given_up(pages: Place) -> None:
    browser = pages.browser()
    first = last = came_back(browser)
    for _ in range(12):
        last = came_back(browser)
        assert len([name for name in browser.http.cookies if "entry" in name]) <= 6
    assert "WB412" in browser.look(first).text
    assert onward_from(browser.look(last)) == f"{pages.address}/"


ERRORS = {
    "access_denied": (403, "WB411", "declined"),
    "consent_required": (403, "WB411", "consented"),
    "login_required": (403, "WB411", "sign in there again"),
    "server_error": (503, "WB503", "fault"),
    "temporarily_unavailable": (503, "WB503", "fault"),
    "invalid_request": (403, "WB411", "what this application asks for"),
    "<script>": (403, "WB411", "what this application asks for"),
}


@pytest.mark.parametrize("error", ERRORS)
def test_what_entra_says_instead_of_a_code_is_told_without_its_text(
    pages: Place, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    said = "AADSTS65004: call +1 555 <script>alert(1)</script>"
    pages.entra.sends_back = {"error": error, "error_description": said}
    browser = pages.browser()
    answer = browser.go("/preferences")
    status, code, why = ERRORS[error]
    assert answer.status_code == status
    assert code in answer.text
    assert why in answer.text
    assert "AADSTS65004" in answer.text
    assert "555" not in answer.text
    assert "script" not in answer.text
    assert caplog.text == "", "anybody can write such an address, and fills no log with it"
    # From there the way leads on, to the same page, with another account too.
    pages.entra.sends_back = None
    again = browser.go("/signin?to=%2Fpreferences&account=other")
    assert str(again.url) == f"{pages.address}/preferences"
    assert pages.entra.asked("/authorize")[-1]["prompt"] == "select_account"


def test_an_error_that_somebody_made_up_is_not_told(pages: Place) -> None:
    answer = pages.browser().look(f"{DONE}?error=access_denied&error_description=AADSTS1&state=x")
    assert (answer.status_code, "WB412" in answer.text, "AADSTS" in answer.text) == (400, True, False)


@pytest.mark.parametrize(
    ("instead", "status", "code"),
    [
        (Answer({}, 500), 503, "WB503"),
        (Answer({}, 429), 503, "WB503"),
        (Answer(is_reset=True), 503, "WB503"),
        (Answer(b"<html>Sign in to the proxy</html>"), 503, "WB503"),
        (Answer([]), 503, "WB503"),
        (Answer({"access_token": "x"}), 403, "WB411"),
        (Answer({"id_token": 1}), 403, "WB411"),
        (Answer({"error": "invalid_client", "error_description": "AADSTS700027: no"}, 401), 500, "WB500"),
        (Answer({"error": "interaction_required", "error_description": "AADSTS50076: MFA"}, 400), 403, "WB411"),
    ],
    ids=["500", "429", "reset", "HTML", "a list", "no ID token", "a number", "unknown certificate", "more"],
)
def test_a_code_that_is_not_redeemed_signs_nobody_in(
    pages: Place, instead: Answer, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    pages.entra.instead = instead
    browser = pages.browser()
    for _ in range(2):
        answer = browser.go("/preferences")
        assert (answer.status_code, code in answer.text) == (status, True)
    told = [one.getMessage() for one in caplog.records if one.name.startswith("matoolkit.web")]
    assert len(told) == {"WB503": 1, "WB500": 2, "WB411": 0}[code]
    pages.entra.instead = None
    assert browser.go("/preferences").status_code == 200


def test_only_so_many_wait_for_entra(pages: Place) -> None:
    entrance = pages.way.entrance
    assert isinstance(entrance, Entrance)
    browser = pages.browser()
    back = came_back(browser)
    places = entrance._places  # noqa: SLF001 - eight threads that hang would tell the same, slowly
    for _ in range(8):
        assert places.acquire(blocking=False)
    assert browser.look(back).status_code == 503
    places.release()
    assert browser.go("/preferences").status_code == 200


def test_who_is_signed_in_is_not_sent_to_entra_again(pages: Place) -> None:
    browser = pages.signed_in()
    assert onward_from(browser.look("/signin?to=/batches")) == f"{pages.address}/batches"
    assert len(pages.entra.asked("/authorize")) == 1


def test_signing_out_ends_the_session_here_and_at_entra(pages: Place) -> None:
    browser = pages.signed_in()
    answer = browser.send("/signout", csrf=browser.token())
    last = browser.go(str(onward_from(answer)))
    assert str(last.url) == f"{pages.address}/signed-out"
    assert len(pages.entra.asked("/logout")) == 1
    assert not [name for name in browser.http.cookies if "session" in name]
    assert "/signin" in str(onward_from(browser.look("/batches")))


def test_only_a_form_of_ours_signs_out(pages: Place) -> None:
    browser = pages.signed_in()
    for form in ({}, {"csrf": "made up"}):
        assert browser.send("/signout", **form).status_code == 403
    assert browser.look("/signout").status_code == 405
    assert browser.look("/batches").status_code == 200


def test_without_the_role_one_signs_out_too(pages: Place) -> None:
    browser = pages.signed_in(roles=None)
    assert browser.send("/signout", csrf=browser.token()).status_code == 303


def test_the_addresses_of_entra_are_those_of_the_tenant(pages: Place) -> None:
    pages.signed_in()
    paths = {urlsplit(one.path).path for one in pages.entra.requests}
    assert {path.split("/")[1] for path in paths} == {TENANT}
