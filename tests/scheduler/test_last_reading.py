"""Rules O14, T4 and D2: what a reading leaves behind for those who are retried."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from matoolkit.domain.keys import folded
from matoolkit.errors import SourceFailed
from matoolkit.ports import Piece
from matoolkit.runbook.templates import Json
from matoolkit.store.datatables import TypedRow, current_rows_of
from matoolkit.store.runbooks import last_read
from matoolkit.store.setaside import keys_set_aside
from tests.scheduler.calendar import TICK, Calendar, runbook

VALUES: list[Json] = ["text", "", None, 7, 7.25, True, ["a", "b"], {"a": [None]}, "7", "null", '["a"]']


class Wide:
    """A source with columns of every type; the last ones may be missing."""

    def __init__(self, start: str, values: list[Json]) -> None:
        self.start = start
        self.values = values

    def pieces(self, _: str, /) -> Iterator[Piece]:
        columns = ("id", "start", *(f"c{number}" for number in range(len(self.values))))
        yield Piece(columns, [("Ann", self.start, *self.values)])


def rows(calendar: Calendar, *keys: str) -> dict[str, TypedRow]:
    with calendar.store.reading() as tx:
        version = last_read(tx, "wave")
        assert version
        return current_rows_of(tx, version.data_table, [folded(key) for key in keys])


def test_o14_a_row_is_read_back_with_the_types_that_it_had(calendar: Calendar) -> None:
    start = calendar.start.isoformat()
    calendar.people = Wide(start, VALUES)  # type: ignore[assignment]
    calendar.tick()
    expected: dict[str, Any] = {f"c{number}": value for number, value in enumerate(VALUES)}
    row = rows(calendar, "ann")["ann"]
    assert row.data == {"id": "Ann", "start": start} | expected
    assert [type(value) for value in row.data.values()][2:] == [type(value) for value in VALUES]
    assert row.batch_time == calendar.start
    (member,) = calendar.sql("SELECT data_hash FROM batch_members")
    assert member == (row.fingerprint,)
    calendar.people = Wide(start, VALUES[:2])  # type: ignore[assignment]
    calendar.tick(TICK)
    assert rows(calendar, "ann")["ann"].data.keys() == {"id", "start", "c0", "c1"}, "a column that is gone is gone"


def test_o14_a_row_that_left_or_was_never_there_is_not_found(calendar: Calendar) -> None:
    calendar.in_source("ann", "bob")
    calendar.tick()
    calendar.gone("bob")
    calendar.tick(TICK)
    assert rows(calendar, "Ann", "bob", "eve").keys() == {"ann"}


def test_o14_the_last_reading_is_that_of_the_version_that_was_read_last(calendar: Calendar) -> None:
    calendar.in_source("ann")
    calendar.tick()
    first = calendar.clock.now()
    calendar.publish(runbook() + "# 2\n")
    with calendar.store.reading() as tx:
        before = last_read(tx, "wave")
    calendar.people.fault = SourceFailed("the source is away")
    assert calendar.tick(TICK).error
    with calendar.store.reading() as tx:
        failed = last_read(tx, "wave")
    assert before
    assert failed
    assert (before.version, failed.version, failed.read_at) == (1, 1, first)


def test_o14_keys_that_are_set_aside_are_remembered_until_they_are_not(calendar: Calendar) -> None:
    calendar.in_source("ann", "bob")
    calendar.tick()

    def set_aside() -> set[str]:
        with calendar.store.reading() as tx:
            version = last_read(tx, "wave")
            assert version
            return keys_set_aside(tx, version.id)

    assert set_aside() == set()
    calendar.in_source("bob", at="tomorrow")
    calendar.in_source("eve", at="some day")
    calendar.tick(TICK)
    assert set_aside() == {"bob", "eve"}
    calendar.in_source("bob")
    calendar.tick(TICK)
    assert set_aside() == {"eve"}


def test_o14_a_table_of_an_older_release_is_completed_by_the_next_reading(calendar: Calendar) -> None:
    calendar.in_source("ann", "bob", "eve")
    calendar.tick()
    with calendar.store.transaction() as tx:
        tx.execute(text(f"ALTER TABLE {calendar.data_table} DROP COLUMN _cell_kinds"))
        tx.execute(text("UPDATE runbooks SET read_at = NULL"))
    calendar.gone("eve")
    calendar.tick(TICK)
    assert rows(calendar, "ann", "bob", "eve").keys() == {"ann", "bob"}
    current = calendar.sql(f"SELECT _member_key FROM {calendar.data_table} WHERE _is_current = true ORDER BY 1")
    assert current == [("ann",), ("bob",)]


def test_t4_what_is_known_of_a_reading_costs_unchanged_rows_nothing(
    calendar: Calendar, statements: Callable[[], list[str]]
) -> None:
    calendar.in_source(*(f"m{number}" for number in range(20)))
    calendar.in_source("broken", at="tomorrow")
    calendar.tick()
    statements()
    calendar.tick(timedelta(minutes=5))
    assert not [one for one in statements() if "set_aside_keys" in one and not one.lstrip().startswith("SELECT")]
