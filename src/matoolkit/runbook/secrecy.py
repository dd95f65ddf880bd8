"""What is secret in a runbook: which parameters, and so which variables (rule W8).

A variable that any step passes to a secret parameter is secret in the whole runbook, wherever else it is used.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from matoolkit.records import record
from matoolkit.runbook.catalogue import Function
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.templates import SPECIAL_VARIABLES, Path, is_templated, texts, uses

# The beginning of a value that names a secret: `secret:initial-password`.
REFERENCE = "secret:"
# The folded names of parameters that are secret in every function, at any depth.
ALWAYS_SECRET = frozenset({"password"})

# The folded names of the secret parameters of functions, by the functions' folded names.
SecretParameters: TypeAlias = Mapping[str, frozenset[str]]


def secret_parameters(functions: Iterable[Function]) -> SecretParameters:
    """Return what is secret in functions; if several share a name, what is secret in any of them."""
    known: dict[str, frozenset[str]] = {}
    for function in functions:
        secret = {one.name.casefold() for one in function.parameters if one.is_secret}
        if secret:
            known[function.name.casefold()] = known.get(function.name.casefold(), frozenset()) | secret
    return known


def secret_names(step: Step, known: SecretParameters) -> frozenset[str]:
    """Return the folded names under which a step's parameters are secret, in any function that it may call."""
    if "{{" not in step.function:
        return ALWAYS_SECRET | known.get(step.function.casefold(), frozenset())
    called = known if step.allowed_functions is None else {name.casefold() for name in step.allowed_functions}
    return ALWAYS_SECRET.union(*(known.get(name, ()) for name in called))


def is_secret_place(path: Path, names: frozenset[str]) -> bool:
    """Whether the value at a path of a step's parameters is secret: everything below a secret name is."""
    return any(isinstance(part, str) and part.casefold() in names for part in path)


@record
class Secrets:
    """What is secret in a version of a runbook: parameters of its functions, and its variables, folded."""

    parameters: SecretParameters
    variables: frozenset[str]

    def places(self, step: Step) -> frozenset[Path]:
        """Return the places in a step's parameters with templates whose values must not be stored."""
        return frozenset(path for path, text in texts(step.params) if self._hides(step, path, text))

    def fields(self, step: Step) -> frozenset[str]:
        """Return the folded names of the fields of a step's result that become secret variables."""
        outputs = step.output_params.items()
        return frozenset(field.casefold() for variable, field in outputs if variable.casefold() in self.variables)

    def _hides(self, step: Step, path: Path, text: str) -> bool:
        if not is_templated(text):
            return False
        is_used = any(use.variable.casefold() in self.variables for use in uses(text))
        return is_used or is_secret_place(path, secret_names(step, self.parameters))


NO_SECRETS = Secrets({}, frozenset())


def secrets_of(runbook: Runbook, known: SecretParameters) -> Secrets:
    """Find what is secret in a runbook; the special variables never are."""
    return Secrets(known, frozenset(_variables(runbook, known)) - set(SPECIAL_VARIABLES))


def _variables(runbook: Runbook, known: SecretParameters) -> Iterator[str]:
    for step in runbook.every_step():
        names = secret_names(step, known)
        for path, text in texts(step.params):
            if is_secret_place(path, names):
                yield from (use.variable.casefold() for use in uses(text))
