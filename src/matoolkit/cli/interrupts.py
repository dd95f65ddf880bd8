"""What Ctrl-C does: before a command has begun, and after it has ended, the process simply ends.

Python raises a KeyboardInterrupt wherever it is. In the middle of an import that is a traceback, and in a callback it
is printed and forgotten. A command that has something to tidy up asks for it when it begins.
"""

# The module `signal` imports others for its enums. Ctrl-C would find us in the middle of them.
import _signal  # type: ignore[import-not-found]
import os

INTERRUPTED = 130


def leave_at_once() -> None:
    """Let Ctrl-C end the process as it is, unless the process was started to ignore it."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


def raise_as_usual() -> None:
    """Let Ctrl-C raise a KeyboardInterrupt, for what has something to tidy up."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)
