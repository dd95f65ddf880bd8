"""W(N,S) by our own system, or by the bare loop, a few times; prints what it cost together as a line of JSON.

    python -m bench.ours --url URL --as embedded      orchestrator and worker take turns in one thread
    python -m bench.ours --url URL --as threads       the same parts as `matoolkit up` runs, in threads of one process
    python -m bench.ours --url URL --as processes --orchestrators 2     each in a process of its own, and a worker
    python -m bench.ours --url URL --as bare          tables like ours, moved by the bare driver in piles of 500
    python -m bench.ours --url URL --as plain         the same on SQLite, without our settings

It begins when a phase is due and ends when the batch is completed. Making members is not measured.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from sqlalchemy import event

from bench.bare import BareLoop, loop_in, plain_loop
from bench.peers.meter import Meter, report, wait_for
from bench.wave import Embedded, Wave, in_threads, pretender
from matoolkit.bus.sql import SqlBus
from matoolkit.hosting.orchestrator import run_orchestrator
from matoolkit.hosting.process import run_parts, stopped_by_signals
from matoolkit.settings import Settings
from matoolkit.store import Store, open_store
from matoolkit.store.upgrade import upgrade

TIMES = 5
_WARM_MEMBERS = 20


def opened(url: str, synchronous: str | None) -> Store:
    """Open a store; on SQLite commits may be left to the operating system, which ours never are."""
    store = open_store(url)
    if synchronous:

        @event.listens_for(store.engine, "connect")
        def _lighten(connection: object, _record: object) -> None:
            connection.execute(f"PRAGMA synchronous = {synchronous}")  # type: ignore[attr-defined]

    return store


def embedded(store: Store, options: argparse.Namespace) -> None:
    system = Embedded(store)
    Wave(store, _WARM_MEMBERS, options.steps).begin(system.bus)
    system.run()

    def run() -> Meter:
        wave = Wave(store, options.members, options.steps)
        with Meter(options.server_pid) as meter:
            wave.begin(system.bus)
            system.run()
        assert wave.is_completed()
        return meter

    _several(run, options)


def measured_from_outside(store: Store, bus: SqlBus, options: argparse.Namespace) -> None:
    """Measure a system that runs by itself."""
    warm = Wave(store, _WARM_MEMBERS, options.steps)
    warm.begin(bus)
    wait_for("the warm-up", warm.is_completed)

    def run() -> Meter:
        wave = Wave(store, options.members, options.steps)
        with Meter(options.server_pid) as meter:
            wave.begin(bus)
            wait_for("the batch", wave.is_completed)
        return meter

    _several(run, options)


def threads(store: Store, options: argparse.Namespace) -> None:
    bus = SqlBus(store)
    with in_threads(store, bus):
        measured_from_outside(store, bus, options)


def processes(store: Store, options: argparse.Namespace) -> None:
    bus = SqlBus(store)
    with ExitStack() as stack:
        for role in ["orchestrator"] * options.orchestrators + ["worker"]:
            stack.enter_context(_process(role, options.url))
        measured_from_outside(store, bus, options)


@contextmanager
def _process(role: str, url: str) -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "bench.ours", "--url", url, "--as", role])
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def run_worker(url: str) -> None:
    """Be a worker whose functions only pretend, until a signal comes."""
    with stopped_by_signals() as stop:
        store = open_store(url)
        bus = SqlBus(store)
        bus.start()
        worker = pretender(bus)
        run_parts({"worker": worker.run}, stop)
        worker.close()
        bus.stop()
        store.close()


def bare(store: Store, options: argparse.Namespace) -> None:
    with loop_in(store, options.members, options.steps) as loop:
        _measure_loop(loop, options)


def plain(options: argparse.Namespace) -> None:
    with plain_loop(options.url, options.synchronous or "FULL", options.members, options.steps) as loop:
        _measure_loop(loop, options)


def _measure_loop(loop: BareLoop, options: argparse.Namespace) -> None:
    def run() -> Meter:
        loop.prepare()
        with Meter(options.server_pid) as meter:
            done = loop.run()
        assert done == options.members * options.steps
        return meter

    _several(run, options)


def _several(run: Callable[[], Meter], options: argparse.Namespace) -> None:
    """Do the work several times: once is over so soon that a neighbour's moment decides."""
    report([run() for _ in range(options.times)], options.times * options.members * options.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = {"embedded": embedded, "threads": threads, "processes": processes, "bare": bare}
    parser.add_argument("--as", dest="way", choices=[*ways, "plain", "orchestrator", "worker"], default="embedded")
    parser.add_argument("--url", required=True, help="an empty database")
    parser.add_argument("--server-pid", type=int, help="the server's process, whose CPU time counts")
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--times", type=int, default=TIMES, help="how often, one after the other")
    parser.add_argument("--orchestrators", type=int, default=1)
    parser.add_argument("--synchronous", choices=["NORMAL"], help="SQLite: leave commits to the operating system")
    options = parser.parse_args()
    if options.way == "orchestrator":
        with stopped_by_signals() as stop:
            run_orchestrator(Settings.model_validate({"database_url": options.url}), stop)
    elif options.way == "worker":
        run_worker(options.url)
    elif options.way == "plain":
        plain(options)
    else:
        store = opened(options.url, options.synchronous)
        upgrade(store)
        ways[options.way](store, options)
        store.close()


if __name__ == "__main__":
    main()
