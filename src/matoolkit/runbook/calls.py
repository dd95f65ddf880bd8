"""A step and a member to the call that a worker is asked to make (rules R5, R7, R8, R9)."""

from matoolkit.errors import FunctionNotAllowed, NotAFunctionName, TemplateError
from matoolkit.records import record
from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import Json, Scope, resolve, uses
from matoolkit.runbook.values import kind_of


@record
class Call:
    """A function and its parameters, with nothing left to resolve."""

    function: str
    params: dict[str, Json]


def needed_variables(step: Step) -> tuple[str, ...]:
    """List the variables that a step needs, each once, in the order in which they stand."""
    found = [*uses(step.function), *uses(step.params)]
    return tuple(dict.fromkeys(use.variable for use in found))


def resolve_call(step: Step, scope: Scope, member_key: str | None) -> Call:
    """Resolve a step for a member, or for init with none; an error names variable, step and member."""
    try:
        params = {name: resolve(value, scope) for name, value in step.params.items()}
        return Call(_resolve_function(step, scope), params)
    except TemplateError as error:
        raise error.blamed_on(step.name, member_key) from None


def _resolve_function(step: Step, scope: Scope) -> str:
    function = resolve(step.function, scope)
    if not isinstance(function, str) or not function:
        found = "empty text" if function == "" else "null" if function is None else kind_of(function)
        raise NotAFunctionName(next(uses(step.function)).variable, found)
    if step.allowed_functions is not None:
        # The worker knows its functions by their own spelling, whatever the data's.
        spelled = {name.casefold(): name for name in step.allowed_functions}
        if function.casefold() not in spelled:
            raise FunctionNotAllowed(function, step.allowed_functions)
        return spelled[function.casefold()]
    return function
