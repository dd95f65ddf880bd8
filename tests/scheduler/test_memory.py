"""The memory of a tick does not grow with the width of rows (rule T4)."""

import subprocess
import sys
from pathlib import Path

from bench.wide import peaks_of

ROWS, LETTERS = 3_000, 20_000
# Less than three times the data; keeping the rows takes four to five times as much.
MOST_MIB = 150
HERE = Path(__file__).parents[2]


def test_t4_rows_that_are_new_or_changed_are_not_all_in_memory_at_once() -> None:
    command = [sys.executable, "-m", "bench.wide", "--here", "--rows", str(ROWS), "--letters", str(LETTERS)]
    told = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=True, timeout=300).stdout
    peaks = peaks_of(told)
    assert set(peaks) == {"first sight", "all rows changed", "unchanged"}
    assert max(peaks.values()) < MOST_MIB, told
