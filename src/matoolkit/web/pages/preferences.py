"""How pages look to one person: the zone of the times, and the colours."""

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from matoolkit.errors import Flaw, InvalidRequest
from matoolkit.web.rendering import Frame, elsewhere, page
from matoolkit.web.returning import place_here
from matoolkit.web.serving import Serving
from matoolkit.web.visiting import THEME, THEMES, ZONE, Looking, Sending, Theme, known_zones, remember

router = APIRouter()


@router.get("/preferences")
def get_preferences(request: Request, viewer: Looking, back: str = "/") -> Response:
    """Show what can be chosen."""
    zones = sorted(zone for zone in known_zones() if "/" in zone or zone == "UTC")
    frame = Frame("Zone and colours", "")
    return page(request, viewer, "preferences.html", frame, zones=zones, themes=THEMES, back=place_here(back))


@router.post("/preferences")
def set_preferences(
    request: Request,
    serving: Serving,
    _: Sending,
    zone: Annotated[str, Form()],
    theme: Annotated[Theme, Form()],
    back: Annotated[str, Form()] = "/",
) -> Response:
    """Keep what was chosen in the browser, and go back."""
    if zone not in known_zones():
        raise InvalidRequest([Flaw("/body/zone", "is not a zone, such as Europe/Madrid")])
    answer = elsewhere(request, place_here(back))
    remember(answer, serving, ZONE, zone)
    remember(answer, serving, THEME, theme)
    return answer
