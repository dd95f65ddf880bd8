"""Rule M4: a pile of any size costs the same number of statements, and no phase is loaded again for a step."""

from collections.abc import Callable
from typing import Any

import pytest

from matoolkit.store.sql.transaction import Transaction
from tests.stage import Failing, Stage

from .runbooks import TWO_STEPS, WITH_INIT, WITH_RETRY, WITH_ROLLBACK


def cost(stage: Stage, statements: Callable[[], list[str]], turn: Callable[[], int]) -> int:
    statements()
    assert turn()
    return len(statements())


def play(stage: Stage, runbook: str, members: int, name: str) -> Any:
    batch = stage.batch(stage.publish(runbook, name), members)
    stage.due(batch, "prepare")
    return batch


@pytest.mark.parametrize(
    "outcome", [{"Id": 1}, Failing(), {"complete": False}], ids=["success", "failure", "incomplete"]
)
@pytest.mark.parametrize("runbook", [TWO_STEPS, WITH_ROLLBACK, WITH_RETRY], ids=["outputs", "rollback", "retry"])
def test_m4_results(stage: Stage, statements: Callable[[], list[str]], outcome: Any, runbook: str) -> None:
    """The defect: each completed step loads its phase anew."""
    counts = []
    for members in (10, 400):
        play(stage, runbook, members, f"wave-{members}")
        stage.events.turn()
        stage.answers["Create"] = outcome
        assert stage.work() == members
        counts.append(cost(stage, statements, stage.results.turn))
        stage.take_jobs()
    assert counts[0] == counts[1] < 40, counts


def test_m4_phase_due(stage: Stage, statements: Callable[[], list[str]]) -> None:
    counts = []
    for members in (10, 1000):
        play(stage, TWO_STEPS, members, f"wave-{members}")
        counts.append(cost(stage, statements, stage.events.turn))
    assert counts[0] == counts[1] < 40


def test_m4_joiners_and_leavers(stage: Stage, statements: Callable[[], list[str]]) -> None:
    counts = []
    for members in (3, 300):
        batch = play(stage, WITH_ROLLBACK, 1, f"wave-{members}")
        stage.handle()
        stage.join(batch, *(f"late{number}" for number in range(members)))
        joined = cost(stage, statements, stage.events.turn)
        stage.leave(batch, *(f"late{number}" for number in range(members)))
        counts.append((joined, cost(stage, statements, stage.events.turn)))
    assert counts[0] == counts[1]
    assert max(counts[0]) < 40


def test_m4_a_few_results_read_no_more_rows_in_a_large_phase(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The defect: each completed step loads its phase anew."""
    read: list[int] = []
    rows = Transaction.rows

    def counting(tx: Transaction, make: Any, statement: Any, **known: Any) -> list[Any]:
        found = rows(tx, make, statement, **known)
        read.append(len(found))
        return found

    monkeypatch.setattr(Transaction, "rows", counting)
    counts = []
    for members in (10, 400):
        play(stage, TWO_STEPS, members, f"wave-{members}")
        stage.events.turn()
        for job in stage.take_jobs()[:5]:
            stage.answer(job, {"Id": 1})
        read.clear()
        stage.results.turn()
        counts.append(sum(read))
        stage.take_jobs()
    assert counts[0] == counts[1]


def test_g3_a_pile_asks_for_the_gates_in_one_statement(stage: Stage, statements: Callable[[], list[str]]) -> None:
    play(stage, TWO_STEPS, 10, "wave")
    for turn in (stage.events.turn, stage.results.turn):
        statements()
        assert turn()
        assert sum("FROM gates" in one for one in statements()) == 1
        stage.work()


LIMITED = TWO_STEPS.replace(
    "    offset: T-5d\n", "    offset: T-5d\n    rollout: {pilot_first: true, max_failures: 30%, at_once: LIMIT}\n"
)


@pytest.mark.parametrize("outcome", [{"Id": 1}, Failing()], ids=["success", "failure"])
def test_c5_pilots_budgets_and_places_cost_the_same_number_of_statements(
    stage: Stage, statements: Callable[[], list[str]], outcome: Any
) -> None:
    counts = []
    for members, limit in ((20, 10), (600, 300)):
        runbook = LIMITED.replace("LIMIT", str(limit))
        play(stage, f"pilot: {{count: {limit}}}{runbook}", members, f"wave-{members}")
        begun = cost(stage, statements, stage.events.turn)
        stage.answers["Create"] = outcome
        assert stage.work() == limit
        counts.append((begun, cost(stage, statements, stage.results.turn)))
        stage.handle()
        stage.take_jobs()
    assert counts[0] == counts[1]
    assert max(counts[0]) < 60


def test_c5_a_few_results_read_no_more_rows_when_more_wait(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    rows = Transaction.rows

    def counting(tx: Transaction, make: Any, statement: Any, **known: Any) -> list[Any]:
        found = rows(tx, make, statement, **known)
        read.append(len(found))
        return found

    monkeypatch.setattr(Transaction, "rows", counting)
    counts = []
    for members in (100, 700):
        limited = TWO_STEPS.replace("    offset: T-5d\n", "    offset: T-5d\n    rollout: {at_once: 10}\n")
        play(stage, limited, members, f"wave-{members}")
        stage.handle()
        for turn in range(2):
            jobs = stage.take_jobs()
            assert len(jobs) == 10, turn
            for job in jobs:
                stage.answer(job, {"Id": 1})
            read.clear()
            stage.results.turn()
        counts.append(sum(read))
        stage.take_jobs()
    assert counts[0] == counts[1]


def test_s1_statements_do_not_grow_with_inits_that_ask_for_sign_offs(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    counts = []
    runbook = stage.publish(f"init_approval: {{count: 1}}{WITH_INIT}")
    for month, batches in enumerate((1, 1, 20)):
        for number in range(batches):
            stage.batch_at(runbook, 1, days=5 + number + 30 * month)
        counts.append(cost(stage, statements, stage.events.turn))
    assert counts[1] == counts[2]
