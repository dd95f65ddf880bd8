"""What the pages cost as batches grow, and what those who watch a wave cost the wave.

    python -m bench.pages              SQLite in a temporary folder, and PostgreSQL (see --postgres)
    python -m bench.pages --record     the same, and write the results to bench/RESULTS.md

The pages are served by a process of their own, which looks at the database for every request: what viewers share for a
second is not shared here. Each page is asked for by eight clients at once, first beside a batch of 10 members alone,
then of and beside one of 100,000; what is compared is the 95th percentile. Then a wave runs with and without the
streams of 200 browsers on its page, in turns, and what is compared is how long it takes.
"""

import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx
from sqlalchemy import text

from bench.api import filled
from bench.measuring import CLOCK, Ratio, ratio_of, run, seconds
from bench.wave import Embedded, Wave
from matoolkit.api.app import create_app
from matoolkit.bus.sql import SqlBus
from matoolkit.doors.identity import LocalOnly
from matoolkit.doors.services import Services
from matoolkit.hosting.addresses import Addresses
from matoolkit.hosting.serving import ApiServer
from matoolkit.hosting.sockets import listening, port_of
from matoolkit.store import Store, open_store
from matoolkit.store.enrolments import members_page
from matoolkit.system import read_message, source_opener
from matoolkit.web.sealing import Seal
from matoolkit.web.serving import Site
from matoolkit.web.site import create_site

SMALL, LARGE = 10, 100_000
CLIENTS, ASKED, ROUNDS = 8, 6, 3
ALLOWED = 1.5
LARGEST_PAGE = 60_000
WATCHERS, WAVE, STEPS = 200, 4_000, 5
MOST_COST = 1.1
# Pages about everything, and pages about one batch.
OF_ALL = {
    "now": "/",
    "batches": "/batches",
    "runbooks": "/runbooks",
    "holds": "/holds",
    "workers": "/workers",
    "audit": "/audit",
}
OF_A_BATCH = {
    "batch": "/batches/{batch}",
    "members": "/batches/{batch}/members",
    "failed members": "/batches/{batch}/members?state=failed",
    "member": "/batches/{batch}/members/{member}",
    "runbook": "/runbooks/{name}",
}


def serve(url: str, fresh_seconds: str) -> None:
    """Serve the pages on a free port, which is printed, until killed."""
    store = open_store(url)
    services = Services(store, SqlBus(store), read_message, source_opener({}), CLOCK, LocalOnly())
    site = Site(services, services.sign_in, Seal.of_this_process(CLOCK), fresh_seconds=float(fresh_seconds))
    doors = Addresses(create_app(services), create_site(site))
    with listening("127.0.0.1", 0) as place:
        print(port_of(place), flush=True)
        ApiServer(doors, before_end=doors.close).run([place])


@contextmanager
def served(store: Store, fresh_seconds: float) -> Iterator[str]:
    url = store.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "bench.pages", "--serve", url, str(fresh_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def asked(client: httpx.Client, path: str) -> tuple[float, int]:
    """Return the 95th percentile of the time of a page, and its size."""
    size = 0

    def ask(_: int) -> list[float]:
        nonlocal size
        taken = []
        for _ in range(ASKED):
            began = CLOCK.monotonic()
            answer = client.get(path)
            taken.append(CLOCK.monotonic() - began)
            assert answer.status_code == 200, (path, answer.status_code)
            size = len(answer.content)
        return taken

    with ThreadPoolExecutor(CLIENTS) as clients:
        times = sorted(one for several in clients.map(ask, range(CLIENTS)) for one in several)
    return times[int(len(times) * 0.95)], size


def growth(store: Store) -> list[Ratio]:
    small = place_of(store, SMALL)
    with served(store, 0) as address, httpx.Client(base_url=address, timeout=120) as client:
        least = {name: [asked(client, path)[0] for _ in range(ROUNDS)] for name, path in OF_ALL.items()}
        large = place_of(store, LARGE)
        with store.transaction() as tx:
            tx.execute(text("ANALYZE"))
        found, sizes = [], {}
        for name, path in OF_ALL.items():
            several = [asked(client, path) for _ in range(ROUNDS)]
            sizes[name] = several[0][1]
            found.append(_growth(name, least[name], [one[0] for one in several]))
        for name, path in OF_A_BATCH.items():
            few, many = [], []
            for _ in range(ROUNDS):
                few.append(asked(client, path.format(**small))[0])
                time, sizes[name] = asked(client, path.format(**large))
                many.append(time)
            found.append(_growth(name, few, many))
    widest = max(sizes, key=lambda name: sizes[name])
    what = f"HTML of the largest page ({widest}) ÷ {LARGEST_PAGE:,} bytes"
    return [*found, Ratio(what, LARGEST_PAGE, sizes[widest], "at most 1x", sizes[widest] <= LARGEST_PAGE)]


def place_of(store: Store, members: int) -> dict[str, object]:
    place = filled(store, members)
    with store.reading() as tx:
        (member,) = members_page(tx, int(str(place["batch"])), limit=1)
    return {**place, "member": member.id}


def _growth(name: str, few: list[float], many: list[float]) -> Ratio:
    return ratio_of(f"page {name}, {LARGE:,} members ÷ {SMALL}, p95", few, many, ALLOWED, f"at most {ALLOWED:g}x")


def watching(store: Store) -> Ratio:
    """Run waves with nobody and with many on their page, in turns."""
    alone, watched = [], []
    with served(store, 1) as address:
        for _ in range(ROUNDS):
            alone.append(_run(store))
            watched.append(_run(store, address))
    what = f"a wave of {WAVE:,} members, {STEPS} steps with {WATCHERS} watchers ÷ with none"
    return ratio_of(what, alone, watched, MOST_COST, f"at most {MOST_COST:g}x")


def _run(store: Store, watched_at: str | None = None) -> float:
    wave, system = Wave(store, WAVE, STEPS), Embedded(store)
    wave.begin(system.bus)
    if watched_at is None:
        taken = seconds(system.run)
    else:
        with watchers(watched_at, f"/live/batch/{wave.batch_id}"):
            taken = seconds(system.run)
    assert wave.is_completed()
    return taken


@contextmanager
def watchers(address: str, path: str) -> Iterator[None]:
    """Keep streams open in a process of their own: they are browsers, which do not work in ours."""
    command = [sys.executable, "-m", "bench.pages", "--watch", address, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().strip() == "watching"
        try:
            yield
        finally:
            process.kill()


def watch(address: str, path: str) -> None:
    """Read streams until killed, as cheaply as can be: browsers have machines of their own."""
    place = urlsplit(address)
    chosen = selectors.DefaultSelector()
    for _ in range(WATCHERS):
        stream = socket.create_connection((place.hostname or "", place.port or 0))
        stream.sendall(f"GET {path} HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        assert stream.recv(1 << 16).startswith(b"HTTP/1.1 200")
        chosen.register(stream, selectors.EVENT_READ, stream)
    print("watching", flush=True)
    while True:
        for key, _ in chosen.select():
            key.data.recv(1 << 20)


def measure(store: Store) -> list[Ratio]:
    return [*growth(store), watching(store)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:4])
    elif sys.argv[1:2] == ["--watch"]:
        watch(*sys.argv[2:4])
    else:
        sys.exit(run("The pages", measure, __doc__))
