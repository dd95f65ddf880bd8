"""Rules R6, R7: what a template means."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.errors import AmbiguousVariable, NotText, TemplateError, UnresolvedVariable
from matoolkit.runbook.templates import (
    SPECIAL_VARIABLES,
    Json,
    Scope,
    TemplateSyntaxProblem,
    compiled,
    parse_template,
    special_variables,
    uses,
)


def scope(data: dict[str, Json] | None = None, outputs: dict[str, Json] | None = None) -> Scope:
    return Scope({"_batch_id": 42}, outputs or {}, data or {})


def resolve(value: Json, scope: Scope) -> Json:
    return compiled(value)(scope)


def test_r6_spaces_around_the_name_do_not_count() -> None:
    assert resolve("{{ Name }}", scope({"Name": "Ada"})) == "Ada"


def test_r6_specials_come_before_outputs_before_data() -> None:
    both = scope({"_batch_id": 1, "Id": "column"}, {"_batch_id": 2, "Id": "output"})
    assert resolve("{{_batch_id}}", both) == 42
    assert resolve("{{Id}}", both) == "output"


def test_r6_the_exact_name_comes_before_one_of_another_case() -> None:
    assert resolve("{{upn}}", scope({"upn": "exact"}, {"UPN": "folded"})) == "exact"


def test_r6_another_case_will_do_if_it_is_unique() -> None:
    assert resolve("{{USERID}}", scope({"UserId": "u1"})) == "u1"
    with pytest.raises(AmbiguousVariable, match="UserId, userid"):
        resolve("{{USERID}}", scope({"UserId": "u1", "userid": "u2"}))


def test_r6_special_variables_have_the_values_the_rule_gives() -> None:
    t = datetime(2026, 3, 3, 20, tzinfo=UTC)
    specials = special_variables(
        batch_id=42, batch_start_time=t, runbook_name="move", runbook_version=3, member_key="ada"
    )
    assert specials == {
        "_batch_id": 42,
        "_batch_start_time": "2026-03-03T20:00:00Z",
        "_member_key": "ada",
        "_runbook_name": "move",
        "_runbook_version": 3,
    }
    assert set(specials) == set(SPECIAL_VARIABLES)


def test_r6_a_manual_batch_has_no_start_time_and_init_no_member() -> None:
    specials = special_variables(
        batch_id=42, batch_start_time=None, runbook_name="move", runbook_version=3, member_key=None
    )
    assert specials["_batch_start_time"] is None
    assert "_member_key" not in specials


@pytest.mark.parametrize("value", [None, True, 7, 1.5, "x", ["a", "b"], {"a": 1}])
def test_r7_a_value_that_is_one_template_keeps_its_type(value: Json) -> None:
    assert resolve("{{Value}}", scope({"Value": value})) == value
    assert type(resolve("{{Value}}", scope({"Value": value}))) is type(value)


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (7, "7"), (1.5, "1.5"), ("x", "x"), ("", "")])
def test_r7_inside_a_longer_text_a_value_is_written_as_text(value: Json, text: str) -> None:
    assert resolve("<{{Value}}>", scope({"Value": value})) == f"<{text}>"


@pytest.mark.parametrize(("value", "what"), [(None, "null"), (["a"], "a list"), ({"a": 1}, "a mapping")])
def test_r7_null_lists_and_mappings_inside_a_longer_text_are_errors_that_name_the_variable(
    value: Json, what: str
) -> None:
    with pytest.raises(NotText, match=f"'Value' is {what}"):
        resolve("<{{Value}}>", scope({"Value": value}))


def test_r7_params_may_nest() -> None:
    value: Json = {"a": ["{{X}}", {"b": "{{X}}!"}], "c": 1, "d": None}
    assert resolve(value, scope({"X": 5})) == {"a": [5, {"b": "5!"}], "c": 1, "d": None}


def test_r9_a_name_that_nobody_supplies_is_an_error_with_the_nearest_one() -> None:
    with pytest.raises(UnresolvedVariable) as unresolved:
        resolve("{{TargetUpm}}", scope({"TargetUpn": "x"}))
    assert unresolved.value.variable == "TargetUpm"
    assert unresolved.value.hint == "did you mean 'TargetUpn'?"


def test_a_value_needs_the_variables_in_it_in_order_and_says_where() -> None:
    found = list(uses({"a": "{{X}}", "b": ["{{Y}} and {{Z}}"]}))
    assert [(use.variable, use.path, use.is_whole_value) for use in found] == [
        ("X", ("a",), True),
        ("Y", ("b", 0), False),
        ("Z", ("b", 0), False),
    ]


@pytest.mark.parametrize(
    "text", ["{{", "}}", "{{a", "a}}", "{{}}", "{{ }}", "{{a}}}}", "{{{a}}", "{{a{{b}}", "{{a\nb}}"]
)
def test_malformed_templates_are_refused(text: str) -> None:
    with pytest.raises(TemplateSyntaxProblem):
        parse_template(text)


def test_single_braces_are_text() -> None:
    assert resolve('{"a": 1} {b}', scope()) == '{"a": 1} {b}'


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON_VALUES)
def test_what_a_variable_holds_is_never_read_as_a_template(value: Json) -> None:
    hostile = scope({"Value": value, "Other": "{{Value}} {{_batch_id}} ${PATH} `id` %s {0}"})
    assert json.dumps(resolve("{{Value}}", hostile)) == json.dumps(value)
    assert resolve("[{{Other}}]", hostile) == "[{{Value}} {{_batch_id}} ${PATH} `id` %s {0}]"


@given(st.text(), st.dictionaries(st.text(), JSON_VALUES, max_size=4))
def test_resolving_any_text_over_any_data_gives_a_value_or_a_template_error(text: str, data: dict[str, Json]) -> None:
    with suppress(TemplateError, TemplateSyntaxProblem):
        resolve(text, scope(data))
