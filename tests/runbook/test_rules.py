"""Rules R10 and R11, and what else keys mean together."""

from typing import Any

import pytest
import yaml

from matoolkit.runbook.catalogue import BUILT_IN, Function, Parameter, catalogue_of
from matoolkit.runbook.parse import lint_runbook

from .documents import codes, findings, good, phase, step


def with_steps(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**good(), "phases": [phase("cutover", "T-0", *steps)], **more}


def uses(*values: str) -> dict[str, Any]:
    """Build a step that needs what the values need."""
    return step(params={"UserId": values[0], "NewUserPrincipalName": values[-1]})


@pytest.mark.parametrize(
    "variable", ["_batch_id", "_batch_start_time", "_runbook_name", "_runbook_version", "_BATCH_ID"]
)
def test_r10_init_may_use_specials(variable: str) -> None:
    assert codes({**good(), "init": [uses(f"{{{{{variable}}}}}")]}) == []


@pytest.mark.parametrize("variable", ["Upn", "_member_key", "Nobody"])
def test_r10_init_may_use_nothing_else(variable: str) -> None:
    assert set(codes({**good(), "init": [uses(f"{{{{{variable}}}}}")]})) == {"RB211"}


def test_r10_a_rollback_that_only_init_uses_may_use_only_specials() -> None:
    document = {
        **good(),
        "init": [uses("{{_batch_id}}") | {"on_failure": "undo"}],
        "rollbacks": {"undo": [uses("{{Upn}}")]},
    }
    assert set(codes(document)) == {"RB211"}


def test_r10_a_rollback_that_phases_use_may_use_member_data() -> None:
    document = with_steps(step(on_failure="undo"), rollbacks={"undo": [uses("{{Upn}}")]})
    assert codes(document) == []


def test_r10_a_rollback_that_both_use_is_warned_of() -> None:
    document = with_steps(step(on_failure="undo"), rollbacks={"undo": [uses("{{Upn}}")]})
    document["init"] = [uses("{{_batch_id}}") | {"on_failure": "undo"}]
    assert set(codes(document)) == {"RB311"}


@pytest.mark.parametrize("place", ["init", "on_member_removed", "rollbacks"])
def test_r10_outputs_outside_phases_are_errors(place: str) -> None:
    maker = uses("{{_batch_id}}") | {"output_params": {"Made": "Id"}}
    document = with_steps(step(on_failure="undo"), rollbacks={"undo": [maker if place == "rollbacks" else step()]})
    if place != "rollbacks":
        document[place] = [maker]
    assert codes(document) == ["RB212"]


def test_r10_a_name_that_nobody_supplies_is_a_warning_with_the_nearest_one() -> None:
    (found,) = findings(with_steps(uses("{{Id}}", "{{Upm}}")))
    assert (found.code, found.hint) == ("RB304", "did you mean 'Upn'?")


@pytest.mark.parametrize("variable", ["Upn", "UPN", "_member_key", "Made"])
def test_r10_columns_specials_and_outputs_of_any_step_are_known_names(variable: str) -> None:
    document = with_steps(step(output_params={"Made": "Id"}), uses(f"{{{{{variable}}}}}") | {"name": "second"})
    assert codes(document) == []


def test_r10_without_known_columns_no_name_is_judged() -> None:
    document = with_steps(uses("{{Anything}}"))
    document["data_source"]["query"] = "SELECT * FROM people"
    assert codes(document) == []


def test_r10_a_rollback_that_needs_an_output_of_the_step_that_triggers_it_is_a_warning() -> None:
    maker = step(output_params={"Made": "Id"}, on_failure="undo")
    document = with_steps(maker, rollbacks={"undo": [uses("{{Made}}")]})
    assert codes(document) == ["RB305"]


def test_r10_a_rollback_may_need_an_output_of_an_earlier_step() -> None:
    document = with_steps(
        step(output_params={"Made": "Id"}),
        step(name="second", on_failure="undo"),
        rollbacks={"undo": [uses("{{Made}}")]},
    )
    assert codes(document) == []


