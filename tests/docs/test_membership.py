"""docs/explanation/membership.md explains every case that the tests prove, and no other."""

import re
from pathlib import Path

from tests.domain.cases import CASES
from tests.domain.immediate_cases import IMMEDIATE_CASES

PAGE = (Path(__file__).parents[2] / "docs" / "explanation" / "membership.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
CELLS = [row for row in ROWS if row[0] not in {"Case", "---"}]


def test_t5_t6_t7_every_case_is_explained_once() -> None:
    explained = [row[0] for row in CELLS]
    proved = [case.name for case in (*CASES, *IMMEDIATE_CASES)]
    assert sorted(explained) == sorted(proved)


def test_t5_t6_t7_every_explanation_says_what_happens_and_why() -> None:
    assert [row for row in CELLS if len(row) != 4 or not all(row)] == []


def test_every_rule_of_a_tick_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "reference" / "behaviour.md").read_text(encoding="utf-8")
    rules = re.findall(r"^\*\*(T\d+)", reference, re.MULTILINE)
    assert rules == [f"T{number}" for number in range(1, 11)]
