"""The pages as an application beside the admin API, on the same services."""

from fastapi import FastAPI

from matoolkit.doors.bodies import BodyLimit
from matoolkit.web import assets
from matoolkit.web.refusals import add_refusals, refusal
from matoolkit.web.safety import Safety
from matoolkit.web.serving import Site
from matoolkit.web.visiting import may_send


def create_site(site: Site) -> FastAPI:
    """Put the pages together."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.site = site
    app.add_middleware(BodyLimit, guard=may_send, answer=refusal)
    # The outermost, so that no answer leaves without the headers.
    app.add_middleware(Safety)
    add_refusals(app)
    app.include_router(assets.router)
    return app
