"""Threads of one process write to a file in turn."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from matoolkit.errors import StoreBusy
from matoolkit.store import Store, open_store


@contextmanager
def another_thread_writing(store: Store) -> Iterator[None]:
    begun, done = threading.Event(), threading.Event()

    def write() -> None:
        with store.transaction():
            begun.set()
            done.wait()

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_who_waits_too_long_for_another_thread_is_told_so(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db", patience_seconds=0.01)
    with another_thread_writing(store), pytest.raises(StoreBusy), store.transaction():
        pass
    with store.transaction():
        pass  # the line is free again
    store.close()


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db", patience_seconds=0.01)
    with another_thread_writing(store), store.reading() as tx:
        assert not tx.has_table("anything")
    store.close()


def test_a_transaction_that_fails_lets_the_next_one_write(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/state.db", patience_seconds=0.01)
    with pytest.raises(ZeroDivisionError), store.transaction():
        _ = 1 / 0
    with store.transaction():
        pass
    store.close()
