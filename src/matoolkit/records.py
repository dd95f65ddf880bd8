"""Records that are made by the thousand.

Nobody changes one: mypy sees to that as it does for a frozen dataclass. Python does not, because a frozen dataclass
sets each of its fields by a call, and takes four times as long to make.
"""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

RecordT = TypeVar("RecordT")


@dataclass_transform(frozen_default=True)
def record(plain: type[RecordT]) -> type[RecordT]:
    """Make a class a record of its fields."""
    return dataclass(slots=True, unsafe_hash=True)(plain)
