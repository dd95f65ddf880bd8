"""Sessions: how long they last, what is in them, what ends them, and which door takes what."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.cookies import Morsel, SimpleCookie
from pathlib import Path

import pytest
from fastapi import APIRouter, Response
from fastapi.routing import APIRoute
from starlette.requests import Request

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.doors.identity import Identity
from matoolkit.doors.services import Services
from matoolkit.errors import SessionOver
from matoolkit.web.entries import Entry, keep_entry, kept_entry
from matoolkit.web.keeping import Keeping
from matoolkit.web.sealing import Seal
from matoolkit.web.sessions import SESSION, Sessions
from tests.databases import NOON
from tests.servers.entra import ANN
from tests.servers.entra_for_pages import claims_of, signed
from tests.web.signing import HOURS, Place, onward_from, place

pytestmark = pytest.mark.on("sqlite")

KEYS = (b"1" * 32, b"2" * 32)
PEOPLE = Identity(ANN, is_admin=True)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(SystemClock().now())


@pytest.fixture
def pages(services: Services, clock: VirtualClock, tmp_path: Path) -> Iterator[Place]:
    with place(services, clock, tmp_path) as served:
        yield served


def cookies_of(response: Response) -> dict[str, Morsel[str]]:
    """Return the cookies that an answer sets."""
    set_there: SimpleCookie = SimpleCookie()
    for value in response.headers.getlist("set-cookie"):
        set_there.load(value)
    return dict(set_there)


def showing(cookies: dict[str, str]) -> Request:
    """Return a request that shows cookies."""
    told = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return Request({"type": "http", "headers": [(b"cookie", told.encode())]})


def sessions(clock: VirtualClock, *keys: bytes, is_https: bool = True) -> Sessions:
    return Sessions(Keeping(Seal(keys or KEYS[:1], clock), is_https), clock, HOURS)


def begun(known: Sessions, identity: Identity = PEOPLE) -> dict[str, str]:
    response = Response()
    known.begin(response, identity)
    return {name: one.value for name, one in cookies_of(response).items()}


def test_a_session_is_of_this_host_over_tls_and_no_script_reads_it() -> None:
    response = Response()
    sessions(VirtualClock(NOON)).begin(response, PEOPLE)
    ((name, cookie),) = cookies_of(response).items()
    assert name == f"__Host-{SESSION}"
    # What the prefix asks for: or the browser keeps nothing.
    assert (cookie["secure"], cookie["httponly"], cookie["path"], cookie["domain"]) == (True, True, "/", "")
    assert cookie["samesite"] == "lax"
    assert (cookie["max-age"], cookie["expires"]) == ("", ""), "it goes when the browser is closed"
    ending = Response()
    sessions(VirtualClock(NOON)).end(ending)
    gone = cookies_of(ending)[name]
    assert (gone["secure"], gone["path"], gone["max-age"]) == (True, "/", "0")


def test_a_session_fits_into_a_cookie_however_long_a_name_is() -> None:
    for name in ("x" * 10_000, "\U0001f600" * 10_000, '"' * 10_000):
        kept = begun(sessions(VirtualClock(NOON)), Identity(name, is_admin=True))
        assert len(str(kept)) < 4096


def test_g11_a_session_fits_into_a_cookie_however_many_roles_there_are_and_keeps_ours() -> None:
    many = {f"{number}-{'é' * 100}" for number in range(200)} | {"Approver", "Operator", "ChangeBoard"}
    for name in ("ann", "\U0001f600" * 10_000):
        known = sessions(VirtualClock(NOON))
        kept = begun(known, Identity(name, is_admin=False, roles=frozenset(many)))
        assert len(str(kept)) < 4096
        assert known.identity(showing(kept)).roles > {"Approver", "Operator", "ChangeBoard"}


def test_an_entry_fits_into_a_cookie_however_long_the_address_is() -> None:
    keeping = Keeping(Seal(KEYS, VirtualClock(NOON)), is_https=True)
    entry, response = Entry.begun("/" + "x" * 999), Response()
    keep_entry(keeping, showing({}), response, entry)
    kept = {name: one.value for name, one in cookies_of(response).items()}
    assert len(str(kept)) < 4096
    assert kept_entry(keeping, showing(kept), entry.state) == entry


def test_a_session_ends_at_a_fixed_time_whatever_is_done_with_it() -> None:
    clock = VirtualClock(NOON)
    known = sessions(clock)
    request = showing(begun(known))
    for _ in range(8):
        assert known.identity(request) == PEOPLE
        assert known.session(request).ends_at == NOON + HOURS
        clock.advance(timedelta(minutes=59))
    assert known.seconds_left(request) == 8 * 60
    clock.advance(timedelta(minutes=8))
    with pytest.raises(SessionOver, match="your session has ended"):
        known.identity(request)


def test_nobody_makes_up_a_session() -> None:
    clock = VirtualClock(NOON)
    known = sessions(clock)
    ((name, value),) = begun(known, Identity("Bob", is_admin=False)).items()
    body, _, mark = value.partition(".")
    other = begun(known)[name].partition(".")
    stranger = begun(sessions(clock, b"3" * 32))[name]
    seal = Seal(KEYS[:1], clock)
    content = {"name": ANN, "admin": True, "until": 9e9}
    for made_up in (
        f"{other[0]}.{mark}",
        f"{body}.",
        body,
        "",
        ".",
        "x.y.z",
        stranger,
        seal.sealed("matoolkit-done", content, HOURS),
        seal.mark(SESSION, body),
    ):
        with pytest.raises(SessionOver):
            known.identity(showing({name: made_up}))
    with pytest.raises(SessionOver, match="nobody is signed in"):
        known.identity(showing({SESSION: value}))  # another name: it may have come from elsewhere


def test_processes_with_the_same_key_know_each_others_people_while_it_is_replaced() -> None:
    clock = VirtualClock(NOON)
    old, new = KEYS
    before, during, after, later = (
        sessions(clock, old),
        sessions(clock, old, new),
        sessions(clock, new, old),
        sessions(clock, new),
    )
    of_before, of_after = showing(begun(before)), showing(begun(after))
    assert during.identity(of_before) == after.identity(of_before) == PEOPLE
    assert during.identity(of_after) == later.identity(of_after) == PEOPLE
    with pytest.raises(SessionOver):
        later.identity(of_before)


def test_two_processes_share_a_sign_in(pages: Place, services: Services, clock: VirtualClock, tmp_path: Path) -> None:
    """One begins it, the other ends it: neither remembers anything."""
    browser = pages.browser()
    back = browser.stop_before("/signin/done", "/preferences")
    (tmp_path / "other").mkdir()
    with place(services, clock, tmp_path / "other") as other:
        other.entra.codes = pages.entra.codes
        other.entra.home = pages.address
        cookies = dict(browser.http.cookies)
        there = other.browser()
        there.http.cookies.update(cookies)
        # Its Entra is another server, so it refuses; but the entry is known.
        assert "WB412" not in there.look(back.replace(pages.address, other.address)).text
        signed_in = pages.signed_in()
        there.http.cookies.update(dict(signed_in.http.cookies))
        assert ANN in there.look("/preferences").text


def test_a_page_that_was_open_when_the_session_ended_leads_to_signing_in_and_back(
    pages: Place, clock: VirtualClock
) -> None:
    browser = pages.signed_in()
    clock.advance(HOURS)
    answer = browser.look("/batches?status=a%2Fb&runbook=x%20y")
    assert answer.status_code == 303
    again = browser.go("/batches?status=a%2Fb&runbook=x%20y")
    assert str(again.url).startswith(f"{pages.address}/batches?status=a%2Fb&runbook=x%20y")
    assert ANN in again.text


def test_a_name_with_a_quoted_mark_survives_signing_in(pages: Place) -> None:
    answer = pages.browser().go("/batches/a%3Fb%2Fc?x=1")
    assert answer.url.raw_path == b"/batches/a%3Fb%2Fc?x=1"


def test_a_form_that_was_open_when_the_session_ended_is_refused_and_can_be_sent_again(
    pages: Place, clock: VirtualClock
) -> None:
    browser = pages.signed_in()
    mark = browser.token()
    clock.advance(HOURS)
    answer = browser.send("/change", csrf=mark)
    assert answer.status_code == 401
    assert "WB401" in answer.text
    assert "your session has ended; nothing was changed" in answer.text
    assert 'href="/signin" target="_blank"' in answer.text
    assert answer.text.startswith("<!doctype html>")
    # On a second page the person signs in; then the first one sends the same form again.
    browser.go("/signin")
    assert browser.send("/change", csrf=mark).text == f"changed by {ANN}"


def test_another_person_cannot_send_the_form_of_the_first(pages: Place, clock: VirtualClock) -> None:
    browser = pages.signed_in()
    mark = browser.token()
    clock.advance(HOURS)
    pages.entra.other = {"preferred_username": "eve@contoso.example"}
    browser.go("/signin")
    answer = browser.send("/change", csrf=mark)
    assert (answer.status_code, "WB403" in answer.text) == (403, True)


def test_a_part_of_a_page_says_that_the_session_has_ended(pages: Place, clock: VirtualClock) -> None:
    browser = pages.signed_in()
    clock.advance(HOURS)
    for path in ("/batches", "/live/batch/1?part=places"):
        answer = browser.look(path, **{"HX-Request": "true"})
        assert answer.status_code == 401
        assert "your session has ended" in answer.text
        assert "<html" not in answer.text


def test_the_other_tabs_of_who_signed_out_say_so(pages: Place) -> None:
    browser = pages.signed_in()
    mark = browser.token()
    browser.send("/signout", csrf=mark)
    part = browser.look("/batches", **{"HX-Request": "true"})
    assert (part.status_code, "nobody is signed in in this browser" in part.text) == (401, True)
    assert browser.send("/change", csrf=mark).status_code == 401
    assert browser.send("/signout", csrf=mark).status_code == 401


def test_a_stream_ends_with_the_session(pages: Place, clock: VirtualClock) -> None:
    """A stream is asked only when it begins, so it must not outlive who asked."""
    entrance = pages.way.entrance
    assert entrance
    browser = pages.signed_in()
    request = showing(dict(browser.http.cookies))
    clock.advance(HOURS - timedelta(seconds=30))
    assert 29 <= entrance.sessions.seconds_left(request) <= 30


def test_the_mark_of_a_form_is_of_one_browser_and_one_person(pages: Place) -> None:
    first, second = pages.signed_in(), pages.signed_in()
    assert second.send("/change", csrf=first.token()).status_code == 403
    assert second.send("/change", csrf=second.token()).status_code == 200


def test_pages_take_no_token_of_the_api(pages: Place) -> None:
    issuer = f"{pages.entra.address}/{claims_of()['tid']}/v2.0"
    token = signed({**claims_of(iss=issuer), "scp": "access_as_user"})
    headers = {"Authorization": f"Bearer {token}"}
    browser = pages.browser()
    assert browser.look("/api/runbooks", **headers).status_code == 200
    assert browser.look("/batches", **headers).status_code == 303
    assert browser.http.post(f"{pages.address}/change", headers=headers).status_code == 401


def test_the_api_takes_no_session_of_the_pages(pages: Place) -> None:
    """Or any page of another site could have the browser send it changes."""
    browser = pages.signed_in()
    mark = browser.token()
    assert browser.look("/api/runbooks").status_code == 401
    answer = browser.send("/api/runbooks", csrf=mark)
    assert (answer.status_code, answer.json()["code"]) == (401, "AP401")


def test_who_listens_without_tls_is_shown_no_prefix_and_nothing_else_changes() -> None:
    known = sessions(VirtualClock(NOON), is_https=False)
    response = Response()
    known.begin(response, PEOPLE)
    ((name, cookie),) = cookies_of(response).items()
    assert (name, cookie["secure"], cookie["httponly"]) == (SESSION, "", True)
    assert known.identity(showing({name: cookie.value})) == replace(PEOPLE)


def test_the_first_sign_in_is_not_needed_for_what_is_public(pages: Place) -> None:
    browser = pages.browser()
    page = browser.go("/signed-out")
    assert page.status_code == 200
    assert onward_from(page) is None
    assert browser.look("/healthz").status_code == 200


PUBLIC = {"/signin", "/signin/done", "/signout/everywhere", "/signed-out", "/static/{hashed}/{name}"}


def addresses_of(pages: Place) -> Iterator[tuple[str, str]]:
    """Return method and address of every page; what is asked for need not be there."""
    for route in routes_of(pages.site.router):
        if route.path not in PUBLIC:
            yield from ((method, re.sub(r"\{[^}]+\}", "1", route.path)) for method in route.methods or ())


def routes_of(router: APIRouter) -> Iterator[APIRoute]:
    for route in router.routes:
        if isinstance(route, APIRoute):
            yield route
        else:
            yield from routes_of(route.original_router)  # type: ignore[attr-defined]


def test_nobody_sees_or_sends_anything_without_signing_in(pages: Place) -> None:
    browser = pages.browser()
    asked = list(addresses_of(pages))
    assert len(asked) > 20
    for method, path in asked:
        answer = browser.http.request(method, f"{pages.address}{path}")
        if method == "GET":
            assert (answer.status_code, answer.headers["location"][:11]) == (303, "/signin?to="), path
        else:
            assert (answer.status_code, "WB401" in answer.text) == (401, True), path


def test_nothing_is_changed_without_the_mark_of_a_form(pages: Place) -> None:
    """Not even by a form of another site, which cannot read the mark that belongs to this person and browser."""
    browser, other = pages.signed_in(), pages.signed_in()
    mark = other.token()
    changes = [path for method, path in addresses_of(pages) if method != "GET"]
    assert len(changes) > 5
    for path in changes:
        for form in ({}, {"csrf": ""}, {"csrf": mark}):
            answer = browser.send(path, **form)
            assert (answer.status_code, "WB403" in answer.text) == (403, True), (path, answer.text[-400:])


def test_without_the_role_nothing_is_changed(pages: Place) -> None:
    browser = pages.signed_in(roles=["Reader"])
    mark = browser.token()
    for method, path in addresses_of(pages):
        if method != "GET" and path not in ("/signout", "/preferences"):
            answer = browser.send(path, csrf=mark)
            assert (answer.status_code, "AP403" in answer.text) == (403, True), path
