"""What two versions of a runbook do differently, in words."""

import pytest

from matoolkit.runbook.differences import Difference, Kind, differences
from matoolkit.runbook.parse import parse_runbook

BEFORE = """\
name: wave
data_source: {type: sql, connection: PEOPLE_URL, query: 'SELECT email, cutover FROM people', primary_key: email,
  batch_time_column: cutover}
retry: {max_retries: 1, interval: 5m}
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One, params: {Id: '{{email}}', Level: 1}}
      - {name: two, worker_id: worker-01, function: Custom-Two, timeout: 1h}
  - name: cutover
    offset: T-0
    steps:
      - {name: three, worker_id: worker-01, function: Custom-Three, on_failure: undo}
rollbacks:
  undo:
    - {name: back, worker_id: worker-01, function: Custom-Back}
"""


def told(*changes: tuple[str, str]) -> list[Difference]:
    after = BEFORE
    for old, new in changes:
        assert old in after
        after = after.replace(old, new)
    return list(differences(parse_runbook(BEFORE), parse_runbook(after)).found)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("offset: T-0", "offset: T+1h", Difference(Kind.MOVED, "phase cutover", "from T-0 to T+1h")),
        (
            "offset: T-0",
            "offset: T-0\n    window: {days: [fri, sat], from: '20:00', to: '06:00', binds: every_job}",
            Difference(Kind.CHANGED, "window of phase cutover", "from nothing to fri, sat 20:00-06:00, every job"),
        ),
        (
            "retry: {max",
            "safeguards: {max_delay: 6h}\nretry: {max",
            Difference(Kind.CHANGED, "max_delay", "from nothing to 6h"),
        ),
        ("Level: 1", "Level: 2", Difference(Kind.CHANGED, "prepare: one", "parameter Level from 1 to 2")),
        (", Level: 1", "", Difference(Kind.CHANGED, "prepare: one", "parameter Level gone")),
        ("name: two", "name: second", Difference(Kind.RENAMED, "prepare: second", "was two")),
        ("timeout: 1h", "timeout: 90m", Difference(Kind.CHANGED, "prepare: two", "timeout from 1h to 90m")),
        (
            "timeout: 1h",
            "timeout: 1h, retry: {max_retries: 6, interval: 10m}",
            Difference(Kind.CHANGED, "prepare: two", "retries from 1, every 5m to 6, every 10m"),
        ),
        (
            "max_retries: 1",
            "max_retries: 2",
            Difference(Kind.CHANGED, "retry of all steps without their own", "from 1, every 5m to 2, every 5m"),
        ),
        ("FROM people", "FROM folk", Difference(Kind.CHANGED, "query", "it may return other rows")),
        ("FROM people", "FROM  people", Difference(Kind.CHANGED, "query", "only its spaces")),
        (
            "function: Custom-Back",
            "function: Custom-Undo",
            Difference(Kind.CHANGED, "rollback undo: back", "function from Custom-Back to Custom-Undo"),
        ),
    ],
)
def test_one_change_is_one_sentence(old: str, new: str, expected: Difference) -> None:
    assert told((old, new)) == [expected]


def test_comments_and_descriptions_are_no_difference() -> None:
    found = differences(parse_runbook(BEFORE), parse_runbook(f"# new\ndescription: other\n{BEFORE}"))
    assert not found.found
    assert "the source" in found.same


def test_steps_that_come_and_go_are_told() -> None:
    (added, removed) = told(
        (
            "      - {name: two, worker_id: worker-01, function: Custom-Two, timeout: 1h}",
            "      - {name: four, worker_id: worker-01, function: Custom-Four}",
        )
    )
    assert added == Difference(Kind.ADDED, "prepare: four", "calls Custom-Four")
    assert removed == Difference(Kind.REMOVED, "prepare: two", "called Custom-Two")


def test_a_renamed_phase_is_another_phase_to_batches_in_flight() -> None:
    """Rule V3: phases are matched by name."""
    (renamed,) = told(("name: cutover", "name: switch"))
    assert renamed == Difference(Kind.RENAMED, "phase switch", "was cutover; to batches in flight it is another phase")


def test_another_order_of_steps_is_told() -> None:
    lines = BEFORE.splitlines(keepends=True)
    one = next(line for line in lines if "name: one" in line)
    two = next(line for line in lines if "name: two" in line)
    (moved,) = told((one + two, two + one))
    assert moved == Difference(Kind.MOVED, "prepare: order of steps", "two, one")


def test_credentials_in_parameters_are_not_repeated() -> None:
    (changed,) = told(("Level: 1", "Level: 'https://me:hunter2@db'"))
    assert "hunter2" not in changed.told
