"""Digests: what stands for exactly what people were shown, and how that differs from what is there now (rule S2)."""

import re
from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b

from matoolkit.records import record
from matoolkit.words import counted, minute_told

_HASH_BYTES = 16
_PARTS = 5
# People may write anything; no larger number fits into the columns with which these are compared.
_NUMBER = re.compile(r"[0-9]{1,9}")


@record
class Shown:
    """What a digest stands for besides its hash (rule S2)."""

    version: int
    start: datetime | None
    joined_no: int
    members: int
    hash: str

    def __str__(self) -> str:
        """Write the digest; it says what it was made of, so that a later one can be compared with it."""
        start = "manual" if self.start is None else f"{self.start:%Y%m%dT%H%M%SZ}"
        return f"v{self.version}-{start}-{self.joined_no}-{self.members}-{self.hash}"


def shown(
    batch_id: int,
    subject: str,
    version: int,
    start: datetime | None,
    joined_no: int,
    members: Sequence[tuple[int, int]],
) -> Shown:
    """Return the digest of what is asked for: the batch, T, the version, what begins, and members in their epochs."""
    # The number does not count: who joined and left again since was never in the list.
    parts = [str(batch_id), subject, str(version), start.isoformat() if start else ""]
    parts += [f"{number}:{epoch}" for number, epoch in sorted(members)]
    fingerprint = blake2b("\n".join(parts).encode(), digest_size=_HASH_BYTES).hexdigest()
    return Shown(version, start, joined_no, len(members), fingerprint)


def parsed_digest(text: str) -> Shown | None:
    """Read a digest again; nothing if it is none."""
    parts = text.strip().removeprefix("v").split("-")
    if len(parts) != _PARTS:
        return None
    version, start, joined_no, members, fingerprint = parts
    if not all(_NUMBER.fullmatch(one) for one in (version, joined_no, members)):
        return None
    try:
        at = None if start == "manual" else datetime.strptime(f"{start}+0000", "%Y%m%dT%H%M%SZ%z")
    except ValueError:
        return None
    return Shown(int(version), at, int(joined_no), int(members), fingerprint)


def is_same(one: str, other: str) -> bool:
    """Tell whether two digests stand for the same."""
    return bool(one) and one.rpartition("-")[2] == other.rpartition("-")[2]


@record
class Changed:
    """What is different from what somebody saw: who joined and left, with some of them by name, T, the version."""

    joined: int = 0
    joined_keys: Sequence[str] = ()
    left: int = 0
    left_keys: Sequence[str] = ()
    start: tuple[datetime | None, datetime | None] | None = None
    version: tuple[int, int] | None = None

    def __str__(self) -> str:
        """Say it in a line."""
        told = []
        if self.version is not None:
            told.append(f"version {self.version[0]} was shown, and it is version {self.version[1]}")
        if self.start is not None:
            told.append(f"T was {minute_told(self.start[0])}, and is {minute_told(self.start[1])}")
        if self.joined:
            told.append(f"{counted(self.joined, 'member')} joined{_named(self.joined, self.joined_keys)}")
        if self.left:
            told.append(f"{counted(self.left, 'member')} left{_named(self.left, self.left_keys)}")
        return "; ".join(told) or "it is about something else"


def _named(number: int, keys: Sequence[str]) -> str:
    more = f" and {number - len(keys):,} more" if number > len(keys) else ""
    return f" ({', '.join(keys)}{more})" if keys else ""
