"""What a change would do, shown before it is made: below the link that asks for it, or as a page without JavaScript."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from matoolkit.web.rendering import Frame, fragment, is_fragment, page
from matoolkit.web.visiting import Viewer


def preview(
    request: Request, viewer: Viewer, template: str, frame: Frame, /, *, status: int = 200, **context: Any
) -> Response:
    """Write a preview, as a part of the page that asked for it or as a page of its own."""
    if is_fragment(request):
        return fragment(viewer, template, status=status, **context)
    return page(request, viewer, "preview.html", frame, status=status, preview=template, **context)
