"""Commands that are imported when they are called; until then only a name and a sentence are known of them.

Help and shell completion of the whole program read the sentence. The rest is Typer's, as if it had always been there.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperCommand

_COMMANDS = "matoolkit.cli.commands"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the program's help, and the modules of `cli/commands` that it stands for.

    A module with an `app` is a group, and further modules add their commands to it. A module without an `app` is one
    command, the function that bears the module's name. `module:name` takes another `app` than the one named so.
    """

    name: str
    help: str
    panel: str
    modules: tuple[str, ...]


class Later(TyperCommand):
    """A command or a group that is imported when it is called."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(entry.name, help=entry.help, rich_help_panel=entry.panel)
        self._entry = entry

    def make_context(self, *given: Any, **named: Any) -> Any:
        """Read the arguments, as what is called does."""
        from matoolkit.telemetry import speak_plainly

        speak_plainly()
        return self.real.make_context(*given, **named)

    @cached_property
    def real(self) -> Any:
        """What is called."""
        entry, holder = self._entry, typer.Typer(add_completion=False)
        first, *others = (_part(module) for module in entry.modules)
        if isinstance(first, typer.Typer):
            for other in others:
                first.add_typer(other)
            holder.add_typer(first, name=entry.name, help=entry.help)
            return typer.main.get_group(holder).commands[entry.name]
        holder.command(entry.name)(first)
        return typer.main.get_command(holder)


def _part(module: str) -> Any:
    """Return the group of a module, or the function that is its only command."""
    name, _, wanted = module.partition(":")
    found = import_module(f"{_COMMANDS}.{name}")
    return getattr(found, wanted or ("app" if hasattr(found, "app") else name))
