"""Templates and the frame around every page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from matoolkit import __version__
from matoolkit.web import assets, saying
from matoolkit.web.naming import named
from matoolkit.web.serving import Site, site_of
from matoolkit.web.topics import Topic
from matoolkit.web.visiting import DONE, VISIT, Viewer, remember

_VISIT_LASTS = timedelta(days=30)
_DONE_LASTS = timedelta(minutes=1)
_LONGEST_TOLD = 300
# How often pages ask where answers cannot be streamed.
_POLL_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Frame:
    """What the frame says of a page: its title, its place among the pages, its command and CSV, and more of its files.

    A page with a topic is live: its parts come again as they change.
    """

    title: str
    place: str
    command: str | None = None
    csv: str | None = None
    topic: Topic | None = None
    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()


def page(
    request: Request, viewer: Viewer, template: str, frame: Frame, /, *, status: int = 200, **context: Any
) -> Response:
    """Write a whole page."""
    site = site_of(request)
    done = site.seal.opened(DONE, request.cookies.get(DONE, ""))
    around = {
        "frame": frame,
        "viewer": viewer,
        "site": site,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "live": partial(_live, site, frame.topic),
        "open": site.looks.open_matters(),
        "done": done and done["text"],
        "version": __version__,
    }
    response = HTMLResponse(rendered(viewer, template, **around, **context), status)
    if viewer.is_new:
        remember(response, site, VISIT, viewer.visit, _VISIT_LASTS)
    if DONE in request.cookies:
        response.delete_cookie(DONE)
    return response


def _live(site: Site, topic: Topic | None, part: str) -> Markup:
    """Write the attributes of an element that holds a part which changes by itself."""
    if topic is None:
        return Markup("")
    if site.streams:
        return Markup('sse-swap="{}"').format(part)
    return Markup('hx-get="/live/{}?part={}" hx-trigger="every {}s"').format(topic.name, part, _POLL_SECONDS)


def fragment(viewer: Viewer, template: str, /, *, status: int = 200, **context: Any) -> Response:
    """Write a part of a page."""
    return HTMLResponse(rendered(viewer, template, viewer=viewer, **context), status)


def rendered(viewer: Viewer, template: str, /, **context: Any) -> str:
    """Write a template for a viewer."""
    return _environment().get_template(template).render(say=viewer.say, **context)


def bare(template: str, /, **context: Any) -> str:
    """Write a template for somebody we know nothing about."""
    return _environment().get_template(template).render(**context)


def is_fragment(request: Request) -> bool:
    """Tell whether a part of a page was asked for, not a whole one."""
    return "hx-request" in request.headers


def elsewhere(request: Request, address: str, done: str | None = None) -> Response:
    """Send the browser to another page, which says what was done."""
    site = site_of(request)
    response = Response(headers={"HX-Redirect": address}) if is_fragment(request) else RedirectResponse(address, 303)
    if done is not None:
        text = done if len(done) <= _LONGEST_TOLD else f"{done[: _LONGEST_TOLD - 1]}…"
        remember(response, site, DONE, site.seal.sealed(DONE, {"text": text}, _DONE_LASTS), _DONE_LASTS)
    return response


def address(path: str, query: Mapping[str, Any] | None = None) -> str:
    """Return an address with those of its query's values that are there."""
    given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("matoolkit.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {
        "address": address,
        "asset": assets.address_of,
        "glyph_of": saying.glyph_of,
        "named": named,
        "offset_of": saying.offset_of,
        "percent": saying.percent,
        "role_of": saying.role_of,
        "signed": saying.signed,
        "state": saying.state,
    }
    made.filters |= {"n": saying.number, "plain": saying.plain, "plural": saying.plural, "shown": saying.shown}
    return made
