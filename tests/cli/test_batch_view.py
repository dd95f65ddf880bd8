"""A batch at a glance, in 80 columns."""

from datetime import timedelta
from typing import Any

import pytest
from rich.cells import cell_len

from matoolkit.cli.batch_view import batch_view
from tests.databases import NOON


def phase(name: str, days: int, status: str, **steps: int) -> dict[str, Any]:
    return {
        "phaseName": name,
        "offsetMinutes": days * 1440,
        "phaseIndex": 0,
        "runbookVersion": 3,
        "dueAt": (NOON + timedelta(days=2 - days)).isoformat(),
        "status": status,
        "steps": steps,
    }


BATCH: dict[str, Any] = {
    "id": 42,
    "runbookName": "wave",
    "status": "active",
    "isManual": False,
    "batchStartTime": (NOON + timedelta(days=2)).isoformat(),
    "members": {"active": 9811, "failed": 63},
    "memberStates": {"under_way": 4811, "waiting": 5000, "failed": 63},
    "initSteps": [{"status": "succeeded"}, {"status": "succeeded"}],
    "phases": [
        phase("cutover", 0, "pending"),
        phase("announce", 5, "completed", succeeded=9874),
        phase("pre-stage-of-a-very-long-name", 3, "dispatched", succeeded=5000, dispatched=4811, failed=63),
        phase("old", 4, "superseded", cancelled=3),
    ],
}
FAILURE = {
    "phaseName": "pre-stage",
    "stepName": "copy",
    "error": "over quota " * 20,
    "members": 63,
    "exampleStepId": 815,
}


def drawn(batch: dict[str, Any] = BATCH, width: int | None = 80, **options: Any) -> list[str]:
    return batch_view(batch, options.pop("failures", []), NOON, width, **options).plain.splitlines()


def test_phases_stand_on_a_time_line_with_a_mark_where_now_is() -> None:
    lines = drawn()
    assert lines[0] == "batch 42 · wave v3 · ● active"
    assert lines[1] == "T        2026-03-05 12:00 UTC, now T-2d"
    assert lines[2] == "members  4,811 ◐ under way · 5,000 ○ waiting · 63 ✖ failed"
    assert lines[3] == "init     2 ✔ succeeded"
    offsets = [line.split()[1] for line in lines[6:]]
    assert offsets == ["T-5d", "T-3d", "now", "T-0"]
    assert "✔ completed" in lines[6]
    assert lines[6].endswith("9,874/9,874")
    assert lines[7].endswith("5,063/9,874 ✖63")


def test_u1_a_bar_of_cancelled_steps_is_not_full() -> None:
    lines = drawn({**BATCH, "phases": [phase("stopped", 0, "cancelled", succeeded=1, cancelled=3)]})
    (line,) = [line for line in lines if "stopped" in line]
    assert line.endswith("1/4")
    assert line.count("━") * 3 <= line.count("╌")


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("letters", [False, True])
def test_no_line_is_wider_than_the_terminal(width: int, *, letters: bool) -> None:
    failures = [{**FAILURE, "exampleStepId": number} for number in range(8)]
    lines = drawn({**BATCH, "isHeld": True, "holdReason": "r" * 300}, width, failures=failures, letters=letters)
    assert max(cell_len(line) for line in lines) <= width
    assert not letters or all(line.isascii() for line in lines)


def test_in_a_narrow_terminal_the_counts_and_what_people_decide_by_go_last() -> None:
    batch = {**BATCH, "isHeld": True, "holdReason": "more than a tenth of the members would leave " * 3}
    lines = drawn(batch, 60, failures=[FAILURE])
    assert any(line.endswith("9,874/9,874") for line in lines)
    assert any(line.endswith("5,063/9,874 ✖63") for line in lines)
    assert not any("28 Feb" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    assert text.count("more than a tenth of the members would leave") == 3
    assert text.count("over quota") == 20


def test_without_a_terminal_nothing_is_cut() -> None:
    text = "\n".join(drawn(width=None, failures=[FAILURE]))
    assert "pre-stage-of-a-very-long-name" in text
    assert FAILURE["error"].strip() in text  # type: ignore[attr-defined]
    assert "…" not in text


def test_failures_are_grouped_by_error_with_the_command_that_tries_them_again() -> None:
    lines = drawn(failures=[{**FAILURE, "exampleStepId": number} for number in range(8)])
    at = lines.index("failures by error")
    assert lines[at + 1].startswith("✖ 63 members in pre-stage/copy: over quota")
    assert lines[at + 5] == "    matoolkit batch retry 42 --like 0"
    assert lines[-1] == "and 3 more: matoolkit batch failures 42"


def test_no_retry_is_proposed_that_would_be_refused() -> None:
    lines = drawn({**BATCH, "status": "cancelled"}, failures=[FAILURE])
    assert "failures by error" in lines
    assert not any("matoolkit batch retry" in line for line in lines)


def test_a_manual_batch_says_how_to_go_on_and_a_held_one_what_it_waits_for() -> None:
    manual = {**BATCH, "isManual": True, "batchStartTime": None}
    lines = drawn(manual)
    assert "T        none: `matoolkit batch advance 42` starts what comes next" in lines
    assert not any(" now " in line for line in lines)
    lines = drawn({**BATCH, "isHeld": True, "holdReason": "12 members would leave"})
    assert "held     12 members would leave" in lines
    assert "         matoolkit hold show 42" in lines


def test_a_batch_that_is_over_has_no_now_and_one_whose_phases_are_past_has_it_at_the_end() -> None:
    assert not any("▶" in line for line in drawn({**BATCH, "status": "completed"}))
    late = {**BATCH, "phases": [phase("announce", 5, "completed", succeeded=1)]}
    assert drawn(late)[-1].startswith("▶ now")


def test_a_batch_without_anything_is_still_drawn() -> None:
    assert drawn({"id": 1})[0] == "batch 1 · None · ? None"
