"""The admin API and the pages as a function app. The host lets everybody in, and they ask Entra who it is.

The library returns an answer when it is whole, so nothing can be streamed from here, and live pages ask again.
"""

import asyncio
import os
from collections.abc import Mapping

import azure.functions as func
from starlette.types import ASGIApp, Receive, Scope, Send

from matoolkit.api.problems import answer
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import MatoolkitError
from matoolkit.hosting.api import both_doors, services_of, sign_in_for, site_of
from matoolkit.hosting.entrance import way_to_pages
from matoolkit.hosting.functions.starting import (
    EVERY_HALF_MINUTE,
    Lazily,
    OpenParts,
    begun,
    opened,
    settings_of_app,
    sweep_each,
)

# Not the loopback address: without the settings of Entra nobody may be served.
_EVERYWHERE = "0.0.0.0"  # noqa: S104 - the host listens, not this


class StartedByRequest:
    """An ASGI application that the first request makes; if that fails, it is told why, and the next tries again."""

    def __init__(self, app: Lazily[ASGIApp]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            app = await asyncio.to_thread(self._app)
        except MatoolkitError as error:
            await answer(error)(scope, receive, send)
        else:
            await app(scope, receive, send)


def api_app(
    environ: Mapping[str, str] = os.environ, clock: Clock | None = None, open_parts: OpenParts = opened
) -> func.FunctionApp:
    """Return the functions of the admin API; without the settings of Entra there are none."""
    settings, clock = settings_of_app(environ), clock or SystemClock()
    sign_in = sign_in_for(settings, _EVERYWHERE, clock)
    way = way_to_pages(settings, sign_in, clock, environ)
    parts = Lazily(lambda: begun(settings, "api", environ, open_parts))

    def made() -> ASGIApp:
        has = parts()
        services = services_of(has.store, has.messaging.publisher, environ, clock, sign_in)
        return both_doors(site_of(services, way, settings, streams=False))

    asgi = func.AsgiMiddleware(StartedByRequest(Lazily(made)))  # type: ignore[no-untyped-call]
    app = func.FunctionApp(http_auth_level=func.AuthLevel.ANONYMOUS)

    @app.function_name("api")
    @app.route("/{*route}", methods=list(func.HttpMethod))
    async def api(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
        answered: func.HttpResponse = await asgi.handle_async(req, context)
        return answered

    @app.function_name("sweep")
    @app.timer_trigger("timer", EVERY_HALF_MINUTE, run_on_startup=False, use_monitor=False)
    def sweep(timer: func.TimerRequest) -> None:  # noqa: ARG001 - the host gives it
        outbox = parts().messaging.outbox
        sweep_each([outbox.sweep] if outbox else [])

    return app
