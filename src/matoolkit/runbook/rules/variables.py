"""Templates: every variable is well written, and something supplies it (rule R10)."""

from collections.abc import Callable, Iterator

from matoolkit.runbook.rules.context import MAX_TEMPLATE, Check, Place, StepAt
from matoolkit.runbook.templates import SPECIAL_VARIABLES, Path, TemplateSyntaxProblem, Use, entries, parse_template

_BATCH_VARIABLES = tuple(name for name in SPECIAL_VARIABLES if name != "_member_key")
_SPECIALS = frozenset(SPECIAL_VARIABLES)


def templates_are_well_formed(check: Check) -> None:
    """Report braces that do not match or name nothing, and templates where none can be."""
    for at in check.steps:
        for path, text in at.texts():
            _check_template(check, path, text)
        for path, _ in entries(at.step.params, (*at.path, "params")):
            if "{{" in str(path[-1]):
                message = "a parameter's name cannot be a template"
                check.report("RB210", path, message, "templates go into values", key=True)


def _check_template(check: Check, path: Path, text: str) -> None:
    if len(text) > MAX_TEMPLATE:
        check.report("RB110", path, f"the text is {len(text):,} characters long; at most {MAX_TEMPLATE:,} are allowed")
        return
    try:
        parse_template(text)
    except TemplateSyntaxProblem as problem:
        check.report("RB210", path, f"malformed template: {problem}")


def outputs_can_be_used(check: Check) -> None:
    """Report outputs where no later step could use them, and names that outputs cannot have."""
    for at in check.steps:
        path = (*at.path, "output_params")
        if at.step.output_params and at.place is not Place.PHASE:
            message = f"'output_params' of {at.label} cannot be used by any step: it is in '{at.place.value}'"
            check.report("RB212", path, message, "remove the key", key=True)
        for variable in at.step.output_params:
            if variable.startswith("_") or "{" in variable or "}" in variable or variable != variable.strip():
                message = f"'{variable}' cannot be the name of an output"
                hint = "begin it with a letter, and leave out braces and spaces around it"
                check.report("RB214", (*path, variable), message, hint, key=True)


def outputs_can_be_told_apart(check: Check) -> None:
    """Warn of outputs whose names differ only by case: a template could mean either (rule R6)."""
    spelled: dict[str, str] = {}
    for at in check.steps:
        for variable in at.step.output_params if at.place is Place.PHASE else ():
            if (before := spelled.setdefault(variable.casefold(), variable)) != variable:
                message = f"there is an output '{before}' already, which differs from '{variable}' only by case"
                check.report("RB315", (*at.path, "output_params", variable), message, "write both alike", key=True)


def special_variables_exist(check: Check) -> None:
    """Report names that begin like special variables and are not: nothing can ever supply them."""
    for _, use in _uses(check, lambda _: True):
        if _is_unknown_special(use):
            hint = (
                check.suggestions.hint(use.variable, SPECIAL_VARIABLES) or f"there are {', '.join(SPECIAL_VARIABLES)}"
            )
            check.report("RB218", use.path, f"there is no special variable '{use.variable}'", hint)


def init_knows_no_member(check: Check) -> None:
    """Report member data in init and in rollbacks that only init uses; warn of it in those that both use."""
    hint = f"use {', '.join(_BATCH_VARIABLES)}"
    for _, use in _uses(check, check.knows_no_member):
        if use.variable.casefold() not in _BATCH_VARIABLES and not _is_unknown_special(use):
            check.report("RB211", use.path, f"'{use.variable}' is not known in init, which runs for no member", hint)
    for at, use in _uses(check, lambda at: _is_shared_with_init(check, at)):
        if use.variable.casefold() not in _BATCH_VARIABLES and not _is_unknown_special(use):
            message = f"rollback '{at.owner}' needs '{use.variable}', which is not known when init fails"
            check.report("RB311", use.path, message, "give init a rollback of its own")


