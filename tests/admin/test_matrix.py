"""Every cell of the matrix says what the rows say, and a second look reads no more than it has to."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from matoolkit.admin.matrix import Matrix, read_matrix
from matoolkit.domain.matrix import MOST_ATTEMPTS, SHIFT, CellState, state_in
from matoolkit.domain.states import MemberStatus, PhaseStatus, StepStatus
from matoolkit.store.batches import BatchRow
from matoolkit.store.matrix import members_with_key_part
from matoolkit.store.schema import batch_members, phase_executions, step_executions
from tests.stage import Failing, Stage

TWO_PHASES = """\
phases:
  - name: second
    offset: T-0
    steps:
      - {name: three, worker_id: worker-01, function: Custom-Three}
  - name: first
    offset: T-1d
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
      - {name: two, worker_id: worker-01, function: Custom-Two}
"""
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def batch(stage: Stage) -> BatchRow:
    return stage.batch(stage.publish(TWO_PHASES), ["ada", "grace", "alan"])


def seen(stage: Stage, batch: BatchRow, before: Matrix | None = None) -> dict[str, list[str]]:
    return told(stage, batch, read_matrix(stage.store, batch.id, before))


def told(stage: Stage, batch: BatchRow, matrix: Matrix) -> dict[str, list[str]]:
    """Write each member's cells as words, with the attempts if there were several."""
    keys = {member.id: member.member_key for member in stage.members(batch)}
    count = len(matrix.members)
    rows = {keys[number]: matrix.cells[place::count] for place, number in enumerate(matrix.members.ids)}
    return {key: [_word(cell) for cell in cells] for key, cells in rows.items()}


def _word(cell: int) -> str:
    attempts = cell >> SHIFT
    return state_in(cell).name.lower() + (f" {attempts}" if attempts > 1 else "")


def steps_of(stage: Stage, batch: BatchRow, key: str) -> list[int]:
    number = stage.member(batch, key).id
    return [step.id for step in stage.steps(batch) if step.batch_member_id == number]


def put(stage: Stage, step: int, status: StepStatus, attempt: int = 1) -> None:
    with stage.store.transaction() as tx:
        tx.execute(update(step_executions).where(step_executions.c.id == step).values(status=status, attempt=attempt))


def test_columns_are_the_steps_of_phases_in_the_order_of_their_time(stage: Stage, batch: BatchRow) -> None:
    matrix = read_matrix(stage.store, batch.id)
    assert [(one.phase, one.step_index, one.step) for one in matrix.columns] == [
        ("first", 0, "one"),
        ("first", 1, "two"),
        ("second", 0, "three"),
    ]
    assert told(stage, batch, matrix) == dict.fromkeys(("ada", "grace", "alan"), ["not_begun"] * 3)


@pytest.mark.parametrize("status", list(StepStatus))
def test_a_cell_says_the_state_of_its_step_and_its_attempts(stage: Stage, batch: BatchRow, status: StepStatus) -> None:
    stage.due(batch, "first")
    stage.handle()
    put(stage, steps_of(stage, batch, "grace")[1], status, attempt=3)
    assert seen(stage, batch)["grace"] == ["dispatched", f"{CellState[status.name].name.lower()} 3", "not_begun"]


def test_fifteen_attempts_stand_for_all_above(stage: Stage, batch: BatchRow) -> None:
    stage.due(batch, "first")
    stage.handle()
    for attempt, key in ((14, "ada"), (15, "grace"), (4_000, "alan")):
        put(stage, steps_of(stage, batch, key)[0], StepStatus.FAILED, attempt)
    cells = seen(stage, batch)
    assert [cells[key][0] for key in ("ada", "grace", "alan")] == ["failed 14", "failed 15", "failed 15"]
    assert MOST_ATTEMPTS == 15


def test_a_phase_of_many_steps_has_a_column_for_each(stage: Stage) -> None:
    steps = "".join(f"      - {{name: s{n}, worker_id: worker-01, function: Custom-S{n}}}\n" for n in range(17))
    long = stage.batch(stage.publish(f"phases:\n  - name: long\n    offset: T-0\n    steps:\n{steps}"), ["ada", "alan"])
    stage.due(long, "long")
    stage.handle()
    for place, step in enumerate(steps_of(stage, long, "ada")):
        put(stage, step, StepStatus.SUCCEEDED, attempt=place)
    attempts = [cell >> SHIFT for cell in read_matrix(stage.store, long.id).cells[::2]]
    assert attempts == [*range(16), 15]


def test_who_failed_or_left_takes_no_part_in_what_follows(stage: Stage, batch: BatchRow) -> None:
    stage.answers = {"Custom-One": lambda job: Failing() if job.facts.member_key == "ada" else None}
    stage.due(batch, "first")
    stage.run()
    stage.leave(batch, "grace")
    stage.run()
    assert seen(stage, batch) == {
        "ada": ["failed", "cancelled", "not_concerned"],
        "grace": ["succeeded", "succeeded", "not_concerned"],
        "alan": ["succeeded", "succeeded", "not_begun"],
    }


