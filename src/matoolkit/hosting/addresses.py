"""Two doors at one address: programs get the admin API, people get the pages."""

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

_OF_THE_API = frozenset({"/api", "/healthz", "/readyz", "/metrics", "/openapi.json"})


class Addresses:
    """Sends each request to the door that its address belongs to."""

    def __init__(self, api: ASGIApp, site: FastAPI) -> None:
        self._api = api
        self._site = site

    def close(self) -> None:
        """Let streams end, because the server stops."""
        self._site.state.hub.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_page = scope["type"] == "http" and not is_of_the_api(scope["path"])
        await (self._site if is_page else self._api)(scope, receive, send)


def is_of_the_api(path: str) -> bool:
    """Tell whether an address belongs to the admin API."""
    return any(path == one or path.startswith(f"{one}/") for one in _OF_THE_API)
