"""Rule W8: what rows bring into secret parameters is sent and never stored; only the runbook names secrets."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import orjson
import pytest

from matoolkit.bus.topology import jobs_of_worker
from matoolkit.domain.messages import AnnouncedFunction, AnnouncedParameter, WorkerHello, WorkerJob
from matoolkit.ports import Outgoing
from matoolkit.store import schema
from matoolkit.store.batches import BatchRow
from matoolkit.store.deadletters import dead_letters_page
from tests.stage import WORKER, Failing, Stage

SECRET = "Correct-Horse-9"
ROW = {"Email": "u0", "Name": "Ada", "Pw": SECRET}


def runbook(params: str, function: str = "New-EntraUser", more: str = "", rest: str = "") -> str:
    return f"""
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create
        worker_id: worker-01
        function: {function}
        params: {params}
        {more}
{rest}
"""


CREATE = runbook('{UserPrincipalName: "{{Email}}", DisplayName: "{{Name}}", Password: "{{Pw}}"}')
RETRIED = CREATE.replace("        \n", "        retry: {max_retries: 2, interval: 1m}\n")
POLLED = CREATE.replace("        \n", "        poll: {interval: 1m, timeout: 1h}\n")


def begun(stage: Stage, text: str, row: dict[str, Any] | None = None) -> BatchRow:
    """Let a member with a row begin."""
    batch = stage.batch(stage.publish(text))
    stage.refresh(batch, "u0", ROW if row is None else row)
    stage.due(batch, "prepare")
    return batch


def job_of(stage: Stage) -> WorkerJob:
    stage.handle()
    (job,) = stage.take_jobs()
    return job


def kept(stage: Stage, batch: BatchRow) -> dict[str, Any]:
    (step,) = stage.steps(batch)
    params: dict[str, Any] = orjson.loads(step.params_json or "null")
    return params


def everything_but_rows(stage: Stage) -> str:
    """Return all that is stored, except the rows of members and what is on the bus, where secrets lie in clear."""
    clear = {schema.batch_members.name, "bus_messages", "outbox"}
    with stage.store.reading() as tx:
        tables = [table for table in schema.metadata.sorted_tables if table.name not in clear]
        return str([tx.rows(lambda *row: row, table.select()) for table in tables])


def announce(stage: Stage, name: str, *secret: str) -> None:
    parameters = [AnnouncedParameter(one, "string", is_secret=one in secret) for one in ("Key", "User", "Note")]
    hello = WorkerHello(WORKER, (AnnouncedFunction(name, tuple(parameters)),))
    stage.asked += 1
    stage.bus.send([Outgoing(f"hello-{stage.asked}", hello)])
    stage.handle()


def test_w8_what_a_row_brings_into_a_secret_parameter_is_sent_and_stored_as_its_template(stage: Stage) -> None:
    batch = begun(stage, CREATE)
    job = job_of(stage)
    assert job.parameters == {"UserPrincipalName": "u0", "DisplayName": "Ada", "Password": SECRET}
    assert kept(stage, batch) == {"UserPrincipalName": "u0", "DisplayName": "Ada", "Password": "{{Pw}}"}
    stage.answer(job, {"Id": 1})
    stage.run()
    assert stage.states(batch) == {"create": "succeeded"}
    assert SECRET not in everything_but_rows(stage)


@pytest.mark.parametrize(
    ("params", "sent", "stored"),
    [
        ('{PASSWORD: "{{pw}}"}', {"PASSWORD": SECRET}, {"PASSWORD": "{{pw}}"}),
        (
            '{Profile: [{password: "{{ Pw }}", name: "{{Name}}"}]}',
            {"Profile": [{"password": SECRET, "name": "Ada"}]},
            {"Profile": [{"password": "{{ Pw }}", "name": "Ada"}]},
        ),
        (
            '{Password: "{{Pw}}", Note: "{{Name}} has {{PW}}"}',
            {"Password": SECRET, "Note": f"Ada has {SECRET}"},
            {"Password": "{{Pw}}", "Note": "{{Name}} has {{PW}}"},
        ),
        ('{Password: "secret:initial"}', {"Password": "secret:initial"}, {"Password": "secret:initial"}),
        ('{Note: "{{Pw}}"}', {"Note": SECRET}, {"Note": SECRET}),
    ],
    ids=["any case", "any depth", "wherever else it is used", "a reference", "no secret parameter"],
)
def test_w8_a_column_is_secret_wherever_its_runbook_passes_it_to_a_secret_parameter(
    stage: Stage, params: str, sent: Any, stored: Any
) -> None:
    batch = begun(stage, runbook(params))
    assert job_of(stage).parameters == sent
    assert kept(stage, batch) == stored


@pytest.mark.parametrize(
    ("function", "more", "is_secret"),
    [
        ("Send-It", "", True),
        ("send-it", "", True),
        ("Other-Thing", "", False),
        ('"{{Name}}"', "allowed_functions: [Send-It, Ada]", True),
        ('"{{Name}}"', "allowed_functions: [Other-Thing, Ada]", False),
        ('"{{Name}}"', "", True),
    ],
    ids=["announced", "any case", "another", "among those allowed", "not allowed", "any function"],
)
def test_w8_what_workers_announce_as_secret_is_secret(stage: Stage, function: str, more: str, is_secret: bool) -> None:
    announce(stage, "Send-It", "Key")
    batch = begun(stage, runbook('{Key: "{{Pw}}"}', function, more))
    assert job_of(stage).parameters == {"Key": SECRET}
    assert kept(stage, batch) == {"Key": "{{Pw}}" if is_secret else SECRET}


def test_w8_what_a_worker_announces_later_counts_from_then_on(stage: Stage) -> None:
    batch = begun(stage, runbook('{Key: "{{Pw}}"}', "Send-It"))
    assert job_of(stage).parameters == {"Key": SECRET}
    assert kept(stage, batch) == {"Key": SECRET}
    announce(stage, "Send-It", "Key")
    stage.join(batch, "u1")
    stage.refresh(batch, "u1", {**ROW, "Email": "u1"})
    assert job_of(stage).parameters == {"Key": SECRET}
    assert [orjson.loads(step.params_json or "") for step in stage.steps(batch)] == [{"Key": SECRET}, {"Key": "{{Pw}}"}]


def test_w8_another_orchestrator_knows_it_after_a_minute(stage: Stage) -> None:
    batch = begun(stage, runbook('{Key: "{{Pw}}"}', "Send-It"))
    job_of(stage)
    announce(Stage(stage.store, stage.clock), "Send-It", "Key")
    stage.later(minutes=1)
    stage.join(batch, "u1")
    stage.refresh(batch, "u1", {**ROW, "Email": "u1"})
    job_of(stage)
    assert orjson.loads(stage.steps(batch)[1].params_json or "") == {"Key": "{{Pw}}"}


@pytest.mark.parametrize(
    ("text", "first"), [(RETRIED, Failing()), (POLLED, {"complete": False})], ids=["retry", "poll"]
)
def test_w8_a_secret_is_resolved_at_every_send_and_all_else_at_the_first(stage: Stage, text: str, first: Any) -> None:
    batch = begun(stage, text)
    stage.answer(job_of(stage), first)
    stage.handle()
    stage.refresh(batch, "u0", {"Email": "u0", "Name": "Eve", "Pw": "Another-Horse-8"})
    stage.later(minutes=1)
    assert stage.jobs[1].parameters == {"UserPrincipalName": "u0", "DisplayName": "Ada", "Password": "Another-Horse-8"}
    assert kept(stage, batch)["Password"] == "{{Pw}}"
    assert stage.states(batch) == {"create": "succeeded"}
    stored = everything_but_rows(stage)
    assert SECRET not in stored
    assert "Another-Horse-8" not in stored


def test_w8_what_a_row_holds_is_never_read_as_a_template_again(stage: Stage) -> None:
    row = {"Email": "u0", "Name": "{{Pw}} {{Nobody}}", "Pw": "{{Name}}"}
    begun(stage, RETRIED, row)
    first = job_of(stage)
    stage.answer(first, Failing())
    stage.handle()
    stage.later(minutes=1)
    expected = {"UserPrincipalName": "u0", "DisplayName": row["Name"], "Password": "{{Name}}"}
    assert [job.parameters for job in stage.jobs] == [expected, expected]


@pytest.mark.parametrize(
    ("text", "first"), [(RETRIED, Failing()), (POLLED, {"complete": False})], ids=["retry", "poll"]
)
@pytest.mark.parametrize(
    ("row", "kind", "why"),
    [
        ({"Email": "u0"}, "UnresolvedVariable", "variable 'Pw' cannot be resolved"),
        ({"Email": "u0", "Pw": "secret:initial"}, "SecretFromData", "data may not name a secret"),
        ({"Email": "u0", "Pw": "x" * 250_000}, "MessageTooLarge", "has 25"),
    ],
    ids=["gone", "a reference", "too large"],
)
def test_w8_a_secret_that_cannot_be_sent_again_fails_its_step(
    stage: Stage, text: str, first: Any, row: dict[str, Any], kind: str, why: str
) -> None:
    batch = begun(stage, text)
    stage.answer(job_of(stage), first)
    stage.handle()
    stage.refresh(batch, "u0", row)
    stage.later(minutes=1)
    (step,) = stage.steps(batch)
    assert (step.status, step.error_type) == ("failed", kind)
    assert why in str(step.error_message)
    assert len(stage.jobs) == 1
    assert stage.member(batch).status == "failed"


@pytest.mark.parametrize(
    ("params", "row"),
    [
        ('{Password: "{{Pw}}"}', {"Pw": "secret:initial-password"}),
        ('{Password: "secret:{{Pw}}"}', {"Pw": "initial-password"}),
        ('{DisplayName: "{{Pw}}"}', {"Pw": "secret: x y"}),
        ('{DisplayName: "{{A}}{{Pw}}"}', {"A": "sec", "Pw": "ret:x"}),
        ('{Tags: ["a", "{{Pw}}"]}', {"Pw": ["b", {"c": "secret:x"}]}),
    ],
    ids=["a reference", "its name", "any parameter", "put together", "inside a list"],
)
def test_w8_data_that_names_a_secret_fails_its_step(stage: Stage, params: str, row: dict[str, Any]) -> None:
    batch = begun(stage, runbook(params), {"Email": "u0", **row})
    stage.run()
    (step,) = stage.steps(batch)
    assert (step.status, step.error_type, stage.jobs) == ("failed", "SecretFromData", [])
    for part in ("step 'create'", "member 'u0'", "begins with 'secret:'"):
        assert part in str(step.error_message)


def test_w8_data_that_only_mentions_the_word_is_data(stage: Stage) -> None:
    text = runbook('{DisplayName: "{{Pw}}", Password: "secret:initial"}')
    begun(stage, text, {"Email": "u0", "Pw": 'no "secret: of mine'})
    assert job_of(stage).parameters == {"DisplayName": 'no "secret: of mine', "Password": "secret:initial"}


@pytest.mark.parametrize("outcome", [Failing(f"no {SECRET}", f"Bad_{SECRET}"), {"Id": 1, "Said": [f"it is {SECRET}"]}])
def test_w8_what_another_worker_repeats_of_a_secret_is_masked(stage: Stage, outcome: Any) -> None:
    batch = begun(stage, runbook('{Password: "{{Pw}}"}', more="output_params: {Said: Said}"))
    stage.answer(job_of(stage), outcome)
    stage.handle()
    (step,) = stage.steps(batch)
    if isinstance(outcome, Failing):
        assert (step.error_type, step.error_message) == ("Bad_***", "no ***")
    else:
        assert orjson.loads(step.result_json or "") == {"Id": 1, "Said": ["it is ***"]}
        assert stage.outputs(batch) == {"Said": ["it is ***"]}
    assert SECRET not in everything_but_rows(stage)


@pytest.mark.parametrize(
    ("result", "stored"),
    [
        ({"TOKEN": "t-1234567", "Id": 1}, {"TOKEN": "***", "Id": 1}),
        (
            {"complete": True, "data": {"Token": "t-1234567", "Id": 1}},
            {"complete": True, "data": {"Token": "***", "Id": 1}},
        ),
    ],
)
def test_w8_an_output_that_becomes_a_secret_is_not_shown_in_its_result(stage: Stage, result: Any, stored: Any) -> None:
    text = runbook(
        "{}",
        "Make-Token",
        "output_params: {Made: Token}",
        '      - {name: use, worker_id: worker-01, function: New-EntraUser, params: {Password: "{{made}}"}}',
    )
    batch = begun(stage, text)
    stage.answer(job_of(stage), result)
    assert job_of(stage).parameters == {"Password": "t-1234567"}
    first, second = stage.steps(batch)
    assert orjson.loads(first.result_json or "") == stored
    assert orjson.loads(second.params_json or "") == {"Password": "{{made}}"}
    assert stage.outputs(batch) == {"Made": "t-1234567"}


def test_w8_rollbacks_and_removals_keep_no_secret_either(stage: Stage) -> None:
    undo = '{name: undo, worker_id: worker-01, function: New-EntraUser, params: {Password: "{{Pw}}"}}'
    text = runbook(
        '{Note: "{{Pw}}"}',
        "Create",
        "on_failure: back",
        f"rollbacks:\n  back:\n    - {undo}\non_member_removed:\n  - {undo}\n",
    )
    batch = begun(stage, text)
    stage.join(batch, "u1")
    stage.refresh(batch, "u1", {**ROW, "Email": "u1"})
    stage.answers["Create"] = Failing()
    stage.leave(batch, "u1")
    stage.run()
    assert {job.parameters.get("Password") for job in stage.jobs if job.function_name == "New-EntraUser"} == {SECRET}
    assert [orjson.loads(row.params_json or "") for row in stage.rollbacks(batch)] == [{"Password": "{{Pw}}"}] * 2
    assert SECRET not in everything_but_rows(stage)


def test_w8_a_dead_letter_keeps_no_secret_whatever_parameter_had_it(stage: Stage) -> None:
    begun(stage, runbook('{Password: "{{Pw}}", DisplayName: "{{Name}}", Note: ["{{Name}}: {{Pw}}"]}'))
    stage.handle()
    for message in stage.bus.receive(jobs_of_worker(WORKER), 100):
        stage.bus.dead_letter(message, "Poison", "the worker choked on it")
    stage.sweep()
    with stage.store.reading() as tx:
        (letter,) = dead_letters_page(tx)
    assert orjson.loads(letter.body)["Parameters"] == {"Password": "***", "DisplayName": "Ada", "Note": ["***"]}
    assert SECRET not in str(asdict(letter))


@pytest.mark.parametrize("text", [RETRIED, POLLED], ids=["retry", "poll"])
def test_m4_secrets_cost_a_number_of_statements_that_does_not_grow(
    stage: Stage, statements: Callable[[], list[str]], text: str
) -> None:
    counts = []
    for members in (3, 100):
        batch = stage.batch(stage.publish(text, f"wave-{members}"), members)
        for number in range(members):
            stage.refresh(batch, f"u{number}", {**ROW, "Email": f"u{number}"})
        stage.due(batch, "prepare")
        stage.handle()
        stage.answers["New-EntraUser"] = Failing() if text is RETRIED else {"complete": False}
        assert stage.work() == members
        statements()
        stage.results.turn()
        answered = len(statements())
        stage.clock.advance(stage.limits.step_timeout / 24)
        stage.sweep()
        statements()
        stage.events.turn()
        counts.append((answered, len(statements())))
        stage.answers["New-EntraUser"] = {"Id": 1}
        stage.run()
        assert set(stage.states(batch).values()) == {"succeeded"}
    assert counts[0] == counts[1]