@pytest.mark.parametrize("password", ["hunter2", "{{Upn}}1!", "secret:", 12345678, True])
def test_r10_a_password_written_out_is_an_error_that_does_not_repeat_it(password: object) -> None:
    creates = step(
        function="New-EntraUser",
        params={"DisplayName": "a", "UserPrincipalName": "b", "MailNickname": "c", "password": password},
    )
    (found,) = findings(with_steps(creates))
    assert found.code == "RB213"
    assert "hunter2" not in f"{found.message} {found.hint}"


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("secret:initial-password", []),
        (None, []),
        ("{{Upn}}", [("RB318", "'Password' of step 'create' comes from data")]),
        ("{{_member_key}}", [("RB318", "'Password' of step 'create' comes from data")]),
        (
            "secret:{{Upn}}",
            [("RB318", "data decides which secret 'Password' of step 'create' is, and the step will fail")],
        ),
    ],
)
def test_w8_a_password_is_best_a_reference_that_is_written_out(
    password: object, expected: list[tuple[str, str]]
) -> None:
    creates = step(
        name="create",
        function="New-EntraUser",
        params={"DisplayName": "a", "UserPrincipalName": "b", "MailNickname": "c", "Password": password},
    )
    found = findings(with_steps(creates))
    assert [(one.code, one.message) for one in found] == expected
    assert all(one.severity == "warning" and one.hint and "secret" in one.hint for one in found)


@pytest.mark.parametrize(
    ("function", "allowed", "expected"),
    [
        ("send-it", None, ["RB318"]),
        ("Other-Thing", None, []),
        ("{{Upn}}", ["Other-Thing", "Send-It"], ["RB318"]),
        ("{{Upn}}", ["Other-Thing"], []),
        ("{{Upn}}", None, ["RB306", "RB318"]),
    ],
)
def test_w8_secrets_of_functions_that_workers_announced_are_known_too(
    function: str, allowed: list[str] | None, expected: list[str]
) -> None:
    send, other = Function("Send-It", (Parameter("Key", is_secret=True),)), Function("Other-Thing", (Parameter("Key"),))
    limited = {} if allowed is None else {"allowed_functions": allowed}
    text = yaml.safe_dump(with_steps(step(function=function, params={"Key": "{{Upn}}"}, **limited)))
    found = lint_runbook(text, {**BUILT_IN, **catalogue_of(send, other)}).findings
    assert sorted(one.code for one in found) == expected


def test_r10_a_nested_password_is_found_too() -> None:
    sets = step(
        function="Set-EntraUserAttributes",
        params={"UserId": "x", "Attributes": {"profile": [{"password": "hunter2"}]}},
    )
    assert codes(with_steps(sets)) == ["RB213"]


def test_r11_an_unknown_function_is_a_warning_with_the_nearest_one() -> None:
    """Defect: a sample that calls functions which do not exist is accepted without a word."""
    (found,) = findings(with_steps(step(function="Start-ContentMove")))
    assert (found.code, found.severity) == ("RB307", "warning")
    (found,) = findings(with_steps(step(function="Set-EntraUserUPM")))
    assert found.hint == "did you mean 'Set-EntraUserUPN'?"


def test_r11_functions_that_a_worker_announced_are_known_too() -> None:
    announced = Function("Start-ContentMove", (Parameter("Mailbox", is_mandatory=True),))
    text = yaml.safe_dump(with_steps(step(function="Start-ContentMove", params={"Mailbox": "{{Upn}}"})))
    assert lint_runbook(text, {**BUILT_IN, **catalogue_of(announced)}).findings == ()
    assert [found.code for found in lint_runbook(text).findings] == ["RB307"]


def test_r11_missing_mandatory_parameters_are_one_warning() -> None:
    (found,) = findings(with_steps(step(params={})))
    assert found.code == "RB308"
    assert "UserId, NewUserPrincipalName" in found.message


def test_r11_parameters_are_known_without_regard_to_case_and_unknown_ones_are_warned_of() -> None:
    given = {"userid": "a", "NEWUSERPRINCIPALNAME": "b", "Nope": 1}
    assert codes(with_steps(step(params=given))) == ["RB309"]


