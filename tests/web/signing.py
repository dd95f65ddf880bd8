"""Pages that people sign in to, beside an Entra that plays along, and browsers that look at them."""

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from fastapi import FastAPI
from httpx import Client, Response
from starlette.responses import PlainTextResponse

from matoolkit.api.app import create_app
from matoolkit.clock import Clock
from matoolkit.clouds import PUBLIC
from matoolkit.doors.entra import Entra
from matoolkit.doors.services import Services
from matoolkit.hosting.addresses import Addresses
from matoolkit.hosting.api import site_of
from matoolkit.hosting.entrance import WayToPages, way_to_pages
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.settings import Settings, load_settings
from matoolkit.web.serving import Site
from matoolkit.web.site import create_site
from matoolkit.web.visiting import Changing
from tests.servers.api import serving_app
from tests.servers.certificates import make_certificate
from tests.servers.entra_for_pages import APP, TENANT, EntraForPages
from tests.servers.http import served

KEY = "a" * 43
HOURS = timedelta(hours=8)
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')
_REFRESH = re.compile(r'http-equiv="refresh" content="0; url=([^"]+)"')


@dataclass
class Browser:
    """A browser that keeps cookies and goes where pages send it, as far as it is asked to."""

    home: str
    http: Client
    answers: list[Response] = field(default_factory=list)

    def look(self, address: str, **headers: str) -> Response:
        """Load one address, and nothing more."""
        answer = self.http.get(urljoin(self.home, address), headers=headers)
        self.answers.append(answer)
        return answer

    def go(self, address: str) -> Response:
        """Load an address, and follow where it leads."""
        answer = self.look(address)
        for _ in range(10):
            onward = onward_from(answer)
            if onward is None:
                return answer
            answer = self.look(onward)
        raise AssertionError("it leads in circles")

    def stop_before(self, end: str, address: str) -> str:
        """Follow where an address leads, until it leads to one that has this in it; return that."""
        answer = self.look(address)
        for _ in range(10):
            onward = onward_from(answer)
            assert onward, "it does not lead there"
            if end in onward:
                return onward
            answer = self.look(onward)
        raise AssertionError("it leads in circles")

    def send(self, path: str, **form: str) -> Response:
        answer = self.http.post(urljoin(self.home, path), data=form)
        self.answers.append(answer)
        return answer

    def token(self) -> str:
        """Return the mark of a form that this browser was sent."""
        (mark, *_) = _CSRF.findall(self.look("/preferences").text)
        return str(mark)


def onward_from(answer: Response) -> str | None:
    """Return where an answer sends a browser."""
    if answer.is_redirect:
        return urljoin(str(answer.url), answer.headers["location"])
    found = _REFRESH.search(answer.text)
    return unescape(found[1]) if found else None


@dataclass
class Place:
    """A site, its Entra, and what is kept where."""

    entra: EntraForPages
    address: str
    way: WayToPages
    certificate: Path
    site: FastAPI
    open: ExitStack

    def browser(self) -> Browser:
        return Browser(self.address, self.open.enter_context(Client(timeout=30)))

    def signed_in(self, **claims: Any) -> Browser:
        """Return the browser of a person who has signed in."""
        self.entra.other = claims
        browser = self.browser()
        assert browser.go("/preferences").status_code == 200
        return browser


def settings_of(address: str, **other: str) -> Settings:
    given = {
        "MATOOLKIT_ENTRA_TENANT_ID": TENANT.upper(),
        "MATOOLKIT_ENTRA_CLIENT_ID": APP.upper(),
        "MATOOLKIT_WEB_ADDRESS": address,
        "MATOOLKIT_WEB_KEY": KEY,
    }
    return load_settings(Settings, {**given, **other})


def with_pages(site: Site) -> FastAPI:
    """Return a site with a change that needs the role and changes nothing."""
    app = create_site(site)

    @app.post("/change")
    def change(viewer: Changing) -> PlainTextResponse:
        return PlainTextResponse(f"changed by {viewer.identity.name}")

    return app


@contextmanager
def place(
    services: Services,
    clock: Clock,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    *,
    streams: bool = True,
    **other: str,
) -> Iterator[Place]:
    """Serve an Entra, an API and pages that sign in there with a certificate."""
    both, alone = make_certificate(folder, is_rsa=True)
    entra = EntraForPages(clock, alone)
    with ExitStack() as stack, served(entra) as entra.address, listening("127.0.0.1", 0) as socket:
        door = Entra(TENANT.upper(), APP.upper(), clock, cloud=replace(PUBLIC, authority=entra.address))
        given = {"MATOOLKIT_WEB_CERTIFICATE": str(both), **other}
        settings = settings_of(f"http://127.0.0.1:{port_of(socket)}", **given)
        entra.home = settings.web_address or ""
        way = way_to_pages(settings, door, clock, environ or {})
        known = replace(services, sign_in=door, clock=clock)
        site = with_pages(site_of(known, way, settings, streams=streams))
        doors = Addresses(create_app(known), site)
        with serving_app(doors, socket, doors.close) as address:
            yield Place(entra, address, way, both, site, stack)
