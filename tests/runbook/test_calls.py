"""Rules R5, R9: from a step and a member to a call."""

import pytest

from matoolkit.errors import FunctionNotAllowed, NotAFunctionName, UnresolvedVariable
from matoolkit.runbook.calls import Call, CallTemplate
from matoolkit.runbook.model import Step
from matoolkit.runbook.templates import Json, Scope


def step(function: str = "New-EntraUser", **more: object) -> Step:
    return Step.model_validate({"name": "create", "worker_id": "w", "function": function, **more})


def scope(**data: Json) -> Scope:
    return Scope({}, {}, data)


def resolve_call(step: Step, scope: Scope, member_key: str | None) -> Call:
    return CallTemplate(step).resolve(scope, member_key)


def test_a_step_resolves_to_a_function_and_its_parameters() -> None:
    call = resolve_call(step(params={"UserId": "{{Id}}", "Tags": ["{{Id}}"]}), scope(Id="u1"), "ada")
    assert call == Call("New-EntraUser", {"UserId": "u1", "Tags": ["u1"]})


def test_r7_the_function_is_a_template_too() -> None:
    assert resolve_call(step("New-{{Kind}}"), scope(Kind="EntraUser"), "ada").function == "New-EntraUser"


def test_r5_a_templated_function_may_only_become_an_allowed_one_in_its_own_spelling() -> None:
    limited = step("{{Fn}}", allowed_functions=["Add-EntraGroupMember"])
    assert resolve_call(limited, scope(Fn="add-entragroupmember"), "ada").function == "Add-EntraGroupMember"
    with pytest.raises(FunctionNotAllowed, match="Remove-EntraUser"):
        resolve_call(limited, scope(Fn="Remove-EntraUser"), "ada")


@pytest.mark.parametrize(
    ("value", "what"), [(None, "null"), (5, "a number"), (["New-EntraUser"], "a list"), ("", "empty text")]
)
def test_a_function_must_resolve_to_a_name(value: Json, what: str) -> None:
    with pytest.raises(NotAFunctionName, match=f"'Fn' is {what} and cannot name a function"):
        resolve_call(step("{{Fn}}"), scope(Fn=value), "ada")


def test_r9_an_error_names_variable_step_and_member() -> None:
    with pytest.raises(UnresolvedVariable) as unresolved:
        resolve_call(step(params={"UserId": "{{Nobody}}"}), scope(), "ada@example.com")
    for word in ("Nobody", "create", "ada@example.com"):
        assert word in unresolved.value.message
    assert unresolved.value.message == str(unresolved.value)


def test_r9_an_error_in_init_names_no_member() -> None:
    with pytest.raises(UnresolvedVariable, match=r"^step 'create': variable 'Nobody'"):
        resolve_call(step(params={"UserId": "{{Nobody}}"}), scope(), None)
