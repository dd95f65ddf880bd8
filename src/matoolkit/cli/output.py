"""How the command speaks: data on standard output, everything else on standard error."""

import codecs
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from matoolkit.errors import MatoolkitError
from matoolkit.visible import visible, visible_json


class PlainConsole(Console):
    """A console that writes what it is given and nothing into it: no markup, and no control character but its own."""

    def __init__(self, *, stderr: bool = False, soft_wrap: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=soft_wrap, highlight=False, markup=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Turn something into text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text, keep="\n"), style, control)


def stdout() -> Console:
    """Return a console for data: never wrapped, never cut, in colour only on a terminal."""
    return PlainConsole(soft_wrap=True)


def stderr() -> Console:
    """Return a console for everything that is not data."""
    return PlainConsole(stderr=True, soft_wrap=True)


def write(*pieces: str) -> None:
    """Write data to standard output as it is; on a terminal control characters are written out."""
    write_bytes(piece.encode(errors="replace") for piece in pieces)


def write_bytes(pieces: Iterable[bytes]) -> None:
    """Do the same for data that comes in pieces."""
    if sys.stdout.isatty():
        for text in codecs.iterdecode(pieces, "utf-8", "replace"):
            sys.stdout.write(visible(text.replace("\r\n", "\n"), keep="\n\t"))
    else:
        # Not through the console: a key may contain what looks like a colour code.
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
    sys.stdout.flush()


def write_json(content: bytes) -> int:
    """Write JSON on lines of its own, and return how many things were written: one."""
    write(f"{visible_json(content.decode())}\n")
    return 1


def print_error(error: MatoolkitError) -> None:
    """Print an error in its four parts: what, hint, code, and where to read about it."""
    text = Text.assemble(("error: ", "bold red"), error.message, "\n")
    if error.hint:
        text.append(f"  hint: {error.hint}\n")
    text.append(f"  {error.code}: matoolkit explain {error.code}", style="dim")
    stderr().print(text)
