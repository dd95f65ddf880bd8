"""Where a tick keeps the data of rows: nothing is lost or mixed up, in memory or in a file (rule T4)."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from matoolkit.errors import SpoolFailed
from matoolkit.scheduler.spool import Spool


@pytest.fixture(params=[1_000_000, 10], ids=["in memory", "in a file"])
def spool(request: pytest.FixtureRequest) -> Iterator[Spool]:
    with closing(Spool(request.param)) as made:
        yield made


def test_t4_every_row_is_found_at_its_place(spool: Spool) -> None:
    rows = [b'{"n":%d,"wide":"%s"}' % (number, b"x" * number) for number in range(100)]
    places = [spool.keep(row) for row in rows]
    assert [spool.at(place) for place in reversed(places)] == rows[::-1]


def test_t4_rows_may_be_kept_after_others_were_looked_at(spool: Spool) -> None:
    first, second = spool.keep(b'{"n":1}'), spool.keep(b'{"n":2}')
    assert spool.at(first) == b'{"n":1}'
    third = spool.keep(b'{"n":3}')
    assert [spool.at(place) for place in (second, third)] == [b'{"n":2}', b'{"n":3}']


def test_t2_a_folder_that_cannot_take_the_rows_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with closing(Spool(10)) as spool, pytest.raises(SpoolFailed, match="missing"):
        spool.keep(b"x" * 100)
