"""What functions print: masked, and in the log if every line of that has to be JSON (rule W8)."""

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from matoolkit.telemetry import speaks_json
from matoolkit.worker.masking import Masking

log = logging.getLogger(__name__)


@contextmanager
def guarded_streams(masking: Masking) -> Iterator[None]:
    """Mask what is printed inside the block: by functions, by their threads, and by Python about either."""
    before: Any = (sys.stdout, sys.stderr)
    out, errors = (_MaskingStream(stream, masking) for stream in before)
    sys.stdout, sys.stderr = out, _LoggedLines(errors) if speaks_json() else errors
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _MaskingStream:
    """A stream that masks what is written to it, as text or as bytes; all else is the stream's own."""

    def __init__(self, stream: Any, masking: Masking) -> None:
        self._stream = stream
        self._masking = masking

    def write(self, written: Any) -> int:
        """Write a piece without the secrets in it."""
        if isinstance(written, str):
            self._stream.write(self._masking.text(written))
        else:
            text = bytes(written).decode(errors="surrogateescape")
            self._stream.write(self._masking.text(text).encode(errors="surrogateescape"))
        return len(written)

    def writelines(self, lines: Iterable[Any]) -> None:
        """Write pieces one after the other."""
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> "_MaskingStream":
        """The bytes below the text, masked as well."""
        return _MaskingStream(self._stream.buffer, self._masking)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LoggedLines(threading.local):
    """A stream whose lines are logged, each thread's own; all else is that of the stream in whose place it stands."""

    def __init__(self, stream: _MaskingStream) -> None:
        self._stream = stream
        self._line = ""
        self._is_logging = False

    def write(self, written: str) -> int:
        """Log the lines that end here, and keep the beginning of the next."""
        if self._is_logging:
            # Logging itself has something to say, and must not be asked to log it.
            return self._stream.write(written)
        *lines, self._line = (self._line + written).split("\n")
        self._log(lines)
        return len(written)

    def writelines(self, lines: Iterable[str]) -> None:
        """Log lines one after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Log what has no end yet."""
        line, self._line = self._line, ""
        self._log([line])

    def _log(self, lines: Iterable[str]) -> None:
        self._is_logging = True
        try:
            for line in lines:
                if line.strip():
                    log.warning("a function printed: %s", line)
        finally:
            self._is_logging = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
