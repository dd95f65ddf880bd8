"""Rows of a source to candidates for membership, and the rows that are set aside (rule T3).

A bad row never stops the others. Its key, if it has one, still counts as present: a typing error removes nobody.
Candidates hold what membership is decided by. The data of rows that are not known yet is kept elsewhere, so that a
million rows fit into memory however wide they are.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from matoolkit.domain.batch_time import UnreadableBatchTime, end_of_day, read_batch_time
from matoolkit.domain.cells import UnreadableCell, json_cell, json_text, multi_valued_cell
from matoolkit.domain.keys import folded, is_usable_key
from matoolkit.domain.spreadsheets import LostKeys, is_formula_error, is_number
from matoolkit.errors import MissingColumn
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.templates import Json

_SAMPLES = 5


class Reason(StrEnum):
    """Why a row is set aside."""

    EMPTY_KEY = "empty_key"
    UNUSABLE_KEY = "unusable_key"
    NUMBER_KEY = "number_key"
    DUPLICATE_KEY = "duplicate_key"
    BAD_BATCH_TIME = "bad_batch_time"
    BAD_VALUE = "bad_value"


class KeptRows(Protocol):
    """Keeps the data of rows, which is JSON in one line."""

    def keep(self, data: bytes) -> int:
        """Keep the data of a row, and return the place where it is."""

    def at(self, place: int) -> bytes:
        """Return the data at a place."""


class RowsInMemory:
    """Keeps the data of a few rows."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []

    def keep(self, data: bytes) -> int:
        """Keep the data of a row, and return the place where it is."""
        self._rows.append(data)
        return len(self._rows) - 1

    def at(self, place: int) -> bytes:
        """Return the data at a place."""
        return self._rows[place]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that can be a member. An immediate runbook's rows have no batch time of their own.

    The fingerprint changes when anything in the row does. `kept_at` is where the row's data is kept; it is empty
    if the data is known already.
    """

    key: str
    batch_time: datetime | None
    fingerprint: bytes
    kept_at: int | None


@dataclass(frozen=True, slots=True)
class SetAside:
    """A row that cannot be used, by its key if it has one."""

    reason: Reason
    key: str
    detail: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was read: who can be a member, and who was set aside and why.

    `day_ends` has the end of its day for every batch time that is written as a date alone.
    """

    read: int
    candidates: Mapping[str, Candidate]
    set_aside_keys: frozenset[str]
    counts: Mapping[Reason, int]
    samples: Sequence[SetAside]
    kept: KeptRows = field(default_factory=RowsInMemory)
    day_ends: Mapping[datetime, datetime] = field(default_factory=dict)
    lost: LostKeys = field(default_factory=LostKeys)

    def is_present(self, folded_key: str) -> bool:
        """Whether the source returned a key, in a good row or a bad one, or what a spreadsheet may have made of it."""
        is_there = folded_key in self.candidates or folded_key in self.set_aside_keys
        return is_there or self.lost.may_be(folded_key)

    def data_of(self, candidate: Candidate) -> bytes:
        """Return the data of a row that was not known before, as JSON."""
        return b"{}" if candidate.kept_at is None else self.kept.at(candidate.kept_at)


