"""`matoolkit worker call`: one call of a function, to see what it does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matoolkit.cli.commands.worker_check import worker_settings
from matoolkit.cli.options import Yes
from matoolkit.cli.output import stderr
from matoolkit.cli.session import Json, Output, confirm
from matoolkit.cli.tables import Column, Form, print_item
from matoolkit.errors import did_you_mean

if TYPE_CHECKING:
    from matoolkit.domain.messages import WorkerResult
    from matoolkit.settings import WorkerSettings
    from matoolkit.worker.registry import Function, Registry

FAILED = 1

_COLUMNS = (
    Column("FUNCTION", "function"),
    Column("TENANT", "tenant"),
    Column("OUTCOME", "outcome"),
    Column("MS", "durationMs"),
    Column("RESULT", "result"),
    Column("ERROR", "error"),
    Column("TYPE", "errorType"),
)


def call(
    function: Annotated[str, typer.Argument(help="The function, such as Get-MailboxInfo.")],
    param: Annotated[
        list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A parameter.", show_default=False)
    ] = None,
    param_json: Annotated[
        list[str] | None,
        typer.Option("--param-json", metavar="NAME=JSON", help="A parameter as JSON: a list.", show_default=False),
    ] = None,
    functions: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Functions of your own.", show_default=False)
    ] = None,
    output: Output = Form.TABLE,
    *,
    json: Json = False,
    yes: Yes = False,
) -> None:
    """Call a function once, without a batch, and print what it returns; a real tenant is changed only after a question.

    The tenant is that of the worker's settings, else a simulated one that is made for the call. Exit code 1: it failed.
    """
    from matoolkit.hosting.calling import Call, called, is_simulated

    settings = worker_settings(None)
    if functions is not None:
        settings = settings.model_copy(update={"custom_modules_path": functions})
    registry = _registry(settings)
    asked = Call(found := _found(registry, function), _parameters(found, param or [], param_json or []))
    if asked.changes and not is_simulated(settings):
        confirm(f"{found.name} may change the tenant {settings.target_tenant_id}: call it?", yes=yes)
    result = called(settings, registry, asked)
    print_item(_item(found, settings, result), _COLUMNS, Form.JSON if json else output)
    if result.error is not None:
        raise typer.Exit(FAILED)


def _registry(settings: "WorkerSettings") -> "Registry":
    from matoolkit.system import functions_of_worker

    registry, broken = functions_of_worker(settings)
    for file in broken:
        stderr().print(f"{file.path}: {file.why}")
    return registry


def _found(registry: "Registry", name: str) -> "Function":
    known = {one.name.casefold(): one for one in registry}
    if name.casefold() not in known:
        hint = did_you_mean(name, [one.name for one in registry]) or "`matoolkit worker functions` lists them"
        raise typer.BadParameter(f"there is no function {name!r}; {hint}", param_hint="FUNCTION")
    return known[name.casefold()]


def _parameters(function: "Function", texts: list[str], documents: list[str]) -> dict[str, Any]:
    """Read the parameters, and say at once what is missing, unknown, or secret and written out."""
    given: dict[str, Any] = dict(map(_split, texts))
    given |= {name: _read(name, value) for name, value in map(_split, documents)}
    for name, value in given.items():
        parameter = function.by_name.get(name.casefold())
        if parameter is None:
            names = [one.name for one in function.parameters]
            hint = did_you_mean(name, names) or f"it has {', '.join(names) or 'none'}"
            raise typer.BadParameter(f"{function.name} has no parameter {name!r}; {hint}", param_hint="--param")
        if parameter.is_secret and not (isinstance(value, str) and value.startswith("secret:")):
            problem = f"{name} is secret: write {name}=secret:NAME, and put it where the worker finds that secret"
            raise typer.BadParameter(problem, param_hint="--param")
    folded = {name.casefold() for name in given}
    missing = [one for one in function.parameters if one.is_mandatory and one.name.casefold() not in folded]
    if missing:
        wanted = " ".join(f"--param {one.name}={one.type.upper()}" for one in missing)
        raise typer.BadParameter(f"{function.name} needs {wanted}", param_hint="--param")
    return given


def _split(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise typer.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--param")
    return name.strip(), value


def _read(name: str, value: str) -> Any:
    import orjson

    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError as wrong:
        raise typer.BadParameter(f"{name} is not JSON: {wrong}", param_hint="--param-json") from None


def _item(function: "Function", settings: "WorkerSettings", result: "WorkerResult") -> dict[str, Any]:
    from matoolkit.hosting.calling import is_simulated

    tenant = settings.simulated_tenant_url or "simulated, made for this call"
    error = result.error
    return {
        "function": function.name,
        "tenant": tenant if is_simulated(settings) else settings.target_tenant_id,
        "outcome": _outcome(result),
        "durationMs": result.duration_ms,
        "result": result.result,
        "error": error.message if error else None,
        "errorType": error.type if error else None,
        "isThrottled": bool(error and error.is_throttled),
    }


def _outcome(result: "WorkerResult") -> str:
    from matoolkit.domain.answers import is_complete

    if result.error is not None:
        return "throttled" if result.error.is_throttled else "failed"
    complete = is_complete(result.result)
    return "done" if complete is None else "complete" if complete else "not complete yet: a step would poll"
