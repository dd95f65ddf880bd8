"""Rule O14, data: a retry takes the row as it is now, and says what that changes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from sqlalchemy import text

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.retrying import preview_member_retry, retry_members
from matoolkit.admin.retryplan import Terms
from matoolkit.admin.retryrows import rows_in_file, rows_in_source
from matoolkit.domain.retrying import DataChoice, LeftOutBecause
from matoolkit.errors import DoneWithOldData, InvalidMembers, NothingToRetry, NotReadYet, SourceFailed, WrongDataChoice
from matoolkit.store.batches import BatchRow
from matoolkit.store.runbooks import RunbookRow
from tests.conftest import Rows
from tests.orchestrator.runbooks import TWO_PHASES
from tests.stage import Failing, Stage

KEPT = Terms(data=DataChoice.KEPT)
BY_NAME = TWO_PHASES.replace("function: Move, params: {Email: '{{Email}}'}", "function: Move, params: {To: '{{name}}'}")


def failed(stage: Stage, members: int | Sequence[str] = 2, phases: str = BY_NAME) -> tuple[RunbookRow, BatchRow]:
    """Let everybody fail in the cutover, which moves them to what their row calls them."""
    runbook = stage.publish(phases)
    batch = stage.batch(runbook, members)
    stage.answers["Move"] = Failing()
    stage.due(batch, "prepare", "cutover")
    stage.run()
    del stage.answers["Move"]
    return runbook, batch


def row(key: str = "u0", name: Any = "Better") -> dict[str, Any]:
    return {"Email": key, "Name": name}


def sent(stage: Stage, function: str = "Move") -> list[Any]:
    return [job.parameters.get("To") for job in stage.jobs if job.function_name == function]


def test_o14_a_retry_takes_the_row_of_the_last_reading(stage: Stage) -> None:
    """The defect: a row that was corrected in the source changed nothing."""
    runbook, batch = failed(stage)
    stage.clock.advance(timedelta(minutes=5))
    stage.correct(runbook, batch, {"u0": row()})
    shown = preview_member_retry(stage.store, batch.id)
    assert (shown.data, shown.read_at) == (DataChoice.LAST_READING, stage.now)
    assert [(one.name, one.members) for one in shown.changed_columns] == [("Name", ("u0",))]
    assert shown.done_before == ()
    assert retry_members(stage.store, stage.bus, batch.id, by="anna") == shown
    stage.run()
    assert sorted(sent(stage)) == ["Better", "U0", "U1", "U1"]


@pytest.mark.parametrize("name", [["a", "b"], 7, 7.5, True, None, "7", '["a"]', {"a": [1]}, ""])
def test_o14_the_row_is_typed_as_it_was_read(stage: Stage, name: Any) -> None:
    runbook, batch = failed(stage, 1)
    stage.correct(runbook, batch, {"u0": row(name=name)})
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.run()
    assert sent(stage)[-1] == name
    assert type(sent(stage)[-1]) is type(name)


def test_o14_a_person_may_go_on_with_the_row_that_members_have(stage: Stage) -> None:
    runbook, batch = failed(stage)
    stage.correct(runbook, batch, {"u0": row()})
    stage.lose(runbook, "u1")
    done = retry_members(stage.store, stage.bus, batch.id, terms=KEPT, by="anna")
    assert (done.data, done.read_at, done.changed_columns, done.left_out) == (DataChoice.KEPT, None, (), ())
    stage.run()
    assert sorted(sent(stage)) == ["U0", "U0", "U1", "U1"]


def test_o14_members_without_a_row_that_they_could_take_are_left_out_and_shown(stage: Stage) -> None:
    runbook, batch = failed(stage, 4)
    stage.lose(runbook, "u1")
    stage.correct(runbook, batch, {}, set_aside=["u2"])
    stage.correct(runbook, replace(batch, batch_start_time=stage.now + timedelta(days=9)), {"u3": row("u3")})
    done = retry_members(stage.store, stage.bus, batch.id, by="anna")
    assert done.going_on == ("u0",)
    assert {one.because: one.members for one in done.left_out_because} == {
        LeftOutBecause.NO_ROW: ("u1",),
        LeftOutBecause.SET_ASIDE: ("u2",),
        LeftOutBecause.ANOTHER_TIME: ("u3",),
    }
    assert sorted(done.left_out) == ["u1", "u2", "u3"]
    with pytest.raises(NothingToRetry, match=r"no row for u1; the row of u2 was set aside; the row of u3 has another"):
        preview_member_retry(stage.store, batch.id)


def test_o14_without_a_reading_a_retry_says_so(stage: Stage) -> None:
    _, batch = failed(stage, 1)
    with stage.store.transaction() as tx:
        tx.execute(text("UPDATE runbooks SET read_at = NULL"))
    with pytest.raises(NotReadYet, match="has not been read") as refused:
        preview_member_retry(stage.store, batch.id)
    assert "--refresh" in str(refused.value.hint)
    assert retry_members(stage.store, stage.bus, batch.id, terms=KEPT, by="anna").going_on == ("u0",)


def test_o14_done_steps_that_used_a_changed_column_are_named_and_a_person_decides(stage: Stage) -> None:
    runbook, batch = failed(stage)
    stage.correct(runbook, batch, {"u0": {"Email": "corrected", "Name": "U0"}})
    shown = preview_member_retry(stage.store, batch.id)
    (step,) = shown.done_before
    assert (step.phase_name, step.step_name, step.columns, step.members) == ("prepare", "create", ("Email",), ("u0",))
    with pytest.raises(DoneWithOldData, match="prepare/create used old values of Email"):
        retry_members(stage.store, stage.bus, batch.id, by="anna")
    assert {member.status for member in stage.members(batch)} == {"failed"}
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, terms=Terms(begin_with="prepare"), by="anna")
    stage.run()
    created = [str(job.parameters["Email"]) for job in stage.jobs[before:] if job.function_name == "Create"]
    assert sorted(created) == ["corrected", "u1"]


def test_o14_a_person_may_leave_done_what_was_done_with_the_old_row(stage: Stage) -> None:
    runbook, batch = failed(stage, 1)
    stage.correct(runbook, batch, {"u0": {"Email": "corrected", "Name": "U0"}})
    before = len(stage.jobs)
    retry_members(stage.store, stage.bus, batch.id, terms=Terms(keep_done=True), by="anna")
    stage.run()
    assert [job.function_name for job in stage.jobs[before:]] == ["Move", "Finish"]
    assert stage.jobs[-1].parameters["Email"] == "corrected"


def test_o14_a_step_that_is_done_again_does_not_stand_in_the_way(stage: Stage) -> None:
    undoing = BY_NAME.replace("{To: '{{name}}'}}", "{To: '{{name}}'}, on_failure: undo}")
    undoing += "rollbacks:\n  undo:\n    - {name: back, worker_id: worker-01, function: Back}\n"
    runbook, batch = failed(stage, 1, undoing)
    stage.correct(runbook, batch, {"u0": {"Email": "corrected", "Name": "U0"}})
    done = retry_members(stage.store, stage.bus, batch.id, by="anna")
    assert (done.beginning_again, done.done_before) == (("u0",), ())


def test_o14_what_was_done_two_epochs_ago_is_named_too(stage: Stage) -> None:
    runbook, batch = failed(stage, 1)
    stage.change_version(batch, stage.publish(BY_NAME + "# 2\n"))
    stage.answers["Move"] = Failing()
    retry_members(stage.store, stage.bus, batch.id, by="anna")
    stage.due(batch, "cutover")
    stage.run()
    stage.correct(runbook, batch, {"u0": {"Email": "corrected", "Name": "U0"}})
    (step,) = preview_member_retry(stage.store, batch.id).done_before
    assert (step.phase_name, step.step_name) == ("prepare", "create")


def test_o14_the_source_is_read_now_if_a_person_wants_it(stage: Stage) -> None:
    _, batch = failed(stage, 3)
    start = batch.batch_start_time
    assert start
    source = Rows([("u0", "Now", start), ("u1", "One", start), ("u1", "Two", start), ("other", "x", "no time")])
    stage.clock.advance(timedelta(minutes=1))
    rows = rows_in_source(stage.store, lambda _: source, batch.id, stage.clock.now)
    done = retry_members(stage.store, stage.bus, batch.id, terms=Terms(rows=rows), by="anna")
    assert (done.data, done.read_at, done.going_on) == (DataChoice.REFRESHED, stage.now, ("u0",))
    because = {one.because: one.members for one in done.left_out_because}
    assert because == {LeftOutBecause.SET_ASIDE: ("u1",), LeftOutBecause.NO_ROW: ("u2",)}
    stage.run()
    assert sent(stage)[-1] == "Now"


def test_o14_a_source_that_is_away_changes_nothing(stage: Stage) -> None:
    _, batch = failed(stage, 1)

    class Away:
        def pieces(self, _: str, /) -> Any:
            raise SourceFailed("the source is away")

    with pytest.raises(SourceFailed):
        rows_in_source(stage.store, lambda _: Away(), batch.id, stage.clock.now)
    assert stage.member(batch).status == "failed"


def manual(stage: Stage) -> BatchRow:
    stage.publish(BY_NAME)
    batch = create_manual_batch(stage.store, "wave", [row("u0", "U0"), row("u1", "U1")], by="anna").batch
    stage.answers["Move"] = Failing()
    for _ in ("prepare", "cutover"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")
        stage.run()
    del stage.answers["Move"]
    return batch


def test_o14_members_of_a_manual_batch_keep_their_row_or_take_one_of_a_file(stage: Stage) -> None:
    batch = manual(stage)
    assert preview_member_retry(stage.store, batch.id).data is DataChoice.KEPT
    rows = rows_in_file(stage.store, batch.id, BytesIO(b"Email,Name\nU0,Filed\nstranger,x\n"))
    done = retry_members(stage.store, stage.bus, batch.id, terms=Terms(rows=rows, keep_done=True), by="anna")
    assert (done.data, done.going_on) == (DataChoice.FILE, ("u0",))
    assert {one.because: one.members for one in done.left_out_because} == {LeftOutBecause.NO_ROW: ("u1",)}
    stage.run()
    assert sent(stage)[-1] == "Filed"


def test_o14_rows_of_a_file_are_for_manual_batches_and_rows_of_a_source_for_the_others(stage: Stage) -> None:
    by_hand = manual(stage)
    with pytest.raises(WrongDataChoice, match="is manual"):
        preview_member_retry(stage.store, by_hand.id, terms=Terms(data=DataChoice.LAST_READING))
    with pytest.raises(WrongDataChoice, match="is manual"):
        rows_in_source(stage.store, lambda _: Rows([]), by_hand.id, stage.clock.now)
    with pytest.raises(InvalidMembers, match="no column 'Email'"):
        rows_in_file(stage.store, by_hand.id, BytesIO(b"Name\nx\n"))
    _, batch = failed(stage, ["v0"])
    rows = rows_in_file(stage.store, batch.id, BytesIO(b"Email,Name\nv0,x\n"))
    with pytest.raises(WrongDataChoice, match="is not manual"):
        preview_member_retry(stage.store, batch.id, terms=Terms(rows=rows))
