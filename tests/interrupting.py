"""Ctrl-C at a moment at which Python would forget it: in the middle of a callback, while a module is being imported."""

_SCRIPT = """
import signal, sys, weakref

class Thing:
    pass

class Importing:
    is_done = False

    def find_spec(self, name, path=None, target=None):
        if name == "{module}" and not self.is_done:
            self.is_done = True
            thing = Thing()
            watched = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGINT))
            del thing

sys.meta_path.insert(0, Importing())
from matoolkit.cli.main import main
main()
"""


# A run of the tests in the background of a shell ignores Ctrl-C, and so does what it starts, unless told otherwise.
HEEDING_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def interrupted_at(module: str) -> str:
    """Return a script that runs the command, and is interrupted when it imports a module."""
    return _SCRIPT.replace("{module}", module)