def test_r5_a_templated_function_without_limits_is_a_warning() -> None:
    assert codes(with_steps(step(function="{{Upn}}"))) == ["RB306"]


def test_r5_allowed_functions_are_checked_in_the_functions_stead() -> None:
    limited = step(function="{{Upn}}", allowed_functions=["Set-EntraUserUPN", "Nope"])
    assert codes(with_steps(limited)) == ["RB307"]


def test_r5_a_function_that_its_own_step_forbids_is_an_error() -> None:
    assert codes(with_steps(step(allowed_functions=["Remove-EntraUser"]))) == ["RB217"]
    assert codes(with_steps(step(allowed_functions=["Set-EntraUserUPN"]))) == ["RB310"]


def test_r7_a_multi_valued_column_inside_a_longer_text_is_an_error() -> None:
    assert codes(with_steps(uses("{{Id}}", "{{Aliases}}"))) == []
    assert codes(with_steps(uses("{{Id}}", "all: {{aliases}}"))) == ["RB216"]


def test_r8_outputs_can_be_used_by_the_next_step_of_the_same_phase_but_not_before() -> None:
    """Defect: the two-step example of the earlier design, which this language must allow."""
    maker, user = step(name="make", output_params={"Made": "Id"}), uses("{{Made}}") | {"name": "use"}
    assert codes(with_steps(maker, user)) == []
    assert set(codes(with_steps(user, maker))) == {"RB312"}


def test_outputs_are_made_in_the_order_of_time_not_of_the_document() -> None:
    maker, user = step(name="make", output_params={"Made": "Id"}), uses("{{Made}}") | {"name": "use"}
    document = {**good(), "phases": [phase("late", "T+1h", user), phase("early", "T-1d", maker)]}
    assert codes(document) == ["RB301"]
    document = {**good(), "phases": [phase("early", "T-1d", user), phase("late", "T+1h", maker)]}
    assert set(codes(document)) == {"RB312"}


def test_a_step_cannot_use_its_own_output() -> None:
    assert set(codes(with_steps(uses("{{Made}}") | {"output_params": {"Made": "Id"}}))) == {"RB312"}


def test_r6_a_name_that_looks_special_and_is_not_can_never_be_resolved() -> None:
    (found, _) = findings(with_steps(uses("{{_batch}}")))
    assert (found.code, found.hint) == ("RB218", "did you mean '_batch_id'?")


def test_outputs_may_not_look_special() -> None:
    assert codes(with_steps(step(output_params={"_made": "Id"}))) == ["RB214"]


def test_phases_out_of_time_order_are_warned_of_and_equal_offsets_are_not() -> None:
    assert codes({**good(), "phases": [phase("a", "T-1d"), phase("b", "T-1d"), phase("c", "T-0")]}) == []
    assert codes({**good(), "phases": [phase("a", "T-0"), phase("b", "T-1d")]}) == ["RB301"]


def test_a_rollback_nobody_uses_is_warned_of() -> None:
    assert codes({**good(), "rollbacks": {"undo": [step()]}}) == ["RB302"]


def test_a_rollback_that_only_a_rollback_names_is_not_used() -> None:
    document = {**good(), "rollbacks": {"undo": [step(on_failure="undo")]}}
    assert sorted(codes(document)) == ["RB302", "RB310"]


def test_a_poll_that_waits_longer_than_it_may_last_is_warned_of() -> None:
    assert codes(with_steps(step(poll={"interval": "1h", "timeout": "1h"}))) == []
    assert codes(with_steps(step(poll={"interval": "61m", "timeout": "1h"}))) == ["RB303"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"batch_time_column": None}, "RB205"),
        ({"batch_time": "immediate"}, "RB205"),
        ({"type": "databricks"}, "RB206"),
        ({"primary_key": "Nope"}, "RB209"),
        ({"batch_time_column": "Nope"}, "RB209"),
        ({"multi_valued_columns": [{"name": "Nope", "format": "json_array"}]}, "RB209"),
        ({"multi_valued_columns": [{"name": "id", "format": "json_array"}]}, "RB215"),
        ({"multi_valued_columns": [{"name": "T", "format": "json_array"}]}, "RB215"),
        ({"multi_valued_columns": [{"name": n, "format": "json_array"} for n in ("Aliases", "ALIASES")]}, "RB215"),
        ({"cooldown": "1h"}, "RB310"),
        ({"warehouse_id": "W"}, "RB310"),
    ],
)
def test_a_source_fits_together(changes: dict[str, Any], code: str) -> None:
    document = good()
    source = {**document["data_source"], **changes}
    document["data_source"] = {key: value for key, value in source.items() if value is not None}
    assert codes(document) == [code]


