"""Rule U4: a list is followed like any source, and a list that cannot be trusted changes nothing."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.calendar import Calendar, runbook
from tests.sources.lists import Lists, a_day_later

pytestmark = pytest.mark.on("sqlite")

LIST = {"type": "file", "connection": None, "file": "people.xlsx", "query": "SELECT * FROM rows"}


@pytest.fixture
def lists(tmp_path: Path) -> Lists:
    return Lists(tmp_path, a_day_later())


@pytest.fixture
def listed(calendar: Calendar, lists: Lists) -> Calendar:
    """A runbook whose people are in a workbook."""
    calendar.people = lists.source()  # type: ignore[assignment]
    calendar.publish(runbook(data_source={**LIST, "batch_time_zone": "Europe/Zurich"}))
    return calendar


def keys(calendar: Calendar) -> set[str]:
    return {key for key, status in calendar.members().items() if status == "active"}


def write(lists: Lists, calendar: Calendar, *people: Any) -> None:
    start = (calendar.start + timedelta(hours=1)).replace(tzinfo=None)
    lists.workbook(["id", "start", "city"], *([person, start, "Bern"] for person in people))


def test_u4_people_join_from_a_workbook_at_its_times(listed: Calendar, lists: Lists) -> None:
    write(lists, listed, "00123", "b", "c")
    listed.tick()
    (batch,) = listed.batches()
    assert batch.batch_start_time == listed.start
    assert keys(listed) == {"00123", "b", "c"}


def test_u4_a_list_that_is_being_written_removes_nobody(listed: Calendar, lists: Lists) -> None:
    write(lists, listed, "a", "b", "c")
    listed.tick()
    write(lists, listed, "a", "b")
    half = (lists.folder / "people.xlsx").read_bytes()
    lists.write("people.xlsx", half[: len(half) // 2])
    listed.tick()
    assert "people.xlsx" in (listed.error() or "")
    assert keys(listed) == {"a", "b", "c"}
    lists.write("people.xlsx", half)
    listed.tick()
    assert listed.error() is None
    assert keys(listed) == {"a", "b"}


def test_u4_the_last_error_says_what_to_do(listed: Calendar, lists: Lists) -> None:
    (lists.folder / "people.xlsx").unlink(missing_ok=True)
    listed.tick()
    assert "; put the file there" in (listed.error() or "")


def test_u4_keys_that_became_numbers_remove_nobody(listed: Calendar, lists: Lists) -> None:
    write(lists, listed, "00123", "b", "c")
    listed.tick()
    write(lists, listed, 123, "b", "c")
    assert listed.tick().set_aside["counts"] == {"number_key": 1}
    assert keys(listed) == {"00123", "b", "c"}
