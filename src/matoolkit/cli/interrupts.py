"""What Ctrl-C does: before a command has begun, and after it has ended, the process simply ends.

Python raises a KeyboardInterrupt wherever it is. In the middle of an import that is a traceback, and in a callback it
is printed and forgotten. A command that has something to tidy up asks for it when it begins.
"""

import os
import signal

INTERRUPTED = 130


def leave_at_once() -> None:
    """Let Ctrl-C end the process as it is, unless the process was started to ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_as_usual() -> None:
    """Let Ctrl-C raise a KeyboardInterrupt, for what has something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)
