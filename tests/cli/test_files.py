"""Files that the command line writes: who may read them is for their owner to say."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from matoolkit.cli.files import write_file


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_is_as_private_as_its_owner_wants_new_files_to_be(tmp_path: Path) -> None:
    path = tmp_path / "members.csv"
    assert write_file(str(path), [b"a,", b"b"], replace=False) == 3
    assert mode_of(path) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_file_that_is_replaced_stays_as_private_as_it_was(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "members.csv"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_file(str(path), [b"new"], replace=True)
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)