def lists_stand_alone(check: Check) -> None:
    """Report multi-valued columns inside a longer text, or as the name of a function (rule R7)."""
    source = check.parts.data_source
    lists = {column.name.casefold() for column in source.multi_valued_columns} if source else set()
    for _, use in _uses(check, lambda _: True):
        folded = use.variable.casefold()
        if folded not in lists or folded in check.outputs:
            continue
        if use.path[-1] == "function":
            check.report("RB216", use.path, f"'{use.variable}' is a list and cannot name a function")
        elif not use.is_whole_value:
            message = f"'{use.variable}' is a list and cannot be written inside a longer text"
            check.report("RB216", use.path, message, f'let it be the whole value: "{{{{{use.variable}}}}}"')


def variables_are_supplied(check: Check) -> None:
    """Warn of names that are neither special, nor an output, nor a column, when the columns are known."""
    if check.columns is None or check.has_lost("phases", "steps", "output_params"):
        return
    supplied = (*SPECIAL_VARIABLES, *check.columns, *_output_names(check))
    known = frozenset(name.casefold() for name in supplied)
    for _, use in _uses(check, lambda at: not check.knows_no_member(at)):
        if use.variable.casefold() not in known and not _is_unknown_special(use):
            hint = check.suggestions.hint(use.variable, supplied)
            check.report("RB304", use.path, f"nothing supplies the variable '{use.variable}'", hint)


def outputs_are_made_before_they_are_used(check: Check) -> None:
    """Warn of steps that need an output which only they themselves or later steps make."""
    if check.has_lost("phases", "steps", "output_params", "offset"):
        return
    for at, use in _uses(check, lambda at: at.place is Place.PHASE):
        makers = _only_makers(check, use)
        if makers and _first_moment(check, makers) >= check.moment(at):
            maker = "the step itself makes it" if at in makers else f"{makers[0].label} makes it later"
            check.report("RB312", use.path, f"'{use.variable}' is not there yet: {maker}")


def rollbacks_do_not_need_what_failed(check: Check) -> None:
    """Warn of steps whose rollback needs an output that only the failed step itself, or a later one, makes."""
    if check.has_lost("phases", "steps", "output_params", "offset"):
        return
    latest: dict[str, tuple[tuple[int, int], str]] = {}
    for at, use in _uses(check, lambda at: at.place is Place.ROLLBACK):
        if makers := _only_makers(check, use):
            name = at.owner.casefold()
            latest[name] = max(latest.get(name, ((-1, -1), "")), (_first_moment(check, makers), use.variable))
    for at in check.steps:
        if at.place is not Place.PHASE or at.step.on_failure is None:
            continue
        moment, variable = latest.get(at.step.on_failure.casefold(), ((-1, -1), ""))
        if moment >= check.moment(at):
            message = f"rollback '{at.step.on_failure}' needs '{variable}', which is not made yet when {at.label} fails"
            hint = "give this step a rollback that does not need it"
            check.report("RB305", (*at.path, "on_failure"), message, hint)


def _uses(check: Check, wanted: Callable[[StepAt], bool]) -> Iterator[tuple[StepAt, Use]]:
    return ((at, use) for at in check.steps if wanted(at) for use in at.uses)


def _only_makers(check: Check, use: Use) -> list[StepAt]:
    """List the steps that make a variable, if no column could supply it instead."""
    folded = use.variable.casefold()
    return [] if folded in check.folded_columns else check.outputs.get(folded, [])


def _first_moment(check: Check, makers: list[StepAt]) -> tuple[int, int]:
    return min(check.moment(maker) for maker in makers)


def _is_shared_with_init(check: Check, at: StepAt) -> bool:
    users = check.rollback_users.get(at.owner.casefold(), set())
    return at.place is Place.ROLLBACK and users == {Place.INIT, Place.PHASE}


def _is_unknown_special(use: Use) -> bool:
    return use.variable.startswith("_") and use.variable.casefold() not in _SPECIALS


def _output_names(check: Check) -> tuple[str, ...]:
    return tuple(name for at in check.steps if at.place is Place.PHASE for name in at.step.output_params)


RULES = (
    templates_are_well_formed,
    outputs_can_be_used,
    outputs_can_be_told_apart,
    special_variables_exist,
    init_knows_no_member,
    lists_stand_alone,
    variables_are_supplied,
    outputs_are_made_before_they_are_used,
    rollbacks_do_not_need_what_failed,
)