def test_an_immediate_runbook_has_no_use_for_what_is_about_batch_times() -> None:
    document = {**good(), "safeguards": {"max_removals": 1}, "phases": [phase("early", "T-1d")]}
    document["data_source"] |= {"batch_time": "immediate", "batch_time_zone": "UTC"}
    del document["data_source"]["batch_time_column"]
    assert sorted(codes(document)) == ["RB310", "RB310", "RB314"]


def test_r10_a_rollback_that_needs_what_only_a_later_step_makes_is_a_warning() -> None:
    document = with_steps(
        step(name="first", on_failure="undo"),
        step(name="second", output_params={"Made": "Id"}),
        rollbacks={"undo": [uses("{{Made}}")]},
    )
    assert codes(document) == ["RB305"]


def test_r10_a_rollback_is_not_taken_for_inits_alone_when_its_other_user_is_broken() -> None:
    document = with_steps(step(on_failure=["undo"]), rollbacks={"undo": [uses("{{Upn}}")]})
    document["init"] = [uses("{{_batch_id}}") | {"on_failure": "undo"}]
    assert set(codes(document)) == {"RB103"}


def test_r7_a_multi_valued_column_cannot_name_a_function() -> None:
    limited = step(function="{{Aliases}}", allowed_functions=["Set-EntraUserUPN"])
    assert codes(with_steps(limited)) == ["RB216"]


@pytest.mark.parametrize(
    ("value", "is_fine"), [(True, True), ("false", True), ("{{Upn}}", True), ("yes", False), (1, False), ([], False)]
)
def test_a_value_that_a_function_cannot_take_is_warned_of(value: object, is_fine: bool) -> None:
    enables = step(function="Set-EntraUserEnabled", params={"UserId": "x", "Enabled": value})
    assert codes(with_steps(enables)) == ([] if is_fine else ["RB317"])


def test_columns_and_parameters_that_differ_only_by_case_are_warned_of() -> None:
    document = with_steps(step(params={"UserId": "a", "userid": "b", "NewUserPrincipalName": "c"}))
    document["data_source"]["query"] = "SELECT Id, ID, Upn, T, Aliases FROM people"
    assert sorted(codes(document)) == ["RB315", "RB316"]


def test_a_broken_name_is_not_given_another_one() -> None:
    document = with_steps(step(name="a b", poll={"interval": "2h", "timeout": "1h"}))
    messages = " ".join(found.message for found in findings(document))
    assert "this step" in messages
    assert "unreadable" not in messages


def test_a_document_full_of_mistakes_gets_no_more_hints_than_anybody_reads() -> None:
    names = [f"Variable{number}" for number in range(500)]
    document = with_steps(*(uses(f"{{{{{name}}}}}") | {"name": name} for name in names))
    columns = ", ".join(f"Variabl{number}" for number in range(500))
    document["data_source"]["query"] = f"SELECT Id, Upn, T, Aliases, {columns} FROM people"
    found = [finding for finding in findings(document) if finding.code == "RB304"]
    assert len(found) == 1000
    assert sum("did you mean" in (finding.hint or "") for finding in found) == 100


def test_r6_outputs_that_differ_only_by_case_are_warned_of() -> None:
    document = with_steps(step(name="a", output_params={"Made": "Id"}), step(name="b", output_params={"MADE": "Id"}))
    assert codes(document) == ["RB315"]


