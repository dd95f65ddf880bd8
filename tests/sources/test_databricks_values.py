"""Values as Databricks writes them, and as what their columns hold."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from matoolkit.domain.cells import json_cell
from matoolkit.sources.databricks.values import read_rows, readers


def read(kind: str, text: Any, type_text: str | None = None) -> Any:
    column = {"name": "c", "type_name": kind} | ({"type_text": type_text} if type_text else {})
    ((value,),) = read_rows([[text]], readers([column]))
    return value


@pytest.mark.parametrize(
    ("kind", "text", "value", "cell"),
    [
        ("LONG", "-9223372036854775808", -(2**63), str(-(2**63))),
        ("SHORT", "12", 12, 12),
        ("FLOAT", "-Infinity", -math.inf, "-inf"),
        ("DOUBLE", "0.1", 0.1, 0.1),
        ("DECIMAL", "99999999999999999999999999999999999999", Decimal("9" * 38), "9" * 38),
        ("DECIMAL", "0.10", Decimal("0.10"), "0.10"),
        ("BOOLEAN", "TRUE", True, True),
        ("DATE", "0001-01-01", date(1, 1, 1), "0001-01-01"),
        ("TIMESTAMP", "2026-03-03T20:00:00.123456Z", datetime(2026, 3, 3, 20, 0, 0, 123456, UTC), None),
        ("TIMESTAMP", "2026-03-03T21:00:00+01:00", datetime(2026, 3, 3, 20, tzinfo=UTC), "2026-03-03T20:00:00Z"),
        ("TIMESTAMP", "2026-03-03 20:00:00", datetime(2026, 3, 3, 20, tzinfo=UTC), "2026-03-03T20:00:00Z"),
        ("STRUCT", '{"a": {"b": [1.5, 2]}}', {"a": {"b": [1.5, 2]}}, {"a": {"b": [1.5, 2]}}),
        ("MAP", "{}", {}, {}),
        ("ARRAY", "[0.1, 1.10]", [0.1, 1.1], [0.1, 1.1]),
        ("ARRAY", "[12345678901234567890.12]", [Decimal("12345678901234567890.12")], ["12345678901234567890.12"]),
        ("ARRAY", "[12345678901234567890123]", [12345678901234567890123], ["12345678901234567890123"]),
        ("BINARY", "AAEC", b"\x00\x01\x02", "AAEC"),
        ("INTERVAL", "1-2", "1-2", "1-2"),
        ("SOMETHING_NEW", "x", "x", "x"),
    ],
)
def test_a_text_is_read_by_its_columns_type_and_loses_nothing(kind: str, text: str, value: Any, cell: Any) -> None:
    got = read(kind, text)
    assert (got, type(got)) == (value, type(value))
    if cell is not None:
        assert json_cell(got) == cell


def test_not_a_number_is_one_and_is_stored_as_text() -> None:
    assert math.isnan(read("DOUBLE", "NaN"))
    assert json_cell(read("DOUBLE", "NaN")) == "nan"


@pytest.mark.parametrize("kind", ["INT", "DOUBLE", "ARRAY", "BOOLEAN", "TIMESTAMP", "STRING", "NULL"])
def test_null_is_null(kind: str) -> None:
    assert read(kind, None) is None


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("INT", "many"),
        ("INT", "9" * 5000),
        ("DECIMAL", "1,5"),
        ("BOOLEAN", "yes"),
        ("DATE", "+12345-01-01"),
        ("TIMESTAMP", "-0044-03-15T12:00:00Z"),
        ("TIMESTAMP", "0001-01-01T00:00:00+14:00"),
        ("ARRAY", "[1,"),
        ("ARRAY", "[" * 100_000),
        ("BINARY", "not base64"),
    ],
)
def test_t3_a_text_that_does_not_read_as_its_columns_type_stays_text(kind: str, text: str) -> None:
    assert read(kind, text) == text


@pytest.mark.parametrize(("kind", "type_text"), [("TIMESTAMP_NTZ", None), ("TIMESTAMP", "TIMESTAMP_NTZ")])
def test_t3_a_timestamp_without_zone_stays_a_wall_clock_time_for_batch_time_zone(
    kind: str, type_text: str | None
) -> None:
    assert read(kind, "2026-03-03T20:00:00.000", type_text).tzinfo is None


@pytest.mark.parametrize("row", [[], ["a", "b"]])
def test_a_row_of_another_width_is_refused(row: list[str]) -> None:
    with pytest.raises(ValueError, match="zip"):
        read_rows([row], readers([{"type_name": "STRING"}]))
