"""Whatever is fed to the linter, it answers with findings and nothing else."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import Report, lint_runbook, parse_runbook

SAMPLES = sorted((Path(__file__).parents[2] / "runbooks").glob("*.yaml"))


def first(content: str | bytes) -> tuple[str, int, int]:
    found = lint_runbook(content).findings[0]
    return found.code, found.line, found.column


def test_two_mebibytes_are_refused_before_they_are_read() -> None:
    assert first(b"name: a\n" + b"#" * (2 * 1024 * 1024)) == ("RB003", 1, 1)
    assert first("é" * (600 * 1024)) == ("RB003", 1, 1)


def test_a_document_of_just_the_allowed_size_is_read() -> None:
    assert "RB003" not in {found.code for found in lint_runbook("name: a\n".ljust(1024 * 1024, "#")).findings}


def test_columns_count_characters_and_lines_end_where_yaml_ends_them() -> None:
    assert first("x-ä: 1\r\nx-é: 2\r\nx-é: 3\r\n") == ("RB102", 1, 1)
    assert first("a: 1\rb: [\x00]") == ("RB002", 2, 5)
    assert first("é: \x07") == ("RB002", 1, 4)
    assert first("é: ".encode() + b"\xff") == ("RB001", 1, 4)
    assert first("\ufeffname: a\nname: b\n") == ("RB102", 1, 1)


def test_an_alias_bomb_is_defused() -> None:
    bomb = "x-0: &a0 [lol, lol]\n" + "".join(f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert [found.code for found in lint_runbook(bomb).findings] == ["RB008"]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{a: " * 5_000, "- " * 50_000, "&a " * 1_000, "? " * 5_000, "!" * 9_999]
)
def test_nesting_without_end_is_an_answer_not_a_crash(text: str) -> None:
    assert lint_runbook(text).runbook is None


def test_five_thousand_steps_are_read_to_the_last() -> None:
    steps = "".join(f"      - {{name: s{n}, worker_id: w, function: Nope}}\n" for n in range(5_000))
    text = f"name: a\nphases:\n  - name: p\n    offset: T-0\n    steps:\n{steps}"
    report = lint_runbook(text)
    assert sum(found.code == "RB307" for found in report.findings) == 5_000
    assert report.findings[-1].line == 5_005


@given(st.text())
def test_any_text_gives_a_report_or_the_parsers_own_error(text: str) -> None:
    assert isinstance(lint_runbook(text), Report)
    with pytest.raises(InvalidRunbook):
        parse_runbook(text)


@given(st.binary())
def test_any_bytes_give_a_report(content: bytes) -> None:
    assert isinstance(lint_runbook(content), Report)


WORDS = ["name", "phases", "init", "rollbacks", "data_source", "steps", "params", "T-0", "5m", "null", "1", "x-", "é"]
PHRASES = ["SELECT 1", "secret:", "_batch_id", "on_failure: "]
MARKS = [": ", ":\n  ", "\n", "\n  - ", "- ", "{{", "}}", "{", "}", "[", "]", "&a ", "*a", "<<: ", "'", '"', "|\n"]
ODDITIES = ["!x ", "#", "\t", "? ", "---\n", "...", "%YAML 1.2", "\\", "\u2028", ","]
YAML_BITS = st.lists(st.sampled_from([*WORDS, *PHRASES, *MARKS, *ODDITIES]), max_size=40).map("".join)


@given(YAML_BITS)
def test_text_that_is_nearly_a_runbook_gives_a_report(text: str) -> None:
    assert isinstance(lint_runbook(text), Report)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_a_sample_with_any_accident_gives_a_report_with_positions_inside_it(sample: Path) -> None:
    original = sample.read_text(encoding="utf-8")
    chance = random.Random(sample.name)
    for _ in range(150):
        text = damaged(original, chance)
        report = lint_runbook(text)
        for found in report.findings:
            assert 1 <= found.line <= len(report.source.lines) + 1
            assert found.column >= 1
        assert (report.runbook is None) == any(found.is_error for found in report.findings)


def damaged(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    where = chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[where]
        case 1:
            lines.insert(where, lines[chance.randrange(len(lines))])
        case 2:
            lines[where] = " " + lines[where]
        case 3:
            lines[where] = lines[where].lstrip()
        case 4:
            spot = chance.randrange(len(text))
            return text[:spot] + chance.choice("{}[]:,-'\"#&*!|>%@`\t\n é") + text[spot:]
        case _:
            spot = chance.randrange(len(text))
            return text[:spot] + text[spot + 1 :]
    return "".join(lines)
