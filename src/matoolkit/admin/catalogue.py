"""The functions that a runbook can call: the built-in ones, and what workers have announced (rules R11 and W6)."""

import logging
from collections.abc import Iterable

import orjson
from pydantic import TypeAdapter, ValidationError

from matoolkit.domain.messages import AnnouncedParameter
from matoolkit.runbook.catalogue import BUILT_IN, Catalogue, Function, Parameter, ValueKind, catalogue_of
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Transaction
from matoolkit.store.catalogue import FunctionRow, known_functions
from matoolkit.store.runbooks import runbooks_by_id, runbooks_in_use

_KINDS: dict[str, ValueKind] = {
    **dict.fromkeys(("bool", "boolean", "switch", "switchparameter"), "true or false"),
    **dict.fromkeys(("str", "string"), "text"),
    **dict.fromkeys(("array", "list", "object[]", "string[]"), "a list"),
    **dict.fromkeys(("dict", "hashtable", "mapping"), "a mapping"),
}

_PARAMETERS = TypeAdapter(list[AnnouncedParameter])

log = logging.getLogger(__name__)


def known_catalogue(tx: Transaction) -> Catalogue:
    """Return the functions that workers are known to have; what one announces replaces the built-in of its name."""
    announced = [function for row in known_functions(tx) if (function := _function(row)) is not None]
    return {**BUILT_IN, **catalogue_of(*announced)}


def known_workers(tx: Transaction) -> list[str]:
    """Return the ids of workers that have announced themselves, or that a runbook in use names."""
    announced = {row.worker_id for row in known_functions(tx)}
    runbooks = (parse_runbook(row.yaml_content) for row in runbooks_by_id(tx, runbooks_in_use(tx)))
    return sorted(announced | {step.worker_id for runbook in runbooks for step in runbook.every_step()})


def function_of(name: str, parameters: Iterable[AnnouncedParameter]) -> Function:
    """Return a function as runbooks are checked against it."""
    return Function(
        name,
        tuple(
            Parameter(one.name, one.is_mandatory, one.is_secret, _KINDS.get(one.type.casefold(), "anything"))
            for one in parameters
        ),
    )


def announced_parameters(row: FunctionRow) -> list[AnnouncedParameter] | None:
    """Return the parameters of a function as its worker announced them, if that has a form that is known here."""
    try:
        return _PARAMETERS.validate_python(orjson.loads(row.parameters_json))
    except (ValidationError, orjson.JSONDecodeError) as error:
        # A bad announcement of a worker must not block publishing.
        log.warning("worker %s announced %s in a form unknown here: %s", row.worker_id, row.function_name, error)
        return None


def _function(row: FunctionRow) -> Function | None:
    parameters = announced_parameters(row)
    return None if parameters is None else function_of(row.function_name, parameters)