def test_what_was_undone_says_so(stage: Stage, batch: BatchRow) -> None:
    stage.due(batch, "first")
    stage.run()
    grace = stage.member(batch, "grace").id
    with stage.store.transaction() as tx:
        values = {"status": MemberStatus.REMOVED, "removed_at": NOON, "undone_at": NOON, "remove_reason": "a mistake"}
        tx.execute(update(batch_members).where(batch_members.c.id == grace).values(values))
    assert seen(stage, batch)["grace"] == ["undone", "undone", "not_concerned"]


def test_who_joins_late_has_the_past_before_it_and_nothing_after_it_caught_up(stage: Stage, batch: BatchRow) -> None:
    stage.due(batch, "first")
    stage.run()
    stage.skip(batch, "second")
    stage.add_row(batch, "joan")
    assert seen(stage, batch)["joan"] == ["not_begun"] * 3
    with stage.store.transaction() as tx:
        tx.execute(update(batch_members).values(caught_up_at=NOON))
    assert seen(stage, batch)["joan"] == ["not_concerned"] * 3


def test_only_the_present_epoch_counts(stage: Stage, batch: BatchRow) -> None:
    stage.due(batch, "first")
    stage.run()
    stage.leave(batch, "grace")
    stage.run()
    before = read_matrix(stage.store, batch.id)
    stage.come_back(batch, "grace")
    assert seen(stage, batch, before)["grace"] == ["not_begun"] * 3
    stage.handle()
    assert seen(stage, batch, before)["grace"] == ["dispatched", "pending", "not_begun"]


def test_o14_who_began_with_a_later_phase_has_done_the_others_before(stage: Stage, batch: BatchRow) -> None:
    with stage.store.transaction() as tx:
        mine = update(batch_members).where(batch_members.c.id == stage.member(batch, "alan").id)
        tx.execute(mine.values(first_phase_version=1, first_phase_place=1))
    assert seen(stage, batch)["alan"] == ["done_before", "done_before", "not_begun"]


def test_phases_of_two_versions_stand_side_by_side_without_those_that_were_superseded(
    stage: Stage, batch: BatchRow
) -> None:
    stage.due(batch, "first")
    stage.run()
    before = read_matrix(stage.store, batch.id)
    stage.change_version(batch, stage.publish(TWO_PHASES.replace("three", "four")))
    matrix = read_matrix(stage.store, batch.id, before)
    assert stage.phases(batch)["second"] is not PhaseStatus.SUPERSEDED
    assert [one.step for one in matrix.columns] == ["one", "two", *(one.step for one in matrix.columns[2:])]
    assert "three" not in {one.step for one in matrix.columns}
    assert "four" in {one.step for one in matrix.columns}


def test_a_second_look_sees_what_a_first_would(stage: Stage, batch: BatchRow) -> None:
    before = read_matrix(stage.store, batch.id)
    for change in (
        lambda: stage.due(batch, "first"),
        stage.handle,
        stage.work,
        stage.run,
        lambda: stage.leave(batch, "ada"),
        lambda: stage.join(batch, "joan"),
        stage.run,
        lambda: stage.due(batch, "second"),
        stage.run,
    ):
        change()
        again = read_matrix(stage.store, batch.id, before)
        assert told(stage, batch, again) == seen(stage, batch)
        before = again


def test_a_look_reads_nothing_where_nothing_changed_and_only_the_phases_in_which_it_did(
    stage: Stage, batch: BatchRow, statements: Callable[[], list[str]]
) -> None:
    stage.due(batch, "first")
    stage.run()
    before = read_matrix(stage.store, batch.id)
    statements()
    assert read_matrix(stage.store, batch.id, before) is before
    assert len(statements()) == 1
    stage.due(batch, "second")
    stage.handle()
    statements()
    moving = read_matrix(stage.store, batch.id, before)
    assert sum("packed" in one for one in statements()) == 1
    assert told(stage, batch, moving)["ada"] == ["succeeded", "succeeded", "dispatched"]


def test_statements_do_not_grow_with_members(stage: Stage, statements: Callable[[], list[str]]) -> None:
    def asked(batch: BatchRow) -> int:
        stage.due(batch, "first")
        stage.handle()
        statements()
        read_matrix(stage.store, batch.id)
        return len(statements())

    runbook = stage.publish(TWO_PHASES)
    few, many = stage.batch_at(runbook, 1, days=5), stage.batch_at(runbook, [f"m{n}" for n in range(60)], days=6)
    assert asked(few) == asked(many)


def test_a_batch_without_phases_or_members_has_no_cells(stage: Stage, batch: BatchRow) -> None:
    with stage.store.transaction() as tx:
        tx.execute(update(phase_executions).values(status=PhaseStatus.SUPERSEDED))
    assert read_matrix(stage.store, batch.id).cells == b""


def test_keys_are_found_by_any_part_in_any_case(stage: Stage, batch: BatchRow) -> None:
    with stage.store.reading() as tx:
        assert members_with_key_part(tx, batch.id, "GRA", 10) == [stage.member(batch, "grace").id]
        assert len(members_with_key_part(tx, batch.id, "a", 2)) == 2
        assert members_with_key_part(tx, batch.id, "%", 10) == []
