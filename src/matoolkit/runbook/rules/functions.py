"""Functions exist, get the parameters they need, and no password in clear (rules R5, R10, R11, W8)."""

from collections.abc import Iterator

from matoolkit.runbook.catalogue import Function
from matoolkit.runbook.rules.context import Check, StepAt
from matoolkit.runbook.secrecy import REFERENCE, is_secret_place, secret_names
from matoolkit.runbook.templates import (
    Json,
    Path,
    TemplateSyntaxProblem,
    Variable,
    entries,
    is_templated,
    parse_template,
)
from matoolkit.runbook.values import kind_of

_HINTS_FOR_KIND = {"true or false": "write true or false", "text": 'a template has two braces: "{{Name}}"'}


def a_function_from_data_is_limited(check: Check) -> None:
    """Warn of a function name that only data decides; report one that its own step forbids (rule R5)."""
    for at in check.steps:
        step, path = at.step, (*at.path, "function")
        if _is_template(step.function):
            if step.allowed_functions is None and check.is_sound((*at.path, "allowed_functions")):
                message = f"the function of {at.label} comes from data, and nothing limits it"
                check.report("RB306", path, message, "list what it may be in 'allowed_functions'")
        elif step.allowed_functions is not None and check.is_sound(path):
            _check_needless_limit(check, at, step.allowed_functions)


def functions_are_known(check: Check) -> None:
    """Warn of functions that no worker is known to have (rule R11)."""
    known = [function.name for function in check.catalogue.values()]
    for at in check.steps:
        for path, name in _function_names(check, at):
            if name.casefold() not in check.catalogue:
                hint = check.suggestions.hint(name, known) or "`matoolkit runbook functions` lists the built-in ones"
                check.report("RB307", path, f"no worker is known to have a function '{name}'", hint)


def parameters_fit_the_function(check: Check) -> None:
    """Warn of mandatory parameters that are missing, and of parameters the function does not have (rule R11)."""
    for at in check.steps:
        if not check.is_sound((*at.path, "params")):
            continue
        for function in _known_functions(check, at):
            given = {name.casefold() for name in at.step.params}
            mandatory = [parameter.name for parameter in function.parameters if parameter.is_mandatory]
            if missing := [name for name in mandatory if name.casefold() not in given]:
                message = f"function '{function.name}' needs {', '.join(missing)}"
                path = (*at.path, "params") if at.step.params else (*at.path, "function")
                check.report("RB308", path, message, f"add '{missing[0]}:' to 'params'")
            for name in at.step.params:
                if function.parameter(name) is None and "{{" not in name:
                    message = f"function '{function.name}' has no parameter '{name}'"
                    hint = check.suggestions.hint(name, [parameter.name for parameter in function.parameters])
                    check.report("RB309", (*at.path, "params", name), message, hint, key=True)


def parameters_are_given_once(check: Check) -> None:
    """Warn of parameters that appear twice in different cases: functions take them for the same."""
    for at in check.steps:
        seen: set[str] = set()
        for name in at.step.params:
            if name.casefold() in seen:
                message = f"the parameter '{name}' is given twice, in different spellings"
                check.report("RB316", (*at.path, "params", name), message, "remove one of the two", key=True)
            seen.add(name.casefold())


def parameters_have_the_right_kind(check: Check) -> None:
    """Warn of values written out that the function cannot take, such as `yes` for true or `{Name}` for a template."""
    for at in check.steps:
        for function in _known_functions(check, at):
            for name, value in at.step.params.items():
                parameter = function.parameter(name)
                if parameter is None or parameter.is_secret or parameter.takes(value):
                    continue
                message = f"'{name}' of '{function.name}' takes {parameter.kind}, and this is {kind_of(value)}"
                check.report("RB317", (*at.path, "params", name), message, _HINTS_FOR_KIND.get(parameter.kind))


def secrets_are_referred_to(check: Check) -> None:
    """Report secrets written in the runbook, and warn of those in rows; no text is repeated (rules R10, W8)."""
    for at in check.steps:
        names = secret_names(at.step, check.secret_parameters)
        for path, value in entries(at.step.params, (*at.path, "params")):
            if not is_secret_place(path[-1:], names):
                continue
            if _is_written_out(value):
                message = f"'{path[-1]}' of {at.label} is written in the runbook"
                check.report("RB213", path, message, "write secret:NAME, which the worker looks up")
            elif isinstance(value, str) and "{{" in value:
                _warn_of_secret_from_data(check, at, path, value)


def _warn_of_secret_from_data(check: Check, at: StepAt, path: Path, value: str) -> None:
    if value.startswith(REFERENCE):
        message = f"data decides which secret '{path[-1]}' of {at.label} is, and the step will fail"
        check.report("RB318", path, message, "write the name of the secret out")
    else:
        hint = "write secret:NAME, which only the worker looks up"
        check.report("RB318", path, f"'{path[-1]}' of {at.label} comes from data", hint)


def _check_needless_limit(check: Check, at: StepAt, allowed: tuple[str, ...]) -> None:
    path = (*at.path, "allowed_functions")
    if at.step.function.casefold() in {name.casefold() for name in allowed}:
        message = "'allowed_functions' has no effect: the function is written out"
        check.report("RB310", path, message, "remove the key", key=True)
    else:
        message = f"function '{at.step.function}' is not one of the step's own 'allowed_functions'"
        check.report("RB217", (*at.path, "function"), message)


def _function_names(check: Check, at: StepAt) -> Iterator[tuple[Path, str]]:
    """List the functions that a step may call, as far as the runbook tells."""
    if not _is_template(at.step.function):
        if check.is_sound((*at.path, "function")):
            yield (*at.path, "function"), at.step.function
        return
    for index, name in enumerate(at.step.allowed_functions or ()):
        yield (*at.path, "allowed_functions", index), name


def _known_functions(check: Check, at: StepAt) -> Iterator[Function]:
    for _, name in _function_names(check, at):
        if function := check.catalogue.get(name.casefold()):
            yield function


def _is_template(text: str) -> bool:
    try:
        return is_templated(text)
    except TemplateSyntaxProblem:
        return True


def _is_written_out(value: Json) -> bool:
    match value:
        case None:
            return False
        case str() if value.startswith(REFERENCE):
            return not value.removeprefix(REFERENCE).strip()
        case str():
            try:
                parts = parse_template(value)
            except TemplateSyntaxProblem:
                return True
            return not (len(parts) == 1 and isinstance(parts[0], Variable))
        case _:
            return True


RULES = (
    a_function_from_data_is_limited,
    functions_are_known,
    parameters_fit_the_function,
    parameters_are_given_once,
    parameters_have_the_right_kind,
    secrets_are_referred_to,
)
