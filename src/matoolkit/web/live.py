"""Parts of pages, sent again as they change: one look at the database for all who watch the same thing."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from matoolkit.clock import SystemClock
from matoolkit.errors import MatoolkitError, UnknownRoute
from matoolkit.web.rendering import fragment, rendered
from matoolkit.web.serving import Site, site_of
from matoolkit.web.topics import Topic, TopicOf
from matoolkit.web.visiting import Looking, Viewer

router = APIRouter()
log = logging.getLogger(__name__)

# A browser hears at least this often that what it shows is still true.
_BEAT_SECONDS = 5.0
_NO_DATA = "data:\n"
_BEAT = b"event: beat\ndata: .\n\n"
# Whether somebody is signed in is asked when a stream begins. So none lasts for long, and the browser begins another.
_STREAM_SECONDS = 15 * 60.0
# Parts of the frame around every page.
_FRAME_PARTS: Mapping[str, str] = MappingProxyType({"places": "places.html"})


@dataclass(slots=True, eq=False)
class _Watch:
    """A topic as one kind of viewer sees it; it looks for as long as somebody watches."""

    site: Site
    topic: Topic
    viewer: Viewer
    watchers: int = 0
    shown: Mapping[str, bytes] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    _turn: asyncio.Event = field(default_factory=asyncio.Event)

    async def look_on(self) -> None:
        """Look again and again, and let the watchers know.

        After a look that failed they hear nothing, so their pages say that they are old; the next one may succeed.
        """
        is_broken = False
        while self.watchers:
            try:
                self.shown = await run_in_threadpool(self._parts)
            except MatoolkitError:
                # The store tells of its outages.
                pass
            except Exception:
                if not is_broken:
                    log.exception("looking at %s for those who watch it failed", self.topic.name)
                is_broken = True
            else:
                is_broken = False
                turn, self._turn = self._turn, asyncio.Event()
                turn.set()
            await asyncio.sleep(self.site.fresh_seconds)

    async def next_turn(self) -> bool:
        """Wait for the next look, but not for long, and say whether it came."""
        try:
            async with asyncio.timeout(_BEAT_SECONDS):
                await self._turn.wait()
        except TimeoutError:
            return False
        return True

    def _parts(self) -> dict[str, bytes]:
        viewer = self.viewer.like_others(self.site.services.clock.now())
        seen = {"open": self.site.looks.open_matters(), **self.topic.look()}
        templates = {**_FRAME_PARTS, **self.topic.parts}
        parts = {name: rendered(viewer, part, viewer=viewer, **seen) for name, part in templates.items()}
        signals = {name: signal() for name, signal in self.topic.signals.items()}
        return {name: _event(name, text) for name, text in (parts | signals).items()}


class Hub:
    """All that is being watched in this process."""

    def __init__(self, site: Site, topics: Mapping[str, TopicOf]) -> None:
        self._site = site
        self._topics = topics
        self._watches: dict[tuple[str, str, bool], _Watch] = {}
        self._is_closed = False

    def topic(self, kind: str, key: str) -> Topic:
        """Find what is to be watched."""
        found = self._topics.get(kind)
        if found is None:
            raise UnknownRoute(f"/live/{kind}/{key}")
        return found(self._site, key)

    def part(self, topic: Topic, name: str, viewer: Viewer) -> Response:
        """Return one part as it is now, for pages that cannot be sent anything."""
        templates = {**_FRAME_PARTS, **topic.parts}
        if name not in templates:
            raise UnknownRoute(f"/live/{topic.name}?part={name}")
        return fragment(viewer, templates[name], open=self._site.looks.open_matters(), **topic.look())

    def close(self) -> None:
        """Let all streams end, because the server stops."""
        self._is_closed = True

    async def events(self, topic: Topic, viewer: Viewer, seconds: float = _STREAM_SECONDS) -> AsyncIterator[bytes]:
        """Yield what reads differently from what was yielded before, and a beat when a look was taken."""
        clock = SystemClock()
        ends, beaten = clock.monotonic() + seconds, float("-inf")
        sent: Mapping[str, bytes] = {}
        watch = self._joined(topic, viewer)
        try:
            while not self._is_closed and (now := clock.monotonic()) < ends:
                if not await watch.next_turn():
                    continue
                new = [event for name, event in watch.shown.items() if sent.get(name) != event]
                sent = watch.shown
                if new or now - beaten >= _BEAT_SECONDS:
                    beaten = now
                    yield b"".join([*new, _BEAT])
        finally:
            watch.watchers -= 1

    def _joined(self, topic: Topic, viewer: Viewer) -> _Watch:
        key = (topic.name, viewer.say.zone.key, viewer.may_change)
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = _Watch(self._site, topic, viewer)
        watch.watchers += 1
        if watch.task is None or watch.task.done():
            watch.task = asyncio.create_task(watch.look_on())
            watch.task.add_done_callback(lambda _: self._forget(key))
        return watch

    def _forget(self, key: tuple[str, str, bool]) -> None:
        watch = self._watches.get(key)
        if watch is not None and not watch.watchers:
            del self._watches[key]


def _event(name: str, html: str) -> bytes:
    lines = "".join(f"data: {line}\n" for line in html.splitlines() if line.strip())
    return f"event: {name}\n{lines or _NO_DATA}\n".encode()


@router.get("/live/{kind}/{key}")
async def watch(request: Request, kind: str, key: str, viewer: Looking, part: str | None = None) -> Response:
    """Send the parts of a topic, and send each again when it has changed; or one part, once."""
    hub: Hub = request.app.state.hub
    # Some topics are looked up in the database, and others must not wait for that.
    topic = await run_in_threadpool(hub.topic, kind, key)
    if part is not None:
        return await run_in_threadpool(hub.part, topic, part, viewer)
    # What is not there is refused before the stream begins.
    await run_in_threadpool(topic.look)
    left = site_of(request).seconds_left(request)
    events = hub.events(topic, viewer, min(left, _STREAM_SECONDS))
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
