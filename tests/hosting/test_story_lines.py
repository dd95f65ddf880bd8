"""How times are told in the story."""

from datetime import timedelta

import pytest

from matoolkit.hosting.story.lines import moment_text, offset_text
from tests.databases import NOON


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "T-0"), (-1, "T-1s"), (61, "T+1m1s"), (-120, "T-2m"), (-719, "T-11m"), (7200, "T+120m"),
        (40_000, "T+11h"), (-900_000, "T-10d"),
    ],
)  # fmt: skip
def test_offsets_are_as_exact_as_helps(seconds: int, text: str) -> None:
    assert offset_text(timedelta(seconds=seconds)) == text


def test_a_moment_of_another_day_has_its_date() -> None:
    assert moment_text(NOON + timedelta(seconds=5), NOON) == "12:00:05"
    assert moment_text(NOON - timedelta(days=1), NOON) == f"{NOON - timedelta(days=1):%Y-%m-%d} 12:00"
