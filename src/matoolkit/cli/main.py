"""Where the command `matoolkit` begins and ends. It imports next to nothing, so that Ctrl-C finds it ready."""

import os
import sys

from matoolkit.cli.interrupts import leave_at_once


def main() -> None:
    """Run the command and exit."""
    leave_at_once()
    from matoolkit.cli.program import run

    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its number instead of failing.
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    code = run(sys.argv[1:])
    leave_at_once()
    sys.exit(_written(code))


def _written(code: int) -> int:
    """Write what is left to be written; who reads may have enough of it, as `head` has."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would try to write it once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code
