"""Writes what the reference would otherwise say a second time, from the code where it is true.

`make docs` runs this; a test fails when a page is not what this would write. In a page, everything between
`<!-- generated: NAME -->` and `<!-- end -->` is made here, the rest is written by hand.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import orjson
from pictures import batch_picture, live_view, story_picture
from pydantic import BaseModel, SecretStr
from sqlalchemy import Boolean, Column, ColumnElement, Integer, String, Table, UniqueConstraint

from matoolkit import errors
from matoolkit.api.app import openapi_document
from matoolkit.cli.program import program
from matoolkit.client_settings import VARIABLES, ClientSettings
from matoolkit.clouds import CLOUDS
from matoolkit.domain.moves import Move, batch, member, phase, step
from matoolkit.duration import format_duration
from matoolkit.runbook import values
from matoolkit.runbook.catalogue import BUILT_IN
from matoolkit.runbook.findings import FINDING_KINDS
from matoolkit.runbook.offsets import OFFSET_PATTERN
from matoolkit.runbook.schema import json_schema
from matoolkit.settings import Settings, TelemetrySettings, WorkerSettings, variable_names
from matoolkit.store.dialect.types import Instant, OneOf
from matoolkit.store.schema import MEANINGS, metadata
from matoolkit.telemetry.metering import MEASURES, Form
from matoolkit.worker.functions import built_in
from matoolkit.worker.functions.meanings import MEANINGS as MEANINGS_OF_FUNCTIONS
from matoolkit.worker.registry import Function
from matoolkit.worker.signature import Kind

REFERENCE = Path(__file__).parent / "reference"
_BLOCK = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages() -> dict[Path, Callable[[], str]]:
    """Return every generated file, and what writes it."""
    marked = [page for page in sorted(REFERENCE.glob("*.md")) if _BLOCK.search(page.read_text(encoding="utf-8"))]
    return {
        REFERENCE / "runbook.schema.json": lambda: _json(json_schema("2020-12")),
        REFERENCE / "runbook.draft-07.schema.json": lambda: _json(json_schema("draft-07")),
        REFERENCE / "openapi.json": lambda: _json(_api()),
        REFERENCE / "batch-watch.svg": batch_picture,
        REFERENCE / "up.svg": story_picture,
        **{page: partial(_filled, page) for page in marked},
    }


def _filled(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    return _BLOCK.sub(lambda block: f"{block[1]}{_block(block['name'])}{block[3]}", text)


@cache
def _api() -> dict[str, Any]:
    return openapi_document()


def _block(name: str) -> str:
    if name.startswith("keys-"):
        return _keys(name.removeprefix("keys-"))
    return _BLOCKS[name]()


def _keys(part: str) -> str:
    schema = json_schema()
    described = schema if part == "Runbook" else schema["$defs"][part]
    required = described.get("required", [])
    rows = (
        (f"`{key}`", _kind(key, value), "yes" if key in required else "", value.get("description", ""))
        for key, value in described["properties"].items()
    )
    return _table(("key", "value", "required", "meaning"), rows)


def _kind(key: str, schema: dict[str, Any]) -> str:
    """Say in a few words what a key holds."""
    match schema:
        case {"$ref": str(reference)}:
            part = reference.rsplit("/", 1)[-1]
            return f"[{part}](#{part.lower()})"
        case {"type": "array", "items": items}:
            return f"list of {_kind(key, items)}"
        case {"patternProperties": {"^x-": _, **named}}:
            (steps,) = named.values()
            return f"mapping of names to {_kind(key, cast('dict[str, Any]', steps))}"
        case {"enum": list(allowed)}:
            return " or ".join(f"`{value}`" for value in allowed)
        case {"const": str(only)}:
            return f"`{only}`"
        case {"anyOf": _}:
            return "count or percentage"
        case {"type": "string", "pattern": str(pattern)}:
            return _PATTERNS[pattern]
    return _TYPES.get(schema.get("type", ""), "any value")


_TYPES = {"string": "text", "integer": "number", "boolean": "true or false", "object": "mapping"}


_PATTERNS = {
    values.NAME_PATTERN: "name",
    values.DURATION_PATTERN: "duration",
    values.ENVIRONMENT_VARIABLE_PATTERN: "variable's name",
    OFFSET_PATTERN: "offset",
    values.FILE_NAME_PATTERN: "file",
    values.TIME_OF_DAY_PATTERN: "time of day",
}


def _findings() -> str:
    return "".join(
        f'<a id="{kind.code.lower()}"></a>\n### {kind.code} {kind.title}\n\n'
        f"*{str(kind.severity).capitalize()}.* {kind.explanation}\n\n*Fix:* {kind.hint}.\n\n"
        for kind in FINDING_KINDS.values()
    )


def _functions() -> str:
    rows = (
        (
            f"`{function.name}`",
            " ".join(_parameters(function.parameters, is_mandatory=True)),
            " ".join(_parameters(function.parameters, is_mandatory=False)),
        )
        for function in BUILT_IN.values()
    )
    return _table(("function", "mandatory parameters", "optional ones"), rows)


def _parameters(parameters: Iterable[Any], *, is_mandatory: bool) -> Iterator[str]:
    return (f"`{known.name}`" for known in parameters if known.is_mandatory is is_mandatory)


def _worker_functions() -> str:
    return "\n".join(_worker_function(function) for function in built_in())


def _worker_function(function: Function) -> str:
    defaults = inspect.signature(function.call).parameters
    rows = (
        (
            f"`{known.name}`",
            _KIND_WORDS[known.type] + (", secret" if known.is_secret else ""),
            "yes" if known.is_mandatory else "",
            "" if known.is_mandatory else _default(defaults[known.python_name].default),
        )
        for known in function.parameters
    )
    parameters = _table(("parameter", "takes", "mandatory", "default"), rows)
    meaning = MEANINGS_OF_FUNCTIONS[function.name]
    said = f"Returns {meaning.returns}\n\n*Run again:* {meaning.again}\n\n{_needs(function)}"
    return f"### {function.name}\n\n{function.doc}\n\n{parameters}\n{said}"


def _needs(function: Function) -> str:
    rows = (
        (str(need.kind), f"`{need.any_of[0]}`", ", ".join(f"`{name}`" for name in need.any_of[1:]), need.source)
        for need in function.needs
    )
    return _table(("needs", "the least", "also enough", "source"), rows)


_KIND_WORDS: dict[str, str] = {
    Kind.TEXT: "text",
    Kind.FLAG: "true or false",
    Kind.INTEGER: "a whole number",
    Kind.LIST: "a list",
    Kind.MAPPING: "a mapping",
    Kind.ANYTHING: "anything",
}


def _settings(settings: type[BaseModel], leaving_out: str = "") -> Callable[[], str]:
    def block() -> str:
        variables = variable_names(settings)  # type: ignore[arg-type]
        rows = (
            (f"`{variables[field]}`", _default(info.default), info.description or "")
            for field, info in settings.model_fields.items()
            if field != leaving_out
        )
        return _table(("variable", "default", "meaning"), rows)

    return block


def _client_settings() -> str:
    rows = (
        (f"`{VARIABLES[one.name]}`", _default(one.default), one.metadata["description"])
        for one in fields(ClientSettings)
    )
    return _table(("variable", "default", "meaning"), rows)


def _clouds() -> str:
    given = [asdict(cloud) for cloud in CLOUDS.values()]
    rows = ((_CLOUD_COLUMNS[name], *(f"`{one[name]}`" for one in given)) for name in _CLOUD_COLUMNS)
    return _table(("", *(f"`{name}`" for name in CLOUDS)), rows)


_CLOUD_COLUMNS = {
    "authority": "sign-in, keys, issuer of tokens of version 2",
    "sts": "issuer of tokens of version 1",
    "federation": "audience of federated credentials",
    "graph": "Graph",
    "exchange": "Exchange",
    "key_vault": "Key Vault",
    "sql": "SQL",
    "service_bus": "Service Bus",
    "dataverse": "Dataverse",
    "databricks": "Databricks",
    "graph_environment": "`Connect-MgGraph -Environment`",
    "exchange_environment": "`Connect-ExchangeOnline -ExchangeEnvironmentName`",
}


def _metrics() -> str:
    rows = (
        (
            f"`{one.name}`",
            f"`{one.name_at_metrics}`" if one.form is Form.GAUGE else "",
            f"{one.form}, `{one.unit}`",
            ", ".join(f"`{label}`" for label in one.labels),
            one.meaning,
        )
        for one in MEASURES
    )
    return _table(("OpenTelemetry", "`/metrics`", "is", "labels", "meaning"), rows)


def _default(value: Any) -> str:
    match value:
        case None:
            return ""
        case SecretStr():
            return f"`{value.get_secret_value()}`"
        case timedelta():
            return f"`{format_duration(value)}`"
        case bool():
            return f"`{str(value).lower()}`"
        case _:
            return f"`{value}`"


def _errors() -> str:
    rows = (
        (
            f'<a id="{error.code.lower()}"></a>`{error.code}`',
            str(error.http_status),
            str(error.exit_code),
            (error.__doc__ or "").splitlines()[0],
        )
        for error in sorted(errors.error_kinds(), key=lambda error: error.code)
    )
    return _table(("code", "HTTP status", "exit code", "meaning"), rows)


def _tables() -> str:
    return "\n".join(_one_table(table) for table in metadata.sorted_tables)


def _one_table(table: Table) -> str:
    rows = (
        (f"`{column.name}`", _type(column), "" if column.nullable else "yes", column.doc or "")
        for column in table.columns
    )
    columns = _table(("column", "type", "always set", "meaning"), rows)
    keys = "".join(f"- {line}\n" for line in _keys_of(table))
    return f"### {table.name}\n\n{MEANINGS[table.name]}\n\n{columns}\n{keys}"


def _type(column: Column[Any]) -> str:
    for key in column.foreign_keys:
        return f"[{key.column.table.name}](#{key.column.table.name})"
    if isinstance(column.type, OneOf):
        return " ".join(f"`{choice}`" for choice in column.type.choices)
    longest = getattr(column.type, "length", None)
    length = f"({longest})" if longest else ""
    kinds = {Instant: "UTC time", Boolean: "yes or no", Integer: "number", String: f"text{length}"}
    return next(words for kind, words in kinds.items() if isinstance(column.type, kind))


def _keys_of(table: Table) -> Iterator[str]:
    yield f"primary key: {_names(table.primary_key.columns)}"
    unique = [one for one in table.constraints if isinstance(one, UniqueConstraint)]
    for constraint in sorted(unique, key=lambda one: str(one.name)):
        yield f"unique: {_names(constraint.columns)}"
    for index in sorted(table.indexes, key=lambda one: str(one.name)):
        where = index.dialect_options["sqlite"]["where"]
        only = "" if where is None else f", only where {_condition(where)}"
        yield f"{'unique' if index.unique else 'index'} `{index.name}`: {_names(index.columns)}{only}"


def _names(columns: Iterable[Column[Any]]) -> str:
    return ", ".join(f"`{column.name}`" for column in columns)


def _condition(where: ColumnElement[bool]) -> str:
    text = str(where.compile(compile_kwargs={"literal_binds": True}))
    return f"`{text.split('.', 1)[-1]}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def _json(document: Any) -> str:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _routes(topic: str) -> Callable[[], str]:
    def block() -> str:
        rows = (
            (f"`{method.upper()} {path}`", operation.get("x-role", "anybody"), operation["description"])
            for path, methods in _api()["paths"].items()
            for method, operation in methods.items()
            if topic in operation["tags"]
        )
        return _table(("route", "for", "does"), rows)

    return block


def _commands(*groups: str) -> Callable[[], str]:
    def block() -> str:
        rows = (
            (f"`matoolkit {name}{_usage(command)}`", " ".join((command.help or "").split()))
            for group in groups
            for name, command in _commands_of(group)
            if _is_asking(command)
        )
        return _table(("command", "does"), rows)

    return block


def _commands_of(group: str) -> Iterator[tuple[str, Any]]:
    """List the commands of a group; a command that stands for itself is the only one."""
    found = program().commands[group].real
    for name, command in getattr(found, "commands", {"": found}).items():
        # A command that is hidden is what its group does with an option, or with a word of another kind.
        yield (group if command.hidden else f"{group} {name}".strip()), command


def _is_asking(command: Any) -> bool:
    return any("--api-url" in parameter.opts for parameter in command.params)


def _usage(command: Any) -> str:
    """Write what a command takes, but for the options that all of them have."""
    said = ""
    for one in command.params:
        if one.param_type_name == "argument":
            name = one.metavar or one.name.upper()
            said += f" {name}" if one.required else f" [{name}]"
        elif not {"--output", "--json", "--local", "--api-url"} & set(one.opts):
            long = next(opt for opt in one.opts if opt.startswith("--"))
            other = f"|{one.secondary_opts[0]}" if one.secondary_opts else ""
            value = "" if one.is_flag else f" {one.metavar or long.removeprefix('--').upper().replace('-', '_')}"
            written = f"{long}{other}{value}"
            said += f" {written if one.required else f'[{written}]'}{'…' if one.multiple else ''}"
    return said


def _states(table: Sequence[Move[Any]], first: str) -> Callable[[], str]:
    def block() -> str:
        arrows: dict[tuple[str, str], list[str]] = {}
        for move in table:
            for start in sorted(move.from_states) if move.to_state is not None else ():
                arrows.setdefault((str(start), str(move.to_state)), []).append(move.name)
        drawn = [f"    [*] --> {first}"]
        drawn += [f"    {start} --> {to}: {', '.join(names)}" for (start, to), names in arrows.items()]
        rows = (
            (
                move.name,
                move.meaning,
                "any" if move.is_from_anywhere else ", ".join(f"`{status}`" for status in sorted(move.from_states)),
                "stays" if move.to_state is None else f"`{move.to_state}`",
                "; ".join(guard.value for guard in move.guards),
            )
            for move in table
        )
        diagram = "\n".join(["```mermaid", "stateDiagram-v2", *drawn, "```", "", ""])
        return diagram + _table(("move", "when", "from", "to", "only if"), rows)

    return block


_BLOCKS: dict[str, Callable[[], str]] = {
    "findings": _findings,
    "tables": _tables,
    "functions": _functions,
    "worker-functions": _worker_functions,
    "errors": _errors,
    "settings": _settings(Settings),
    "client-settings": _client_settings,
    "worker-settings": _settings(WorkerSettings),
    "clouds": _clouds,
    "telemetry-settings": _settings(TelemetrySettings, leaving_out="cloud"),
    "metrics": _metrics,
    **{
        f"routes-{topic}": _routes(topic)
        for topic in ("runbooks", "batches", "members", "reports", "operations", "undo", "system")
    },
    "commands-runbooks": _commands("runbook", "automation", "query", "template"),
    "commands-batches": _commands("batch", "member", "report"),
    "commands-operations": _commands(
        *("now", "inbox", "explain", "hold", "approval", "pause", "resume", "freeze", "gate"),
        *("undo-failure", "dead-letter", "audit", "worker", "api"),
    ),
    "live-view": live_view,
    "states-step": _states(step.MOVES, "pending"),
    "states-member": _states(member.MOVES, "active"),
    "states-phase": _states(phase.MOVES, "pending"),
    "states-batch": _states(batch.MOVES, "detected"),
}

if __name__ == "__main__":
    for path, written in pages().items():
        path.write_text(written(), encoding="utf-8")
        print(path.relative_to(REFERENCE.parent.parent))
