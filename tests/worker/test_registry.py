"""W3: only registered names run, with parameters that fit."""

from typing import Any

import pytest

from matoolkit.domain.messages import AnnouncedFunction, AnnouncedParameter
from matoolkit.worker import Context, InvalidParameters, Registry, Secret, function
from matoolkit.worker.failures import UnknownFunction


@function("Add-EntraGroupMember")
def add_member(context: Context, group_id: str, user_id: str) -> bool:
    """Add somebody to a group.

    More about it.
    """
    return (group_id, user_id) == ("g", "u")


@function("Take-Everything")
def take_everything(
    context: Context,
    text: str = "",
    *,
    flag: bool = False,
    count: int = 0,
    share: float = 0.0,
    names: list[str] | None = None,
    attributes: dict[str, Any] | None = None,
    password: Secret | None = None,
    expected: str | list[str] | None = None,
    anything: Any = "nothing",
) -> dict[str, Any]:
    """Return what it was given."""
    given = dict(locals())
    del given["context"]
    return given


@function("Need-Null")
def need_null(context: Context, value: str | None, thing: Any) -> list[Any]:
    """Take null where it says so."""
    return [value, thing]


REGISTRY = Registry(add_member, take_everything, need_null)
NOBODY: Any = None


def run(name: str, **given: Any) -> Any:
    return REGISTRY.find(name).run(NOBODY, given)


def taken(**given: Any) -> Any:
    (name,) = given
    return run("Take-Everything", **given)[name.casefold()]


def test_w3_names_of_functions_and_parameters_are_compared_without_regard_to_case() -> None:
    assert run("add-entragroupmember", groupid="g", USERID="u") is True


@pytest.mark.parametrize("name", ["add_member", "run", "Add-EntraGroupMembers", "", "os.system", "Take\nEverything"])
def test_w3_a_name_that_is_not_registered_does_not_run(name: str) -> None:
    with pytest.raises(UnknownFunction):
        REGISTRY.find(name)


def test_w3_the_nearest_name_is_suggested() -> None:
    with pytest.raises(UnknownFunction, match="did you mean 'Add-EntraGroupMember'"):
        REGISTRY.find("Add-EntraGroupMembr")


def test_w3_all_that_is_wrong_with_parameters_is_said_at_once() -> None:
    with pytest.raises(InvalidParameters) as caught:
        run("Add-EntraGroupMember", UserId=["u"], UserIds="u")
    assert caught.value.problems == (
        "UserId has to be text, and is a list",
        "there is no parameter 'UserIds', did you mean 'UserId'?",
        "GroupId is missing",
    )


def test_w3_a_mandatory_parameter_may_not_be_null() -> None:
    with pytest.raises(InvalidParameters, match="UserId is null, and it is mandatory"):
        run("Add-EntraGroupMember", GroupId="g", UserId=None)


def test_w3_a_parameter_given_in_two_spellings_is_refused() -> None:
    with pytest.raises(InvalidParameters, match="UserId is given twice"):
        run("Add-EntraGroupMember", GroupId="g", UserId="u", userid="x")


def test_w3_null_leaves_an_optional_parameter_at_its_default() -> None:
    assert taken(Anything=None) is None
    assert taken(Flag=None) is False
    assert run("Need-Null", Value=None, Thing=None) == [None, None]


@pytest.mark.parametrize(
    ("given", "arrives"),
    [
        ({"Text": "5"}, "5"),
        ({"Text": 5}, "5"),
        ({"Text": True}, "true"),
        ({"Flag": "True"}, True),
        ({"Flag": " false "}, False),
        ({"Count": "5"}, 5),
        ({"Count": " -5 "}, -5),
        ({"Count": 5.0}, 5),
        ({"Share": "0.5"}, 0.5),
        ({"Share": 1}, 1.0),
        ({"Names": ["a"]}, ["a"]),
        ({"Attributes": {"a": 1}}, {"a": 1}),
        ({"Password": "p"}, "p"),
        ({"Expected": ["a"]}, ["a"]),
        ({"Expected": "a"}, "a"),
        ({"Expected": 5}, "5"),
        ({"Anything": {"a": [1]}}, {"a": [1]}),
    ],
)
def test_w3_a_value_that_a_template_made_text_of_is_understood(given: dict[str, Any], arrives: object) -> None:
    value = taken(**given)
    assert value == arrives
    assert type(value) is type(arrives)


@pytest.mark.parametrize(
    "given",
    [
        {"Flag": "yes"},
        {"Flag": 1},
        {"Count": "5.5"},
        {"Count": 5.5},
        {"Count": True},
        {"Count": "9" * 30},
        {"Count": "\u0665"},
        {"Count": ""},
        {"Share": "nan"},
        {"Share": "1e999"},
        {"Share": True},
        {"Names": "a;b"},
        {"Attributes": ["a"]},
        {"Text": {"a": 1}},
        {"Expected": {"a": 1}},
    ],
)
def test_w3_any_other_value_is_refused_without_being_repeated(given: dict[str, Any]) -> None:
    ((name, value),) = given.items()
    with pytest.raises(InvalidParameters, match=f"{name} has to be") as caught:
        taken(**given)
    assert not (isinstance(value, str) and value and value in str(caught.value))


def test_w6_the_catalogue_says_what_the_signatures_say() -> None:
    by_name = {one.name: one for one in REGISTRY.catalogue()}
    assert by_name["Add-EntraGroupMember"] == AnnouncedFunction(
        "Add-EntraGroupMember",
        (
            AnnouncedParameter("GroupId", "string", is_mandatory=True),
            AnnouncedParameter("UserId", "string", is_mandatory=True),
        ),
    )
    assert [(one.name, one.type, one.is_mandatory, one.is_secret) for one in by_name["Take-Everything"].parameters] == [
        ("Text", "string", False, False),
        ("Flag", "boolean", False, False),
        ("Count", "integer", False, False),
        ("Share", "number", False, False),
        ("Names", "list", False, False),
        ("Attributes", "mapping", False, False),
        ("Password", "string", False, True),
        ("Expected", "any", False, False),
        ("Anything", "any", False, False),
    ]
    assert REGISTRY.find("Add-EntraGroupMember").doc == "Add somebody to a group."


def test_w3_one_name_stands_for_one_function() -> None:
    with pytest.raises(ValueError, match="Add-EntraGroupMember already"):
        REGISTRY.register(add_member)


def test_w3_only_what_has_a_name_is_registered() -> None:
    with pytest.raises(TypeError, match="decorate it"):
        Registry(run)


def test_w5_a_function_whose_parameters_no_job_could_give_is_refused() -> None:
    def typeless(context, value): ...  # type: ignore[no-untyped-def]

    def odd(context: Context, value: set[str]) -> None: ...

    def catching_all(context: Context, **values: str) -> None: ...

    def without_context() -> None: ...

    refused: list[tuple[Any, str]] = [
        (typeless, "value needs a type"),
        (odd, "type that no job can hold"),
        (catching_all, "plain one"),
        (without_context, "needs a context"),
    ]
    for call, why in refused:
        with pytest.raises(TypeError, match=why):
            function("Do-It")(call)
