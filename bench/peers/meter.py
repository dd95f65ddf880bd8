"""What a run of W(N,S) costs: its time, and the CPU time and memory of every process that takes part. Linux only.

CPU time is that of this process, of all its children, and of the server it uses; memory that of this process and its
children, each page counted once. What the machine's other processes use meanwhile tells how far to trust a figure.
"""

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.5
# After the last field before which a name may hold anything: state, parent, then eleven others.
_PARENT, _FIRST_TIME, _AFTER_TIMES = 1, 11, 15
_LONGEST_SECONDS = 600


class Meter:
    """Measures what happens while it is entered."""

    def __init__(self, server_pid: int | None = None) -> None:
        self._servers = [server_pid] if server_pid else []
        self._is_over = threading.Event()
        self.peak = 0
        self._sampler = threading.Thread(target=self._sample_until_over, daemon=True)

    def __enter__(self) -> Self:
        self._sampler.start()
        self.cpu = self._cpu_seconds()
        self.machine = _machine_seconds()
        self._start = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds = time.perf_counter() - self._start
        self.machine = _machine_seconds() - self.machine
        self.cpu = self._cpu_seconds() - self.cpu
        self._is_over.set()
        self._sampler.join()
        self._sample()

    def report(self, steps: int) -> None:
        """Print the costs as a line of JSON."""
        report([self], steps)

    def _cpu_seconds(self) -> float:
        return sum(map(_cpu_ticks, _family([os.getpid(), *self._servers]))) / _TICKS

    def _sample_until_over(self) -> None:
        while not self._is_over.wait(_SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        self.peak = max(self.peak, sum(map(_kibibytes, _family([os.getpid()]))))


def report(meters: Sequence[Meter], steps: int) -> None:
    """Print what several runs cost together as a line of JSON."""
    seconds, cpu = sum(one.seconds for one in meters), sum(one.cpu for one in meters)
    costs = {
        "steps_per_s": steps / seconds,
        "cpu_s_per_1000": 1000 * cpu / steps,
        "peak_mib": max(one.peak for one in meters) / 1024,
        "others_cores": max(0.0, sum(one.machine for one in meters) - cpu) / seconds,
    }
    print(json.dumps(costs), flush=True)


def wait_for(what: str, is_so: Callable[[], bool], every: float = 0.05) -> None:
    """Wait until something is so, but not for ever."""
    pause = threading.Event()
    ends_at = time.perf_counter() + _LONGEST_SECONDS
    while not is_so():
        if time.perf_counter() > ends_at:
            raise TimeoutError(what)
        pause.wait(every)


def arguments(description: str | None) -> argparse.Namespace:
    """Read what every peer is told."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--url", required=True, help="the database or server to use; it is empty")
    parser.add_argument("--server-pid", type=int, help="the server's process, whose CPU time counts")
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def _family(roots: Iterable[int]) -> set[int]:
    """Find processes and all that descend from them."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found: set[int] = set()
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        found.add(pid)
        waiting += children.get(pid, [])
    return found


def _machine_seconds() -> float:
    """Sum up what all processes of the machine have used; the fourth and fifth field are idle time."""
    ticks = [int(field) for field in (_PROC / "stat").read_text(encoding="utf-8").splitlines()[0].split()[1:8]]
    return (sum(ticks) - sum(ticks[3:5])) / _TICKS


def _cpu_ticks(pid: int) -> int:
    """Sum up the time of a process and of the children that it has already buried."""
    return sum(map(int, _fields(pid)[_FIRST_TIME:_AFTER_TIMES]))


def _fields(pid: int) -> list[str]:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return []
    return text.rpartition(")")[2].split()


def _kibibytes(pid: int) -> int:
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
