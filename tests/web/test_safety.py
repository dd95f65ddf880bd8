"""No answer leaves without its headers, and no change is made without a form of ours and the role for it (rule A6)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape

import pytest
from fastapi import FastAPI
from starlette.requests import Request

from matoolkit.doors.identity import Identity
from matoolkit.web.safety import HEADERS
from matoolkit.web.serving import Site
from matoolkit.web.site import create_site
from tests.servers.pages import serving_pages
from tests.stage import Stage
from tests.web.conftest import Visitor
from tests.web.everywhere import Everywhere
from tests.web.furnished import furnish

pytestmark = pytest.mark.on("sqlite")

# Everybody may decide how pages look to them, and sign out.
OWN_MATTERS = {"/preferences", "/signout"}
_FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]+)"|<form[^>]*action="([^"]+)"[^>]*method="post"')
_LINK = re.compile(r'(?:href|hx-get)="(/[^"#]*)"')


class OnlyReads:
    """Signs everybody in as somebody without a role."""

    def identity(self, _: Request) -> Identity:
        return Identity("reader@contoso.com", is_admin=False)


@pytest.fixture
def everywhere(stage: Stage) -> Everywhere:
    return Everywhere(stage, furnish(stage))


@pytest.fixture
def app(site: Site) -> FastAPI:
    return create_site(site)


@pytest.fixture
def reader(site: Site) -> Iterator[Visitor]:
    with (
        serving_pages(replace(site, sign_in=OnlyReads())) as address,
        Visitor(base_url=address, timeout=60) as reader,
    ):
        yield reader


def test_every_answer_has_the_headers(visitor: Visitor, everywhere: Everywhere, app: FastAPI) -> None:
    others = ["/nothing", "/batches/x", "/batches/999", "/static/0/x.js", "/live/nothing/1", "/signin", "/signed-out"]
    others.append("/live/holds/all?part=list")
    for path in [*everywhere.pages(app), *others]:
        answer = visitor.get(path)
        assert answer.status_code < 500, path
        missing = {name for name, value in HEADERS.items() if answer.headers.get(name) != value}
        assert not missing, path
        assert "cache-control" in answer.headers, path


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    policy = dict(part.split(" ", 1) for part in HEADERS["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert {policy[kind] for kind in ("script-src", "style-src", "img-src", "connect-src", "form-action")} == {"'self'"}


def test_pages_hold_nothing_that_the_policy_would_stop(visitor: Visitor, everywhere: Everywhere, app: FastAPI) -> None:
    for path in everywhere.pages(app):
        answer = visitor.get(path)
        text = answer.text if "text/html" in answer.headers["content-type"] else ""
        assert not re.search(r"<[a-z][^>]*\s(?:style|on[a-z]+)=", text), path
        assert not re.search(r"<script(?![^>]*\ssrc=)|<style|javascript:|hx-on|hx-vals=.js", text), path
        assert not re.search(r'(?:src|href)="(?:https?:)?//', text), path


def test_a_form_without_our_mark_changes_nothing(
    visitor: Visitor, everywhere: Everywhere, app: FastAPI, statements: Callable[[], list[str]]
) -> None:
    with Visitor(base_url=visitor.base_url, timeout=60) as stranger:
        mark = re.findall(r'name="csrf" value="([^"]+)"', stranger.get("/preferences").text)[0]
    visitor.get("/preferences")
    changes = everywhere.changes(app)
    assert len(changes) > 8
    statements()
    for path in changes:
        for sent in ({}, {"csrf": ""}, {"csrf": mark}, {"csrf": f"{mark}x"}):
            answer = visitor.post(path, data={"reason": "because", **sent})
            assert (answer.status_code, "WB403" in answer.text) == (403, True), path
    assert [one for one in statements() if one.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))] == []


def test_who_may_only_look_changes_nothing(
    reader: Visitor, everywhere: Everywhere, app: FastAPI, statements: Callable[[], list[str]]
) -> None:
    statements()
    for path in set(everywhere.changes(app)) - OWN_MATTERS:
        answer = reader.send_form(path, reason="because")
        assert (answer.status_code, "AP403" in answer.text) == (403, True), path
    assert [one for one in statements() if one.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))] == []


def test_who_may_only_look_sees_no_buttons_and_no_link_that_is_refused(
    reader: Visitor, everywhere: Everywhere, app: FastAPI
) -> None:
    links: dict[str, str] = {}
    for path in everywhere.pages(app):
        answer = reader.get(path)
        if answer.status_code == 403 or "text/html" not in answer.headers["content-type"]:
            continue
        forms = {one or other for one, other in _FORM.findall(answer.text)}
        assert forms <= OWN_MATTERS, path
        links |= {unescape(link): path for link in _LINK.findall(answer.text) if not link.startswith("/static/")}
    assert len(links) > 20
    refused = {link: path for link, path in links.items() if reader.get(link).status_code == 403}
    assert refused == {}
