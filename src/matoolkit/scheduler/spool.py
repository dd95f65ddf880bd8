"""Where a tick keeps the data of the rows it has read: a few in memory, many in a temporary file."""

from tempfile import SpooledTemporaryFile, gettempdir

from matoolkit.errors import SpoolFailed

IN_MEMORY = 8 * 1024 * 1024


class Spool:
    """Keeps the data of rows, each JSON in one line, until it is closed.

    The file has no name that others could open, and the system removes it even after a crash.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._lines = SpooledTemporaryFile(max_size=in_memory)  # noqa: SIM115 - `close` closes it
        self._end = 0
        self._is_at_end = True

    def close(self) -> None:
        """Forget all data."""
        self._lines.close()

    def keep(self, data: bytes) -> int:
        """Keep the data of a row after all others, and return the place where it is."""
        place = self._end
        try:
            if not self._is_at_end:
                self._lines.seek(place)
                self._is_at_end = True
            self._lines.write(data + b"\n")
        except OSError as fault:
            raise _failure(fault) from fault
        self._end += len(data) + 1
        return place

    def at(self, place: int) -> bytes:
        """Return the data at a place."""
        try:
            self._lines.seek(place)
            self._is_at_end = False
            return self._lines.readline()[:-1]
        except OSError as fault:
            raise _failure(fault) from fault


def _failure(fault: OSError) -> SpoolFailed:
    return SpoolFailed(gettempdir(), fault.strerror or str(fault))
