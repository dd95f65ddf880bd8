"""A step and a member to the call that a worker is asked to make (rules R5, R7, R8, R9)."""

from matoolkit.errors import FunctionNotAllowed, NotAFunctionName, TemplateError
from matoolkit.records import record
from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import Json, Scope, compiled, uses
from matoolkit.runbook.values import kind_of


@record
class Call:
    """A function and its parameters, with nothing left to resolve."""

    function: str
    params: dict[str, Json]


class CallTemplate:
    """The call of a step, with its templates read once for all members."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._function = compiled(step.function)
        self._params = [(name, compiled(value)) for name, value in step.params.items()]
        # The worker knows its functions by their own spelling, whatever the data's.
        self._spelled = {name.casefold(): name for name in step.allowed_functions or ()}

    def resolve(self, scope: Scope, member_key: str | None) -> Call:
        """Resolve it for a member, or for init with none; an error names variable, step and member."""
        try:
            params = {name: resolve(scope) for name, resolve in self._params}
            return Call(self._function_name(scope), params)
        except TemplateError as error:
            raise error.blamed_on(self._step.name, member_key) from None

    def _function_name(self, scope: Scope) -> str:
        function = self._function(scope)
        if not isinstance(function, str) or not function:
            found = "empty text" if function == "" else "null" if function is None else kind_of(function)
            raise NotAFunctionName(next(uses(self._step.function)).variable, found)
        if self._step.allowed_functions is None:
            return function
        if function.casefold() not in self._spelled:
            raise FunctionNotAllowed(function, self._step.allowed_functions)
        return self._spelled[function.casefold()]
