"""Rule T3: bad rows never stop the others, and their keys count as present."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matoolkit.domain.cells import UnreadableCell, json_cell, multi_valued_cell
from matoolkit.domain.rows import Reading, Reason, RowReader
from matoolkit.errors import MissingColumn
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.templates import Json

COLUMNS = ["Id", "Upn", "Cutover", "Aliases"]
T = datetime(2026, 3, 3, 20, tzinfo=UTC)


def source(**changes: Any) -> DataSource:
    document = {
        "type": "sql",
        "connection": "SOURCE",
        "query": "SELECT 1",
        "primary_key": "ID",
        "batch_time_column": "cutover",
        "multi_valued_columns": [{"name": "aliases", "format": "semicolon_delimited"}],
    } | changes
    return DataSource.model_validate({key: value for key, value in document.items() if value is not None})


def read(*rows: tuple[Any, ...], reader: RowReader | None = None) -> Reading:
    reader = reader or RowReader(source())
    reader.take(COLUMNS, rows)
    return reader.reading()


def row(key: Any, cutover: Any = "2026-03-03 20:00", aliases: Any = "a;b") -> tuple[Any, ...]:
    return key, f"{key}@example.com", cutover, aliases


def test_t3_a_good_row_is_a_candidate_with_its_data() -> None:
    reading = read(row(" Ada "))
    candidate = reading.candidates["ada"]
    assert (candidate.key, candidate.batch_time) == ("Ada", T)
    assert orjson.loads(reading.data_of(candidate))["Aliases"] == ["a", "b"]
    assert (reading.read, reading.counts) == (1, {})


def test_t4_what_is_known_already_is_not_kept() -> None:
    known = {candidate.fingerprint for candidate in read(row("ada"), row("bob")).candidates.values()}
    reading = read(row("ada"), row("bob", aliases="c"), reader=RowReader(source(), known.__contains__))
    assert reading.candidates["ada"].kept_at is None
    assert orjson.loads(reading.data_of(reading.candidates["bob"]))["Aliases"] == ["c"]


def test_t4_a_fingerprint_changes_with_the_time_that_a_row_means() -> None:
    (here, there) = (
        read(row("ada"), reader=RowReader(source(batch_time_zone=zone))).candidates["ada"].fingerprint
        for zone in ("Europe/Berlin", "Europe/Lisbon")
    )
    assert here != there


def test_t3_half_a_character_in_a_value_is_replaced() -> None:
    reading = read(row("ada", aliases="a\ud800;b"))
    assert orjson.loads(reading.data_of(reading.candidates["ada"]))["Aliases"] == ["a\N{REPLACEMENT CHARACTER}", "b"]


@pytest.mark.parametrize("key", [None, "", "   "])
def test_t3_a_row_without_key_is_set_aside(key: Any) -> None:
    reading = read(row(key), row("bob"))
    assert (reading.counts, list(reading.candidates)) == ({Reason.EMPTY_KEY: 1}, ["bob"])


@pytest.mark.parametrize("key", ["k" * 401, "a\0b", "a\ud800b"])
def test_t3_a_key_that_cannot_be_stored_is_set_aside(key: str) -> None:
    assert read(row(key)).counts == {Reason.UNUSABLE_KEY: 1}


def test_t3_all_rows_of_a_duplicate_key_are_set_aside_whatever_its_case() -> None:
    """Defect: one duplicate key aborts every tick."""
    reading = read(row("Ada"), row("bob"), row("ADA "), row("ada"))
    assert (reading.counts, list(reading.candidates)) == ({Reason.DUPLICATE_KEY: 3}, ["bob"])
    assert reading.is_present("ada")


def test_t3_an_unreadable_batch_time_sets_its_row_aside_and_the_key_counts_as_present() -> None:
    reading = read(row("Ada", "03/04/2026"), row("bob"))
    assert (reading.counts, list(reading.candidates)) == ({Reason.BAD_BATCH_TIME: 1}, ["bob"])
    assert reading.is_present("ada")
    assert not reading.is_present("carol")
    (sample,) = reading.samples
    assert (sample.key, sample.reason) == ("Ada", Reason.BAD_BATCH_TIME)
    assert "ambiguous" in sample.detail


def test_t3_a_second_row_of_a_key_that_was_set_aside_is_set_aside_too() -> None:
    reading = read(row("Ada", "03/04/2026"), row("ada"))
    assert reading.counts == {Reason.BAD_BATCH_TIME: 1, Reason.DUPLICATE_KEY: 1}
    assert reading.candidates == {}


def test_t3_samples_are_few_and_of_every_reason() -> None:
    reading = read(*(row(None) for _ in range(100)), row("ada", "soon"))
    assert reading.counts[Reason.EMPTY_KEY] == 100
    assert len(reading.samples) == 6


@pytest.mark.parametrize(
    "changes",
    [
        {"primary_key": "Idd"},
        {"batch_time_column": "Cutoverr"},
        {"multi_valued_columns": [{"name": "Aliasess", "format": "json_array"}]},
    ],
)
def test_a_column_that_the_query_did_not_return_is_named_with_the_nearest_one(changes: dict[str, Any]) -> None:
    with pytest.raises(MissingColumn) as missing:
        read(row("ada"), reader=RowReader(source(**changes)))
    assert missing.value.hint == f"did you mean '{missing.value.column[:-1]}'?"


def test_rows_may_come_in_pieces() -> None:
    reader = RowReader(source())
    read(row("ada"), reader=reader)
    reading = read(row("ADA"), row("bob"), reader=reader)
    assert (reading.read, list(reading.candidates)) == (3, ["bob"])


def test_t7_rows_of_an_immediate_runbook_have_no_time_of_their_own() -> None:
    immediate = source(batch_time="immediate", batch_time_column=None)
    assert read(row("ada", "whenever"), reader=RowReader(immediate)).candidates["ada"].batch_time is None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, None),
        (True, True),
        (5, 5),
        (2**70, str(2**70)),
        (1.5, 1.5),
        (float("nan"), "nan"),
        (Decimal("12.50"), "12.50"),
        (datetime(2026, 3, 3, 20), "2026-03-03T20:00:00Z"),  # noqa: DTZ001 - as drivers return it
        (T, "2026-03-03T20:00:00Z"),
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "0001-01-01T00:00:00+02:00"),
        (date(2026, 3, 3), "2026-03-03"),
        (time(20, 30), "20:30:00"),
        (UUID("0D7A52C1-3C1C-4A0E-8A53-6F6A7F1B9E22"), "0d7a52c1-3c1c-4a0e-8a53-6f6a7f1b9e22"),
        (b"\x00\xff", "AP8="),
        (memoryview(b"\x00\xff"), "AP8="),
        ([Decimal(1), None], ["1", None]),
        ({1: T}, {"1": "2026-03-03T20:00:00Z"}),
        (1j, "1j"),
    ],
)
def test_values_of_every_type_become_json(value: Any, written: Json) -> None:
    assert json_cell(value) == written


@pytest.mark.parametrize(
    ("value", "packing", "items"),
    [
        ("a; b ;;c", "semicolon_delimited", ["a", "b", "c"]),
        ("a,b", "comma_delimited", ["a", "b"]),
        ("a;b", "comma_delimited", ["a;b"]),
        ('["a", 1, null]', "json_array", ["a", 1, None]),
        ("", "semicolon_delimited", []),
        (" ", "json_array", []),
        (None, "json_array", None),
        (["a", Decimal(1)], "json_array", ["a", "1"]),
        (5, "comma_delimited", [5]),
    ],
)
def test_multi_valued_columns_are_unpacked(value: Any, packing: str, items: Json) -> None:
    assert multi_valued_cell(value, packing) == items


@pytest.mark.parametrize("text", ["a;b", '{"a": 1}', '"a"', "[1"])
def test_a_json_array_that_is_none_sets_its_row_aside(text: str) -> None:
    with pytest.raises(UnreadableCell):
        multi_valued_cell(text, "json_array")
    json_source = source(multi_valued_columns=[{"name": "Aliases", "format": "json_array"}])
    reading = read(row("ada", aliases=text), reader=RowReader(json_source))
    assert reading.counts == {Reason.BAD_VALUE: 1}
    assert "'Aliases'" in reading.samples[0].detail


KEYS = st.sampled_from(["ada", "Ada", " ADA", "bob", "", None, "carol"])
TIMES = st.sampled_from(["2026-03-03 20:00", "03/04/2026", None, T])


@given(st.lists(st.tuples(KEYS, TIMES), max_size=12))
def test_t3_every_row_is_a_candidate_or_counted_and_no_key_is_both(rows: list[tuple[Any, Any]]) -> None:
    reading = read(*(row(key, cutover) for key, cutover in rows))
    assert len(reading.candidates) + sum(reading.counts.values()) == reading.read == len(rows)
    assert reading.set_aside_keys.isdisjoint(reading.candidates)
    for key, _ in rows:
        assert not (key or "").strip() or reading.is_present(key.strip().casefold())