@dataclass(slots=True)
class RowReader:
    """Reads the rows of a query, which may come in pieces; `is_known` says of a fingerprint whether its data is.

    With `only`, rows with other folded keys are passed by.
    """

    source: DataSource
    is_known: Callable[[bytes], bool] = lambda _: False
    kept: KeptRows = field(default_factory=RowsInMemory)
    only: Collection[str] | None = None
    _read: int = 0
    _candidates: dict[str, Candidate] = field(default_factory=dict)
    _set_aside: set[str] = field(default_factory=set)
    _counts: Counter[Reason] = field(default_factory=Counter)
    _samples: dict[Reason, list[SetAside]] = field(default_factory=dict)
    _zone: ZoneInfo | None = None
    # There are far fewer times than rows.
    _times: dict[Any, datetime] = field(default_factory=dict)
    _day_ends: dict[datetime, datetime] = field(default_factory=dict)
    _lost: LostKeys = field(default_factory=LostKeys)

    def __post_init__(self) -> None:
        if self.source.batch_time_zone:
            self._zone = ZoneInfo(self.source.batch_time_zone)

    def take(self, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Read some rows; columns are found whatever their case, and one that must be there and is not is an error."""
        layout = _layout(self.source, columns)
        for row in rows:
            self._read += 1
            self._take(row, layout)

    def reading(self) -> Reading:
        """Return what was read so far."""
        samples = [sample for found in self._samples.values() for sample in found]
        set_aside, counts = frozenset(self._set_aside), dict(self._counts)
        return Reading(self._read, self._candidates, set_aside, counts, samples, self.kept, self._day_ends, self._lost)

    def _take(self, row: Sequence[Any], layout: "_Layout") -> None:
        raw_key = row[layout.key_place]
        key = "" if raw_key is None else str(json_cell(raw_key)).strip()
        if not key:
            self._put_aside(Reason.EMPTY_KEY, "", f"row {self._read} has no '{self.source.primary_key}'")
            return
        if not is_usable_key(key) or (layout.is_list and is_formula_error(key)):
            self._put_aside(Reason.UNUSABLE_KEY, "", f"row {self._read} has a key that cannot be stored")
            return
        if layout.is_list and is_number(raw_key):
            self._lost.add(raw_key)
            self._put_aside(Reason.NUMBER_KEY, "", f"row {self._read}: a spreadsheet made the number {key} of the key")
            return
        name = folded(key)
        if self.only is not None and name not in self.only:
            return
        if name in self._set_aside:
            self._put_aside(Reason.DUPLICATE_KEY, key, "the key stands in more than one row")
        elif first := self._candidates.pop(name, None):
            for spelling in (first.key, key):
                self._put_aside(Reason.DUPLICATE_KEY, spelling, "the key stands in more than one row")
        else:
            self._read_row(name, key, row, layout)

    def _read_row(self, name: str, key: str, row: Sequence[Any], layout: "_Layout") -> None:
        try:
            batch_time = None if layout.time_place is None else self._time_of(row[layout.time_place])
            data = json_text(_data(row, layout))
        except UnreadableBatchTime as why:
            self._put_aside(Reason.BAD_BATCH_TIME, key, f"'{self.source.batch_time_column}': {why}")
        except UnreadableCell as why:
            self._put_aside(Reason.BAD_VALUE, key, str(why))
        else:
            fingerprint = blake2b(f"{batch_time}".encode() + data, digest_size=16).digest()
            kept_at = None if self.is_known(fingerprint) else self.kept.keep(data)
            self._candidates[name] = Candidate(name if key == name else key, batch_time, fingerprint, kept_at)

    def _time_of(self, written: Any) -> datetime:
        if not isinstance(written, str | date):
            return read_batch_time(written, self._zone)
        known = self._times.get(written)
        if known is None:
            known = self._times[written] = read_batch_time(written, self._zone)
            if (end := end_of_day(written, self._zone)) is not None:
                self._day_ends[known] = end
        return known

    def _put_aside(self, reason: Reason, key: str, detail: str) -> None:
        self._counts[reason] += 1
        if key:
            self._set_aside.add(folded(key))
        samples = self._samples.setdefault(reason, [])
        if len(samples) < _SAMPLES:
            samples.append(SetAside(reason, key, detail))


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where in a row things stand, and how multi-valued columns are packed."""

    columns: Sequence[str]
    packings: Sequence[str | None]
    key_place: int
    time_place: int | None
    is_list: bool


def _layout(source: DataSource, columns: Sequence[str]) -> _Layout:
    # If two columns have the same name, the first counts.
    places = {name.casefold(): place for place, name in reversed(list(enumerate(columns)))}
    packings = {column.name.casefold(): column.format for column in source.multi_valued_columns}
    needed = (source.primary_key, source.batch_time_column, *(column.name for column in source.multi_valued_columns))
    for name in needed:
        if name is not None and name.casefold() not in places:
            raise MissingColumn(name, columns)
    time_place = places[source.batch_time_column.casefold()] if source.batch_time_column else None
    key_place = places[source.primary_key.casefold()]
    packed = [packings.get(name.casefold()) for name in columns]
    return _Layout(columns, packed, key_place, time_place, is_list=source.type == "file")


def _data(row: Sequence[Any], layout: _Layout) -> dict[str, Json]:
    data: dict[str, Json] = {}
    for column, value, packing in zip(layout.columns, row, layout.packings, strict=True):
        if layout.is_list and is_formula_error(value):
            raise UnreadableCell(f"'{column}': its formula has the result {value}")
        try:
            data[column] = json_cell(value) if packing is None else multi_valued_cell(value, packing)
        except UnreadableCell as why:
            raise UnreadableCell(f"'{column}': {why}") from None
    return data
