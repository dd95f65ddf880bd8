"""Reads calls and types out of generated clients: wheels, opened as zip files and parsed, never imported."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from zipfile import ZipFile

Type = dict[str, str]
Found = dict[str, Any]

_PRIMITIVES = {
    "get_str_value": "String",
    "get_bool_value": "Boolean",
    "get_int_value": "Int",
    "get_float_value": "Double",
    "get_datetime_value": "DateTime",
    "get_date_value": "Date",
    "get_time_value": "String",
    "get_timedelta_value": "String",
    "get_uuid_value": "Guid",
    "get_bytes_value": "String",
}
_PYTHON = {"str": "String", "bool": "Boolean", "int": "Int", "float": "Double", "UUID": "Guid"}


class GraphWheel:
    """A wheel of the Graph SDK: one folder for each segment of a path, one module for each type."""

    def __init__(self, path: Path, version: str, nested: frozenset[str]) -> None:
        self._zip = ZipFile(path)
        self._names = set(self._zip.namelist())
        (self._root,) = {name.split("/")[0] for name in self._names if "/generated/" in name}
        self._version = version
        self._nested = nested
        self.types: dict[str, Type] = {}
        self.enums: dict[str, list[str]] = {}

    def calls(self, wanted: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, Found]]:
        """Find calls by their path, in which `{}` stands for an id."""
        for path, methods in wanted.items():
            module = self._builder(path)
            (builder,) = (node for node in ast.parse(self._text(module)).body if isinstance(node, ast.ClassDef))
            template = _template(builder)
            place, _, query = template.removeprefix("{+baseurl}").partition("{?")
            options = [unquote(name) for name in query.rstrip("}").split(",") if name]
            actions = {node.name: node for node in builder.body if isinstance(node, ast.AsyncFunctionDef)}
            for method in methods:
                yield (
                    f"{method} /{self._version}{unquote(place)}",
                    self._call(module, actions[method.lower()], options if method == "GET" else []),
                )

    def _call(self, module: str, action: ast.AsyncFunctionDef, options: list[str]) -> Found:
        imported = dict(_imports(action))
        found: Found = {"query": options} if options else {}
        body = next((one for one in action.args.args if one.arg == "body"), None)
        if body is not None:
            found["body"] = self._described(module, ast.unparse(body.annotation or body), imported)
        for call in ast.walk(action):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "send_async":
                found["answer"] = self._described(module, ast.unparse(call.args[1]), imported)
        return found

    def _described(self, module: str, name: str, imported: Mapping[str, tuple[int, str]]) -> str:
        """Describe a type, and those inside it that are wanted; a body's import stands at the module's beginning."""
        if name in self.types:
            return name
        places = {**dict(_imports(ast.parse(self._text(module)))), **imported}
        self.types[name] = {}
        self.types[name] = dict(self._properties(_resolved(module, *places[name])))
        return name

    def _properties(self, module: str) -> Iterator[tuple[str, str]]:
        (model,) = (node for node in ast.parse(self._text(module)).body if isinstance(node, ast.ClassDef))
        top = dict(_imports(ast.parse(self._text(module))))
        for base in model.bases:
            if isinstance(base, ast.Name) and base.id in top and base.id not in ("AdditionalDataHolder", "Parsable"):
                yield from self._properties(_resolved(module, *top[base.id]))
        (reader,) = (
            one for one in model.body if isinstance(one, ast.FunctionDef) and one.name == "get_field_deserializers"
        )
        places = {**top, **dict(_imports(reader))}
        for node in ast.walk(reader):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    kind = self._kind(module, value, places)
                    if (
                        isinstance(key, ast.Constant)
                        and kind is not None
                        and not str(key.value).startswith("@odata.ty")
                    ):
                        yield str(key.value), kind

    def _kind(self, module: str, reading: ast.expr, places: Mapping[str, tuple[int, str]]) -> str | None:
        """Name the type that a reader like `n.get_collection_of_object_values(User)` reads."""
        found = re.search(r"n\.(get_\w+)\((\w*)\)", ast.unparse(reading))
        if found is None:
            return None
        getter, name = found.groups()
        if getter in _PRIMITIVES:
            return _PRIMITIVES[getter]
        if getter == "get_collection_of_primitive_values":
            return f"[{_PYTHON.get(name, 'String')}]"
        if getter in ("get_enum_value", "get_collection_of_enum_values"):
            self._enumerate(_resolved(module, *places[name]), name)
        elif name in self._nested:
            self._described(module, name, places)
        else:
            return None
        return f"[{name}]" if "collection" in getter else name

    def _enumerate(self, module: str, name: str) -> None:
        values = re.findall(r'^    \w+ = "([^"]+)",?', self._text(module), re.MULTILINE)
        self.enums[name] = values

    def _builder(self, path: str) -> str:
        folder = "/".join((self._root, "generated", *map(_folder, path.strip("/").split("/"))))
        (found,) = (one for one in self._names if re.fullmatch(re.escape(folder) + r"/\w+_request_builder\.py", one))
        return found

    def _text(self, module: str) -> str:
        return self._zip.read(module).decode()


def databricks(path: Path, methods: tuple[str, ...]) -> Found:
    """Read the calls of the SQL Statements API, and their types, out of Databricks' own client."""
    module = ast.parse(ZipFile(path).read("databricks/sdk/service/sql.py").decode())
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    api = {node.name: node for node in classes["StatementExecutionAPI"].body if isinstance(node, ast.FunctionDef)}
    types: dict[str, Type] = {}
    enums: dict[str, list[str]] = {}
    calls: dict[str, Found] = {}

    def kind(annotation: str) -> str:
        name = annotation.removeprefix("Optional[").removesuffix("]") if "Optional" in annotation else annotation
        if name.startswith("List["):
            return f"[{kind(name.removeprefix('List[').removesuffix(']'))}]"
        if name in _PYTHON or name not in classes:
            return _PYTHON.get(name, "Any")
        if any(ast.unparse(base) == "Enum" for base in classes[name].bases):
            enums[name] = [str(one.value.value) for one in classes[name].body if _is_constant(one)]  # type: ignore[attr-defined]
        elif name not in types:
            types[name] = {}
            fields = [one for one in classes[name].body if isinstance(one, ast.AnnAssign)]
            types[name] = {ast.unparse(one.target): kind(ast.unparse(one.annotation)) for one in fields}
        return name

    for name in methods:
        (sent,) = re.findall(r"self\._api\.do\('(\w+)', f?'([^']+)'", ast.unparse(api[name]))
        call: Found = {}
        given = api[name].args.args[1:] + api[name].args.kwonlyargs
        body = {one.arg: kind(ast.unparse(one.annotation or one)) for one in given if f"{{{one.arg}}}" not in sent[1]}
        if body:
            types[f"{name} body"] = body
            call["body"] = f"{name} body"
        if api[name].returns is not None and ast.unparse(api[name].returns) in classes:  # type: ignore[arg-type]
            call["answer"] = kind(ast.unparse(api[name].returns))  # type: ignore[arg-type]
        calls[" ".join(sent)] = call
    return {"calls": calls, "types": types, "enums": enums}


def version_of(path: Path) -> str:
    """Read a wheel's version from its name."""
    return path.name.split("-")[1]


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _template(builder: ast.ClassDef) -> str:
    texts = (node.value for node in ast.walk(builder) if isinstance(node, ast.Constant))
    return next(text for text in texts if isinstance(text, str) and text.startswith("{+baseurl}"))


def _imports(tree: ast.AST) -> Iterator[tuple[str, tuple[int, str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            for one in node.names:
                yield one.name, (node.level, node.module or "")


def _resolved(module: str, level: int, name: str) -> str:
    return "/".join((*module.split("/")[:-level], *name.split("."))) + ".py"


def _folder(segment: str) -> str:
    if segment == "{}":
        return "item"
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", segment.lstrip("$")).lower()
