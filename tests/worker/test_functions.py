"""The functions that a worker has are those that runbooks are checked against."""

import re

from matoolkit.runbook.catalogue import BUILT_IN, Function, Parameter, ValueKind
from matoolkit.worker.functions import MODULES, built_in
from matoolkit.worker.functions.meanings import MEANINGS
from matoolkit.worker.needs import NeedKind
from matoolkit.worker.registry import functions_of
from matoolkit.worker.signature import Kind

KINDS: dict[str, ValueKind] = {
    Kind.TEXT: "text",
    Kind.FLAG: "true or false",
    Kind.INTEGER: "a whole number",
    Kind.LIST: "a list",
    Kind.MAPPING: "a mapping",
    Kind.ANYTHING: "anything",
}


def test_the_registry_is_the_catalogue_that_the_linter_knows() -> None:
    """The same names, parameters in the same order, mandatory, secret and kind."""
    registered = {
        one.name.casefold(): Function(
            one.name,
            tuple(
                Parameter(parameter.name, parameter.is_mandatory, parameter.is_secret, KINDS[parameter.type])
                for parameter in one.parameters
            ),
        )
        for one in built_in()
    }
    assert registered == dict(BUILT_IN)


def test_every_function_says_in_a_sentence_what_it_does() -> None:
    for one in built_in():
        assert re.fullmatch(r"[A-Z].{20,110}\.", one.doc), one.name


def test_passwords_and_nothing_else_are_secret() -> None:
    secret = {(one.name, name) for one in built_in() for name in [p.name for p in one.parameters if p.is_secret]}
    assert {name for _, name in secret} == {"Password"}
    takes = {one.name for one in built_in() for parameter in one.parameters if parameter.name == "Password"}
    assert {name for name, _ in secret} == takes


def test_every_module_of_functions_is_registered() -> None:
    assert sum(len(list(functions_of(module))) for module in MODULES) == len(built_in())


def test_the_reference_speaks_of_every_function() -> None:
    assert set(MEANINGS) == {one.name for one in built_in()}


def test_every_function_says_what_the_application_needs_for_it_and_who_says_so() -> None:
    for one in built_in():
        assert one.needs, one.name
        assert all(need.any_of and need.source for need in one.needs), one.name
        kinds = {need.kind for need in one.needs}
        assert (NeedKind.EXCHANGE in kinds) == (NeedKind.ROLE in kinds), f"{one.name}: Exchange wants both"
