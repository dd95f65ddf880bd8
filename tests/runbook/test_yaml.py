"""How YAML itself is read: scalars, aliases, merges."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.runbook.reader import read_yaml
from matoolkit.runbook.source import Source
from matoolkit.runbook.templates import Json

from .documents import good


def plain(text: str) -> Json:
    root, findings = read_yaml(Source(text))
    assert not findings
    assert root is not None
    return root.to_plain()


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5), ("-5", -5), ("0", 0), ("1.5", 1.5), ("true", True), ("False", False), ("null", None), ("~", None),
        ("007", "007"), ("1.50", "1.50"), ("1e3", "1e3"), ("0x1F", "0x1F"), ("+5", "+5"), (".inf", ".inf"),
        ("12345678901234567890", "12345678901234567890"), ("9223372036854775807", 9223372036854775807),
        ("yes", "yes"), ("no", "no"), ("on", "on"), ("2026-03-03", "2026-03-03"), ("12:30", "12:30"),
        ("'5'", "5"), ('"true"', "true"), ('""', ""), ("|-\n  5", "5"), ("T-0", "T-0"),
    ],
)  # fmt: skip
def test_an_unquoted_scalar_is_a_number_only_if_nothing_is_lost(written: str, value: Json) -> None:
    assert plain(f"a: {written}") == {"a": value}


def test_anchors_aliases_and_merges_work() -> None:
    text = "a: &base {x: 1, y: 2}\nb: *base\nc: {<<: *base, y: 3}\nd:\n  <<: [*base, {x: 9, z: 8}]\n"
    base: dict[str, Any] = {"x": 1, "y": 2}
    assert plain(text) == {"a": base, "b": base, "c": {"x": 1, "y": 3}, "d": {"x": 1, "y": 2, "z": 8}}


def test_a_quoted_merge_key_is_a_key() -> None:
    assert plain("'<<': 1") == {"<<": 1}


def test_keys_are_text_as_they_are_written() -> None:
    assert plain("1: a\ntrue: b\n'x': c\n") == {"1": "a", "true": "b", "x": "c"}


def test_repeated_settings_can_be_shared_through_an_x_key() -> None:
    from matoolkit.runbook.parse import parse_runbook

    step = "{name: s%s, worker_id: w, function: Remove-EntraUser, params: {UserId: '{{Id}}'}, <<: *patient}"
    text = f"""\
x-patient: &patient
  retry: {{max_retries: 5, interval: 1h}}
name: a
data_source: {good()["data_source"]}
phases:
  - name: p
    offset: T-0
    steps:
      - {step % 1}
      - {step % 2}
"""
    first, second = parse_runbook(text).phases[0].steps
    assert first.retry == second.retry
    assert first.retry is not None


def test_a_number_of_any_length_is_read() -> None:
    assert plain(f"a: {'9' * 10_000}") == {"a": "9" * 10_000}


def test_a_nul_character_is_refused_however_it_is_written() -> None:
    _, findings = read_yaml(Source('a: "x\\0y"'))
    assert [(found.code, found.column) for found in findings] == [("RB002", 4)]


@given(st.integers())
def test_any_integer_keeps_its_digits(number: int) -> None:
    assert str(plain(f"- {number}")) in (f"[{number}]", f"['{number}']")
