"""Rules T1 to T4 and T8: a tick as a whole, on real tables."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest
from sqlalchemy import select

from matoolkit.clock import VirtualClock
from matoolkit.errors import StoreUnavailable
from matoolkit.scheduler.due_phases import dispatch_due_phases
from matoolkit.scheduler.tallies import Tally
from matoolkit.store import Store
from matoolkit.store.batches import activate_batches
from matoolkit.store.datatables import open_data_table
from tests.databases import full_name, place_of
from tests.scheduler.calendar import TICK, Calendar, People, runbook, with_init

DAY = timedelta(days=1)
# What lets the database refuse a new batch of one runbook.
TRAPS = {
    "SQLite": "CREATE TRIGGER trap BEFORE INSERT ON batches WHEN NEW.runbook_name = 'wave'"
    " BEGIN SELECT RAISE(ABORT, 'no'); END",
    "PostgreSQL": "ALTER TABLE batches ADD CONSTRAINT trap CHECK (runbook_name <> 'wave') NOT VALID",
    # The first tick has made three batches.
    "SQL Server": "ALTER TABLE batches ADD CONSTRAINT trap CHECK (runbook_name <> 'wave' OR id <= 3)",
}


def neighbours(calendar: Calendar) -> dict[str, People]:
    """Publish two more runbooks, before and after `wave`, each with a source of its own."""
    for name in ("Alpha", "zulu"):
        calendar.publish(runbook(name, data_source={"connection": name.upper()}))
        calendar.others[name.upper()] = People([(f"{name}-ann", calendar.start.isoformat(), "Bern")])
    return calendar.others


def tallies(calendar: Calendar) -> dict[str, Tally]:
    found = calendar.scheduler.tick()
    assert found is not None
    return {tally.runbook_name: tally for tally in found}


# T1


def test_t1_a_runbook_whose_source_is_broken_blocks_no_other(calendar: Calendar) -> None:
    neighbours(calendar)
    calendar.in_source("Ada")
    calendar.break_source("the view is gone")
    done = tallies(calendar)
    assert {name: tally.batches_created for name, tally in done.items()} == {"Alpha": 1, "wave": 0, "zulu": 1}
    assert "the view is gone" in (calendar.error() or "")
    assert (calendar.error("Alpha"), calendar.error("zulu")) == (None, None)


@pytest.mark.parametrize(
    "fault", [ZeroDivisionError("secret"), TypeError("secret"), UnicodeDecodeError("utf-8", b"x", 0, 1, "secret")]
)
def test_t1_a_bug_that_one_runbook_meets_blocks_no_other_and_repeats_no_data(
    calendar: Calendar, fault: Exception
) -> None:
    neighbours(calendar)
    calendar.people.fault = fault
    done = tallies(calendar)
    assert {name: tally.batches_created for name, tally in done.items()} == {"Alpha": 1, "wave": 0, "zulu": 1}
    assert (calendar.error() or "").startswith(type(fault).__name__)
    assert "secret" not in (calendar.error() or "")


def test_t1_what_the_database_refuses_for_one_runbook_blocks_no_other(calendar: Calendar) -> None:
    neighbours(calendar)
    calendar.in_source("Ada")
    calendar.tick()
    calendar.change(TRAPS[calendar.store.dialect.title])
    calendar.in_source("Bob", at=calendar.start + DAY)
    calendar.others["ZULU"].rows.append(("zoe", (calendar.start + DAY).isoformat(), "Bern"))
    done = tallies(calendar)
    assert (done["wave"].batches_created, done["zulu"].batches_created) == (0, 1)
    assert (calendar.error() or "").startswith("DB")


def test_t1_trouble_while_dispatching_blocks_no_other_runbook(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbours(calendar)
    calendar.in_source("Ada")
    real = dispatch_due_phases

    def faulty(store: Any, publisher: Any, confirm: Any, at: Any, runbook_name: str | None = None) -> int:
        if runbook_name == "wave":
            raise KeyError("phase")
        return real(store, publisher, confirm, at, runbook_name)

    monkeypatch.setattr("matoolkit.scheduler.tick.dispatch_due_phases", faulty)
    done = tallies(calendar)
    assert {name: tally.batches_created for name, tally in done.items()} == {"Alpha": 1, "wave": 1, "zulu": 1}
    assert (calendar.error() or "").startswith("KeyError")


def test_t1_an_error_that_no_database_can_store_is_recorded_all_the_same(calendar: Calendar) -> None:
    calendar.break_source("a NUL \0 and half \ud800 a character")
    assert calendar.tick().error
    assert "half" in (calendar.error() or "")


def test_t1_trouble_with_our_own_database_ends_the_tick(calendar: Calendar) -> None:
    calendar.people.fault = StoreUnavailable("gone")
    with pytest.raises(StoreUnavailable):
        calendar.tick()
    assert calendar.error() is None


def test_t1_the_last_error_has_its_time_and_is_cleared_by_a_good_tick(calendar: Calendar) -> None:
    calendar.break_source()
    assert "the source is away" in (calendar.tick().error or "")
    assert "the source is away" in (calendar.error() or "")
    assert calendar.sql("SELECT count(*) FROM runbooks WHERE last_error_at IS NOT NULL") == [(1,)]
    calendar.mend_source()
    assert calendar.tick(TICK).error is None
    assert calendar.error() is None
    assert calendar.sql("SELECT count(*) FROM runbooks WHERE last_error_at IS NOT NULL") == [(0,)]


def test_t1_a_new_runbook_is_not_queried_until_somebody_enables_it(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(enable=False)
    calendar.in_source("Ada")
    tally = calendar.tick()
    assert (calendar.people.reads, tally.queried, calendar.batches()) == (0, False, [])
    calendar.switch(enabled=True)
    assert calendar.tick(TICK).batches_created == 1


def test_t1_without_automation_nothing_is_queried_and_what_is_in_flight_goes_on(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.switch(enabled=False)
    calendar.gone("Bob")
    calendar.in_source("Cid")
    calendar.in_source("Dan", at=calendar.start + DAY)
    tally = calendar.tick(timedelta(days=4))
    assert (calendar.people.reads, tally.queried, tally.phases_dispatched) == (1, False, 1)
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    assert len(calendar.batches()) == 1


# T2


def test_t2_a_failed_query_changes_no_membership_and_the_rest_of_the_tick_goes_on(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.break_source()
    tally = calendar.tick(timedelta(days=4))
    assert tally.phases_dispatched == 1
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    assert calendar.batch().held_at is None


def test_t2_a_query_that_breaks_in_the_middle_changes_nothing(
    calendar: Calendar, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar.in_source(*(f"m{number}" for number in range(20)))
    calendar.tick()
    before = calendar.sql(f"SELECT * FROM {calendar.data_table} ORDER BY 1")
    calendar.people.piece, whole = 5, calendar.people.pieces

    def broken(query: str) -> Any:
        for number, piece in enumerate(whole(query)):
            if number == 2:
                raise OSError("the connection broke")
            yield piece

    monkeypatch.setattr(calendar.people, "pieces", broken)
    assert calendar.tick(TICK).error
    assert calendar.sql(f"SELECT * FROM {calendar.data_table} ORDER BY 1") == before
    assert set(calendar.members().values()) == {"active"}


def test_t2_a_source_without_a_needed_column_changes_nothing(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.people.columns = ("id", "begin", "city")
    assert "start" in (calendar.tick(TICK).error or "")
    assert calendar.members() == {"Ada": "active"}


# T3


def test_t3_defect_one_duplicate_key_does_not_stop_the_tick(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.in_source("Cid")
    calendar.people.rows += [("BOB", calendar.start.isoformat(), "Rome"), ("New", calendar.start.isoformat(), "a")] * 2
    tally = calendar.tick(TICK)
    assert (tally.error, tally.rows_set_aside, tally.members_added) == (None, 5, 1)
    assert calendar.members() == {"Ada": "active", "Bob": "active", "Cid": "active"}
    assert '"city":"Bern"' in calendar.member("Bob").data_json


def test_t3_rows_set_aside_are_counted_and_shown_with_samples(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.in_source("Bob", at="03/04/2026")
    calendar.people.rows += [(None, calendar.start.isoformat(), "Bern"), ("  ", "", "")]
    calendar.tick()
    kept = calendar.last()
    assert (kept.rows_read, kept.rows_set_aside, kept.members_added) == (4, 3, 1)
    shown = orjson.loads(kept.set_aside_json)
    assert shown["counts"] == {"bad_batch_time": 1, "empty_key": 2}
    assert [(sample["reason"], sample["key"]) for sample in shown["samples"]] == [
        ("bad_batch_time", "Bob"),
        ("empty_key", ""),
        ("empty_key", ""),
    ]
    assert "ambiguous" in shown["samples"][0]["detail"]


@pytest.mark.parametrize("broken", ["03/04/2026", "", "2026-02-30 10:00"])
def test_t3_a_key_in_a_row_set_aside_counts_as_present(calendar: Calendar, broken: str) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.in_source("Ada", "Bob", at=broken, city="Rome")
    tally = calendar.tick(TICK)
    assert (tally.rows_set_aside, tally.members_removed, tally.members_refreshed) == (2, 0, 0)
    assert calendar.batch().held_at is None
    assert calendar.members() == {"Ada": "active", "Bob": "active"}
    assert calendar.sql(f"SELECT _member_key, _is_current, city FROM {calendar.data_table} ORDER BY 1") == [
        ("Ada", True, "Bern"),
        ("Bob", True, "Bern"),
    ]


# T4 and D2


def test_t4_d2_the_data_table_holds_what_the_query_returned(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    first = calendar.clock.now()
    calendar.in_source("Bob", city="Rome")
    calendar.gone("Ada")
    calendar.tick(TICK)
    columns = ("_member_key", "_is_current", "_batch_time", "_first_seen_at", "_last_seen_at", "id", "city")
    with calendar.store.transaction() as tx:
        table = open_data_table(tx, place_of(calendar.store, "runbook_wave_v1"), calendar.people.columns).table
        rows = tx.rows(lambda *row: row, select(*(table.c[name] for name in columns)))
    now = calendar.clock.now()
    assert sorted(rows) == [
        ("Ada", False, calendar.start, first, now, "Ada", "Bern"),
        ("Bob", True, calendar.start, first, now, "Bob", "Rome"),
    ]


def test_d2_a_data_table_of_an_earlier_release_stays_where_it_is_and_a_new_version_gets_its_own_schema(
    calendar: Calendar,
) -> None:
    # Revision 0009 knows of no schema for versions that were there before.
    calendar.change("UPDATE runbooks SET data_table_schema = NULL")
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.people.columns = ("id", "start", "city", "street")
    calendar.people.rows = [("Ada", calendar.start.isoformat(), "Rome", "Via Appia")]
    calendar.tick(TICK)
    old = "SELECT _member_key, _is_current, street FROM runbook_wave_v1 ORDER BY 1"
    assert calendar.sql(old) == [("Ada", True, "Via Appia"), ("Bob", False, None)]
    calendar.publish(runbook(data_source={"connection": "SOURCE", "query": "SELECT * FROM people"}))
    calendar.tick(TICK)
    new = f"SELECT _member_key FROM {full_name(calendar.store, 'runbook_wave_v2')}"
    assert calendar.sql(new) == [("Ada",)]


def test_t4_a_row_that_comes_back_is_current_again_and_a_new_column_is_added(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Bob")
    calendar.tick(TICK)
    calendar.in_source("Bob")
    calendar.people.columns = ("id", "start", "city", "Büro")
    calendar.people.rows = [(*row, "3.14") for row in calendar.people.rows]
    tally = calendar.tick(TICK)
    assert (tally.members_returned, tally.members_refreshed) == (1, 1)
    found = calendar.sql(f"SELECT * FROM {calendar.data_table}")
    assert [row[-1] for row in found] == ["3.14", "3.14"]
    assert calendar.sql(f"SELECT _is_current FROM {calendar.data_table}") == [(True,), (True,)]


def test_t4_a_tick_without_changes_writes_no_member_and_no_data_row(
    calendar: Calendar, statements: Callable[[], list[str]]
) -> None:
    calendar.in_source(*(f"m{number}" for number in range(50)))
    calendar.in_source("late", at=calendar.start + DAY)
    calendar.in_source("broken", at="tomorrow")
    calendar.tick()
    statements()
    calendar.tick(TICK)
    written = [one for one in statements() if one.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))]
    assert [one.split("(")[0].split()[:3] for one in written if "leases" not in one and "runbook_ticks" not in one] == [
        ["UPDATE", "runbooks", "SET"],  # the source was read
        ["UPDATE", "runbooks", "SET"],  # the last error is cleared, where there is one
    ]


def test_t4_one_changed_row_among_many_writes_one_row(calendar: Calendar) -> None:
    calendar.in_source(*(f"m{number}" for number in range(50)))
    calendar.tick()
    calendar.in_source("m7", city="Rome")
    assert calendar.tick(TICK).members_refreshed == 1
    later = calendar.sql(f"SELECT _member_key FROM {calendar.data_table} WHERE _last_seen_at > _first_seen_at")
    assert later == [("m7",)]


# T8


def test_t8_phases_are_dispatched_when_they_are_due_in_their_order(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    prepare, warn, cutover = calendar.phase_rows()
    assert calendar.tick(timedelta(days=3) - timedelta(seconds=1)).phases_dispatched == 0
    assert calendar.tick(timedelta(seconds=1)).phases_dispatched == 1
    assert calendar.messages() == [f"phase-due-{prepare.id}-1"]
    assert calendar.tick(TICK).phases_dispatched == 0
    assert calendar.tick(timedelta(days=7)).phases_dispatched == 2
    assert calendar.messages() == [f"phase-due-{warn.id}-1", f"phase-due-{cutover.id}-1"]
    assert set(calendar.phases().values()) == {"dispatched"}


def test_t8_phases_that_are_due_at_the_same_time_go_in_the_order_of_the_runbook(
    store: Store, clock: VirtualClock
) -> None:
    calendar = Calendar(store, clock)
    steps = [
        {"name": "s", "worker_id": "w", "function": "Set-EntraUserEnabled", "params": {"UserId": "x", "Enabled": True}}
    ]
    names = ("zeta", "alpha", "mike")
    calendar.publish(runbook(phases=[{"name": name, "offset": "T-0", "steps": steps} for name in names]))
    calendar.in_source("Ada")
    calendar.in_source("Bob", at=calendar.start + DAY)
    calendar.tick()
    calendar.tick(timedelta(days=12))
    first, second = calendar.phase_rows(), calendar.phase_rows(calendar.start + DAY)
    assert [phase.phase_name for phase in first] == list(names)
    assert calendar.messages() == [f"phase-due-{phase.id}-1" for phase in (*first, *second)]


def test_t8_defect_init_gates_phases(store: Store, clock: VirtualClock) -> None:
    calendar = Calendar(store, clock)
    calendar.publish(with_init())
    calendar.in_source("Ada")
    calendar.tick()
    calendar.messages()
    assert calendar.tick(timedelta(days=4)).phases_dispatched == 0
    assert calendar.messages() == []
    with store.transaction() as tx:
        activate_batches(tx, [calendar.batch().id])
    assert calendar.tick(TICK).phases_dispatched == 1


def test_t8_a_phase_for_which_nobody_is_left_is_skipped(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    for key in ("Ada", "Bob"):
        calendar.fail(key)
    assert calendar.tick(timedelta(days=4)).phases_dispatched == 0
    assert calendar.phases()["prepare"] == "skipped"
    assert calendar.messages() == []


def test_t8_a_held_batch_dispatches_nothing(calendar: Calendar) -> None:
    calendar.in_source("Ada", "Bob")
    calendar.tick()
    calendar.gone("Ada", "Bob")
    assert calendar.tick(timedelta(days=4)).batches_held == 1
    calendar.tick(timedelta(days=20))
    assert set(calendar.phases().values()) == {"pending"}
    assert calendar.messages() == []


def test_t8_v7_phases_of_a_runbook_without_active_version_are_dispatched(calendar: Calendar) -> None:
    calendar.in_source("Ada")
    calendar.tick()
    calendar.change("UPDATE runbooks SET is_active = FALSE")
    calendar.clock.advance(timedelta(days=4))
    assert calendar.scheduler.tick() == []
    assert calendar.phases()["prepare"] == "dispatched"


def test_t5_a_move_is_logged_for_the_batch_that_was_left(calendar: Calendar, caplog: pytest.LogCaptureFixture) -> None:
    calendar.publish()
    calendar.in_source("ann", "bob", "kim")
    calendar.tick()
    left = calendar.batch().id
    calendar.in_source("ann", "bob", at=calendar.start + timedelta(days=1))
    with caplog.at_level(logging.INFO, "matoolkit.scheduler"):
        calendar.tick()
    records: list[Any] = caplog.records
    assert [record.getMessage() for record in records if getattr(record, "batch", None) == left] == [
        "2 moved away: the source gives them another time"
    ]


def test_every_decision_is_logged_with_its_reason(calendar: Calendar, caplog: pytest.LogCaptureFixture) -> None:
    calendar.in_source("Ada", "Bob", "Cid")
    calendar.tick()
    calendar.gone("Bob")
    calendar.in_source("Ada", city="Rome")
    with caplog.at_level(logging.INFO, "matoolkit.scheduler"):
        calendar.tick(timedelta(days=4))
    batch = calendar.batch().id
    records: list[Any] = caplog.records
    assert [(one.runbook, one.batch, one.getMessage()) for one in records] == [
        ("wave", batch, "1 removed: the source no longer returns them, and T has not passed"),
        ("wave", batch, "1 refreshed: their rows have changed"),
        ("wave", batch, f"phase dispatched: it was due at {calendar.start - timedelta(days=7)}"),
    ]
