"""The functions of a worker. Only what is registered here runs (rule W3).

`@function("New-EntraUser")` gives a typed Python function the name by which jobs call it, and changes nothing else
about it; it can be called once a `Registry` holds it.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, TypeVar

from matoolkit.domain.messages import AnnouncedFunction
from matoolkit.errors import did_you_mean
from matoolkit.runbook.secrecy import ALWAYS_SECRET
from matoolkit.runbook.templates import Json
from matoolkit.worker.context import Context
from matoolkit.worker.conversion import arguments
from matoolkit.worker.failures import FunctionFailed, UnknownFunction
from matoolkit.worker.needs import Need, lacking
from matoolkit.worker.signature import Parameter, parameters_of

Call = Callable[..., Any]
CallT = TypeVar("CallT", bound=Call)

_MARK = "__worker_function__"


@dataclass(frozen=True)
class Function:
    """A function that jobs can call."""

    name: str
    parameters: tuple[Parameter, ...]
    doc: str
    call: Call
    needs: tuple[Need, ...] = ()

    def run(self, context: Context, given: Mapping[str, Json]) -> Any:
        """Check and convert a job's parameters, and call the function with them."""
        try:
            return self.call(context, **arguments(self.name, self.by_name, given))
        except FunctionFailed as refusal:
            if refusal.refused_by is not None:
                refusal.message += lacking(self.needs, refusal.refused_by)
            raise

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        """The parameters by their folded names."""
        return {one.name.casefold(): one for one in self.parameters}

    @cached_property
    def secret_names(self) -> frozenset[str]:
        """The folded names under which its parameters hold secrets."""
        return ALWAYS_SECRET.union(one.name.casefold() for one in self.parameters if one.is_secret)

    def announced(self) -> AnnouncedFunction:
        """Return the function as the catalogue knows it."""
        return AnnouncedFunction(self.name, tuple(one.announced() for one in self.parameters))


def function(name: str, *, needs: Sequence[Need] = ()) -> Callable[[CallT], CallT]:
    """Name a Python function for jobs; its first parameter is the context, the others are the function's own.

    `needs` is what the worker's application must be allowed, all of it.
    """

    def mark(call: CallT) -> CallT:
        doc = (inspect.getdoc(call) or "").strip()
        first_line = doc.splitlines()[0] if doc else ""
        setattr(call, _MARK, Function(name, parameters_of(call), first_line, call, tuple(needs)))
        return call

    return mark


class Registry:
    """Functions by name, compared without regard to case."""

    def __init__(self, *calls: Call) -> None:
        self._functions: dict[str, Function] = {}
        for call in calls:
            self.register(call)

    def register(self, call: Call | Function) -> None:
        """Add a function that has a name; one name stands for one function."""
        found = call if isinstance(call, Function) else getattr(call, _MARK, None)
        if found is None:
            raise TypeError(f"{getattr(call, '__name__', call)} has no name for jobs: decorate it with @function")
        key = found.name.casefold()
        if key in self._functions:
            raise ValueError(f"there is a function {self._functions[key].name} already")
        self._functions[key] = found

    def register_module(self, module: ModuleType) -> int:
        """Add all functions that a module defines, and say how many there were."""
        found = list(functions_of(module))
        for one in found:
            self.register(one)
        return len(found)

    def find(self, name: str) -> Function:
        """Return the function of a name; a name that is not registered is a failure."""
        found = self._functions.get(name.casefold())
        if found is None:
            hint = did_you_mean(name, [one.name for one in self])
            message = f"this worker has no function {name[:200]!r}" + (f"; {hint}" if hint else "")
            raise UnknownFunction(message)
        return found

    def spelled(self, name: str) -> str | None:
        """Return the name of a function as it is registered; nothing if it is not."""
        found = self._functions.get(name.casefold())
        return None if found is None else found.name

    def catalogue(self) -> tuple[AnnouncedFunction, ...]:
        """Return all functions as they are announced (rule W6)."""
        return tuple(one.announced() for one in self)

    def __iter__(self) -> Iterator[Function]:
        return iter(sorted(self._functions.values(), key=lambda one: one.name.casefold()))

    def __len__(self) -> int:
        return len(self._functions)


def functions_of(module: ModuleType) -> Iterable[Function]:
    """Find what a module decorates with `@function`; what it imports from elsewhere is not its own."""
    for value in vars(module).values():
        found = getattr(value, _MARK, None)
        if isinstance(found, Function) and getattr(value, "__module__", None) == module.__name__:
            yield found
