"""Rule U4: what a spreadsheet made of a key is never guessed, and removes nobody."""

from typing import Any

import pytest

from matoolkit.domain.rows import Reading, Reason, RowReader
from matoolkit.domain.spreadsheets import LostKeys
from matoolkit.runbook.model import DataSource


def read(*rows: tuple[Any, ...], kind: str = "file") -> Reading:
    where = {"file": "people.xlsx"} if kind == "file" else {"connection": "SOURCE"}
    document = {"type": kind, "query": "SELECT 1", "primary_key": "Id", "batch_time": "immediate", **where}
    reader = RowReader(DataSource.model_validate(document))
    reader.take(["Id", "Name"], rows)
    return reader.reading()


@pytest.mark.parametrize("key", [123, 123.0, 1.5, "1.23E+5", "1,23E+05", "4E+11", "-1.5e-03"])
def test_u4_a_key_that_became_a_number_is_set_aside(key: Any) -> None:
    reading = read((key, "Ann"), ("b", "Bob"))
    assert reading.counts == {Reason.NUMBER_KEY: 1}
    assert set(reading.candidates) == {"b"}
    assert f"the number {key} of the key" in reading.samples[0].detail


@pytest.mark.parametrize("key", ["00123", "123", "12E5", "1E5", "1.5", "E+5", "2026-03-01", "+41 44 123"])
def test_u4_a_text_stays_a_key(key: str) -> None:
    assert set(read((key, "Ann")).candidates) == {key.casefold()}


def test_t3_a_database_may_have_numbers_as_keys() -> None:
    assert set(read((123, "Ann"), kind="sql").candidates) == {"123"}


@pytest.mark.parametrize(
    ("number", "key"),
    [
        (123, "00123"),
        (123, "123"),
        (123.0, "0123"),
        (49151123, "+49151123"),
        (1200000, "12e5"),
        ("1.23E+5", "123456"),
        ("1.23E+5", "122999"),
        ("1,23457E+11", "123456789012"),
        (1234567890123450000, "1234567890123456789"),
    ],
)
def test_u4_whoever_may_be_meant_counts_as_present(number: Any, key: str) -> None:
    assert read((number, "Ann")).is_present(key)


@pytest.mark.parametrize(
    ("number", "key"), [(123, "124"), (123, "anna@contoso.com"), ("1.23E+5", "124999"), (123, "1230"), (123, "9" * 100)]
)
def test_u4_nobody_else_does(number: Any, key: str) -> None:
    assert not read((number, "Ann")).is_present(key)


def test_u4_without_such_keys_nothing_is_compared() -> None:
    assert not LostKeys().may_be("123")


@pytest.mark.parametrize("error", ["#N/A", "#REF!", "#VALUE!", "#NAME?"])
def test_u4_the_error_of_a_formula_is_no_data(error: str) -> None:
    reading = read(("a", error), (error, "Bob"), ("c", "Cid"))
    assert reading.counts == {Reason.BAD_VALUE: 1, Reason.UNUSABLE_KEY: 1}
    assert reading.is_present("a")
    assert reading.samples[0].detail == f"'Name': its formula has the result {error}"
    assert read(("a", error), kind="sql").counts == {}
