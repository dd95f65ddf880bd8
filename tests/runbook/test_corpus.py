"""Bad runbooks, one theme a file, and exactly what the linter must say of each: `code:line:column`."""

from pathlib import Path

import pytest

from matoolkit.runbook.findings import FINDING_KINDS
from matoolkit.runbook.parse import lint_runbook

CORPUS = Path(__file__).parent / "corpus"


def expectations() -> dict[str, list[str]]:
    lines = (CORPUS / "EXPECTED.txt").read_text(encoding="utf-8").splitlines()
    return {name: findings for name, *findings in (line.split() for line in lines if line and line[0] != "#")}


EXPECTED = expectations()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bad_runbook_is_told_where_and_what(name: str) -> None:
    report = lint_runbook((CORPUS / name).read_bytes())
    assert [f"{found.code}:{found.line}:{found.column}" for found in report.findings] == EXPECTED[name]


def test_every_file_of_the_corpus_has_its_expectation() -> None:
    assert {path.name for path in CORPUS.iterdir()} - {"EXPECTED.txt"} == set(EXPECTED)
    assert len(EXPECTED) >= 60


def test_every_finding_is_shown_by_some_file() -> None:
    shown = {finding.split(":")[0] for findings in EXPECTED.values() for finding in findings}
    # A file of more than a mebibyte is made by a test rather than stored.
    assert set(FINDING_KINDS) - shown == {"RB003"}


@pytest.mark.parametrize("name", EXPECTED)
def test_r1_every_finding_says_how_to_mend_it(name: str) -> None:
    assert all(found.hint for found in lint_runbook((CORPUS / name).read_bytes()).findings)