def test_an_output_with_spaces_around_its_name_could_never_be_used() -> None:
    assert codes(with_steps(step(output_params={"Made ": "Id"}))) == ["RB214"]


def with_windows(delay: str | None, *phases: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Build a runbook whose phases have these offsets and windows."""
    listed = [{**phase(f"p{number}", offset), "window": window} for number, (offset, window) in enumerate(phases)]
    safeguards = {} if delay is None else {"safeguards": {"max_delay": delay}}
    return {**good(), **safeguards, "phases": listed}


SATURDAY: dict[str, Any] = {"days": ["sat"]}
NIGHT: dict[str, Any] = {"from": "20:00", "to": "06:00"}


@pytest.mark.parametrize(
    ("delay", "offsets"),
    [
        (None, ["T-5d", "T-0"]),
        ("6h", ["T-7d", "T-0"]),
        # 48 hours after a Saturday has ended it is Tuesday; the next one is four days away.
        ("4d", ["T-2d", "T-0"]),
    ],
)
def test_k6_windows_for_which_there_is_a_t_are_in_order(delay: str | None, offsets: list[str]) -> None:
    assert codes(with_windows(delay, *((offset, SATURDAY) for offset in offsets))) == []


@pytest.mark.parametrize("offsets", [["T-5d", "T-0"], ["T-0", "T+3d"]])
def test_k6_windows_for_which_no_t_is_right_are_warned_of_once(offsets: list[str]) -> None:
    (found,) = findings(with_windows("6h", *((offset, SATURDAY) for offset in offsets)))
    assert found.code == "RB319"
    assert "p1" in found.message


def test_k6_zones_count_where_windows_are_compared() -> None:
    noon = {"from": "12:00", "to": "13:00"}
    berlin, tokyo = ({**noon, "zone": zone} for zone in ("Europe/Berlin", "Asia/Tokyo"))
    assert codes(with_windows("1h", ("T-8h", tokyo), ("T-0", berlin))) == []
    assert codes(with_windows("1h", ("T-4h", tokyo), ("T-0", berlin))) == ["RB319"]


def test_k6_an_immediate_runbook_whose_window_is_shut_for_longer_than_max_delay_is_warned_of() -> None:
    document = with_windows("13h", ("T-0", NIGHT))
    source = document["data_source"]
    del source["batch_time_column"]
    source["batch_time"] = "immediate"
    assert codes(document) == ["RB319"]
    document["safeguards"]["max_delay"] = "14h"
    assert codes(document) == []


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ({"until": "T+4h", "valid": "9h"}, ["RB319"]),
        ({"until": "T+4h", "valid": "10h"}, []),
        ({"until": "T+4h"}, []),
        ({"valid": "1h"}, []),
    ],
    ids=["too short", "long enough", "a week as always", "without end"],
)
def test_k6_sign_offs_that_are_void_before_the_window_opens_are_warned_of(
    approval: dict[str, Any], expected: list[str]
) -> None:
    document = with_windows(None, ("T-0", NIGHT))
    document["phases"][0]["approval"] = approval
    assert codes(document) == [], "where T has a time there are some that suit"
    source = document["data_source"]
    del source["batch_time_column"]
    source["batch_time"] = "immediate"
    assert codes(document) == expected
    document["safeguards"] = {"max_delay": "12h"}
    assert codes(document) == ["RB319"], "once, whatever it is that is too short"


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (NIGHT, []),
        ({"days": ["sat", "sun"]}, []),
        ({"from": "24:00", "to": "06:00"}, []),
        ({"from": "08:00", "to": "08:00"}, ["RB220"]),
        ({"from": "00:00", "to": "00:00"}, ["RB220"]),
        ({"from": "00:00", "to": "24:00"}, ["RB310"]),
        ({"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}, ["RB310"]),
        ({}, ["RB310"]),
        ({"from": "8:00"}, ["RB117"]),
        ({"to": "24:01"}, ["RB117"]),
        ({"from": 480}, ["RB103"]),
    ],
)
def test_k2_a_window_has_a_length(window: dict[str, Any], expected: list[str]) -> None:
    assert codes(with_windows(None, ("T-0", window))) == expected
