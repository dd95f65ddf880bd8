"""How the command speaks: data on standard output, everything else on standard error."""

from rich.console import Console
from rich.text import Text

from matoolkit.errors import MatoolkitError


def stdout() -> Console:
    """Return a console for data: never wrapped, never cut, in colour only on a terminal."""
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """Return a console for everything that is not data."""
    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def print_error(error: MatoolkitError) -> None:
    """Print an error in its four parts: what, hint, code, and where to read about it."""
    text = Text.assemble(("error: ", "bold red"), error.message, "\n")
    if error.hint:
        text.append(f"  hint: {error.hint}\n")
    text.append(f"  {error.code}: docs/reference/errors.md#{error.code.lower()}", style="dim")
    stderr().print(text)


def counted(number: int, noun: str) -> str:
    """Write `1 error`, `2 errors`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
