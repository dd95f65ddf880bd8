"""Makes the call for a worker from a step and a member (rules R5, R7, R8, R9, W8)."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from matoolkit.errors import FunctionNotAllowed, NotAFunctionName, SecretFromData, TemplateError
from matoolkit.records import record
from matoolkit.runbook.model import Step
from matoolkit.runbook.secrecy import NO_SECRETS, REFERENCE, Secrets
from matoolkit.runbook.templates import (
    SPECIAL_VARIABLES,
    Json,
    Path,
    Scope,
    compiled,
    is_templated,
    texts,
    uses,
)
from matoolkit.runbook.values import kind_of


@record
class Call:
    """A function and its parameters, with nothing left to resolve."""

    function: str
    params: dict[str, Json]


class CallTemplate:
    """The call of a step, with its templates read once for all members."""

    def __init__(self, step: Step, secrets: Secrets = NO_SECRETS) -> None:
        self._step = step
        self._function = compiled(step.function)
        self._params = [(name, compiled(value)) for name, value in step.params.items()]
        # The worker knows its functions by their own spelling, whatever the data's.
        self._spelled = {name.casefold(): name for name in step.allowed_functions or ()}
        self._secret_places = secrets.places(step)
        self.secret_fields = secrets.fields(step)

    @property
    def has_secrets(self) -> bool:
        """Whether data brings secrets into its parameters."""
        return bool(self._secret_places)

    def resolve(self, scope: Scope, member_key: str | None) -> Call:
        """Resolve it for a member, or for init with none; an error names variable, step and member."""
        try:
            params = {name: resolve(scope) for name, resolve in self._params}
            return Call(self._function_name(scope), params)
        except TemplateError as error:
            raise error.blamed_on(self._step.name, member_key) from None

    def refuse_references(self, params: dict[str, Json], member_key: str | None) -> None:
        """Refuse parameters in which data names a secret: only the runbook may name one (rule W8)."""

        def refused(_: Path, written: str, given: Json) -> Json:
            if is_templated(written) and any(text.startswith(REFERENCE) for _, text in texts(given)):
                raise SecretFromData(next(uses(written)).variable).blamed_on(self._step.name, member_key)
            return given

        _each_text(self._step.params, params, refused)

    def kept(self, params: dict[str, Json]) -> dict[str, Json]:
        """Return parameters as they are stored: secret values as the templates that they come from (rule W8)."""
        hidden: dict[str, Json] = _each_text(
            self._step.params,
            params,
            lambda path, written, given: written if path in self._secret_places else given,
        )
        return hidden

    def completed(self, kept: dict[str, Json], scope: Scope, member_key: str | None) -> dict[str, Json]:
        """Return parameters as they were sent before, but resolve those that were stored as templates again (rule W8).

        Only the template that the runbook has in that place counts as one; text from a row never does.
        """
        try:
            params: dict[str, Json] = _each_text(
                self._step.params,
                kept,
                lambda _, written, given: compiled(written)(scope) if given == written else given,
            )
        except TemplateError as error:
            raise error.blamed_on(self._step.name, member_key) from None
        return params

    def secret_values(self, scope: Scope) -> Iterator[Json]:
        """List values from data in secret places, as a whole and by variable; unresolved ones are left out."""
        for path, text in texts(self._step.params):
            if path in self._secret_places:
                named = [use.variable for use in uses(text) if use.variable.casefold() not in SPECIAL_VARIABLES]
                with suppress(TemplateError):
                    yield compiled(text)(scope)
                for name in named:
                    with suppress(TemplateError):
                        yield scope[name]

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


def _each_text(written: Json, given: Any, change: Callable[[Path, str, Json], Json], path: Path = ()) -> Any:
    """Rebuild a resolved value of the runbook: `change` sees each text and what it was resolved to."""
    match written:
        case str():
            return change(path, written, given)
        case list():
            pairs = enumerate(zip(written, given, strict=True))
            return [_each_text(item, made, change, (*path, index)) for index, (item, made) in pairs]
        case dict():
            return {key: _each_text(item, given[key], change, (*path, key)) for key, item in written.items()}
        case _:
            return given
