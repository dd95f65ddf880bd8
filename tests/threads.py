"""Running things at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_threads(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run all tasks at once and return what each returned; an error in one is an error of the test."""
    with ThreadPoolExecutor(len(tasks)) as pool:
        return [future.result(timeout=60) for future in [pool.submit(task) for task in tasks]]
