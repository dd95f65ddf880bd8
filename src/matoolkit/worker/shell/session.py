"""One process of PowerShell that does one thing after another: a line of JSON in, a line of JSON out."""

import logging
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson

_SCRIPT = Path(__file__).with_name("session.ps1")
_MOST_LINES_OF_TROUBLE = 20
_LONGEST_TROUBLE = 500
# A process that something else keeps the pipes of open is not waited for any longer.
_LET_GO_SECONDS = 5

log = logging.getLogger(__name__)


class SessionEnded(Exception):
    """The process ended, or was ended because it took too long, before it answered."""


class Session:
    """A process; only one thread may use it at a time."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - the program is PowerShell, and nothing of a job is in the command
            [program, "-NoLogo", "-NoProfile", "-NonInteractive", "-File", str(_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the worker, which lets its jobs end
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._trouble: deque[str] = deque(maxlen=_MOST_LINES_OF_TROUBLE)
        self._readers = [
            threading.Thread(target=target, name="pwsh", daemon=True)
            for target in (self._read_lines, self._read_trouble)
        ]
        for reader in self._readers:
            reader.start()

    @property
    def is_alive(self) -> bool:
        """Whether the process is there to be asked."""
        return self._process.poll() is None

    def ask(self, request: Mapping[str, Any], seconds: float) -> Mapping[str, Any]:
        """Send a request and wait for its answer; a process that takes longer is ended."""
        identifier = uuid4().hex
        # What was said of another job may hold a secret of its own, which is not masked in this one's answer.
        self._trouble.clear()
        is_late = threading.Event()
        watch = threading.Timer(seconds, self._end, [is_late])
        watch.daemon = True
        watch.start()
        try:
            self._send({"id": identifier, **request})
            return self._answer(identifier)
        except (OSError, EOFError):
            why = f"it took longer than {seconds:,.0f} seconds" if is_late.is_set() else self._said()
            raise SessionEnded(why) from None
        finally:
            watch.cancel()

    def close(self) -> None:
        """End the process and everything that it started."""
        self._end()
        self._process.wait()
        for reader in self._readers:
            reader.join(_LET_GO_SECONDS)
        if any(reader.is_alive() for reader in self._readers):
            return
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            # What could not be sent is not sent now.
            with suppress(OSError):
                pipe.close()  # type: ignore[union-attr]

    def _send(self, request: Mapping[str, Any]) -> None:
        pipe = self._process.stdin
        if pipe is None:
            raise EOFError
        pipe.write(orjson.dumps(request) + b"\n")
        pipe.flush()

    def _answer(self, identifier: str) -> Mapping[str, Any]:
        """Return the line that answers; a script may write others."""
        while (line := self._lines.get()) is not None:
            with suppress(orjson.JSONDecodeError):
                answer = orjson.loads(line)
                if isinstance(answer, dict) and answer.get("id") == identifier:
                    return answer
            log.debug("a PowerShell session wrote a line that is not an answer")
        raise EOFError

    def _read_lines(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _read_trouble(self) -> None:
        for line in self._process.stderr or ():
            self._trouble.append(line.decode(errors="replace").strip())

    def _said(self) -> str:
        try:
            self._process.wait(_LET_GO_SECONDS)
        except subprocess.TimeoutExpired:
            return "it no longer answers"
        self._readers[1].join(_LET_GO_SECONDS)
        said = " ".join(filter(None, self._trouble))
        if len(said) > _LONGEST_TROUBLE:
            # Cut between words: the rest of a secret would not be recognised.
            said = f"… {said[-_LONGEST_TROUBLE:].partition(' ')[2]}"
        return f"exit code {self._process.returncode}" + (f": {said}" if said else "")

    def _end(self, is_late: threading.Event | None = None) -> None:
        if is_late is not None:
            is_late.set()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
