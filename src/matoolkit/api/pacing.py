"""Every answer of a system whose calendar runs faster than the clock says so (rule U5)."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from matoolkit.clock import FastClock

SPEED_HEADER = "Matoolkit-Speed"
NOW_HEADER = "Matoolkit-Now"


class PaceHeaders:
    """Adds how fast time runs, and what time it is there, to the headers of every answer."""

    def __init__(self, app: ASGIApp, clock: FastClock) -> None:
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back with two more headers."""

        async def send_with_pace(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers[SPEED_HEADER] = str(self._clock.pace.speed)
                headers[NOW_HEADER] = self._clock.now().isoformat().replace("+00:00", "Z")
            await send(message)

        await self._app(scope, receive, send_with_pace)
