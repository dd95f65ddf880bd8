"""The functions against which runbooks are checked here: built in, your own, and what workers announced."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from matoolkit.cli.client import path_of
from matoolkit.cli.output import stderr

if TYPE_CHECKING:
    from matoolkit.clock import Clock
    from matoolkit.runbook.catalogue import Catalogue, Function

FOLDER = "CUSTOM_MODULES_PATH"


def functions_known(
    folder: Path | None, environ: Mapping[str, str], clock: "Clock | None", *, announced: bool
) -> "Catalogue":
    """Return the functions that are built in, in a folder, and announced to the admin API if that is wanted."""
    from matoolkit.runbook.catalogue import BUILT_IN, catalogue_of

    own = folder or (Path(environ[FOLDER]) if environ.get(FOLDER) else None)
    found = [*(_announced(clock) if announced else []), *(_in_folder(own) if own else [])]
    return {**BUILT_IN, **catalogue_of(*found)}


def _in_folder(folder: Path) -> "list[Function]":
    """Read functions of your own; a file that cannot be used is told, and the others are known."""
    from matoolkit.admin.catalogue import function_of
    from matoolkit.worker.custom import register_custom
    from matoolkit.worker.registry import Registry

    registry = Registry()
    for broken in register_custom(registry, folder):
        stderr().print(f"{broken.path}: {broken.why}")
    return [function_of(one.name, one.parameters) for one in registry.catalogue()]


def _announced(clock: "Clock | None") -> "list[Function]":
    from matoolkit.cli.session import session
    from matoolkit.runbook.catalogue import Function, Parameter

    with session(clock) as opened:
        listed = opened.client.whole_list(path_of("functions"))
    return [
        Function(
            str(one["name"]),
            tuple(
                Parameter(str(known["name"]), bool(known["isMandatory"]), bool(known["isSecret"]), known["kind"])
                for known in one["parameters"]
            ),
        )
        for one in listed
    ]
