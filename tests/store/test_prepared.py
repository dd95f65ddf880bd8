"""Statements that are built once for each of their shapes."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Column, ColumnElement, Integer, MetaData, Select, String, Table, select

from matoolkit.clock import VirtualClock
from matoolkit.store import Store, open_store
from matoolkit.store.dialect.types import Instant
from matoolkit.store.sql.prepared import MOST_SHAPES, Drafting, Named, given, prepared
from matoolkit.store.sql.recent import Recent
from matoolkit.store.sql.statements import among, change, is_any
from tests.threads import in_threads

PEOPLE = Table(
    "people", MetaData(), Column("id", Integer, primary_key=True), Column("name", String), Column("at", Instant)
)
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.fixture(params=["driver", "sqlalchemy"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    store = open_store("sqlite://", clock=VirtualClock(NOON), execution=request.param)
    PEOPLE.metadata.create_all(store.engine)
    with store.transaction() as tx:
        tx.execute(PEOPLE.insert().values([(1, "Ada", NOON), (2, "Grace", NOON), (3, "Hedy", None)]))
    yield store
    store.close()


def test_it_is_built_once_and_runs_with_other_values(store: Store) -> None:
    built = []

    @prepared
    def named(_draft: Drafting, name: str) -> Select[Any]:
        built.append(name)
        return select(PEOPLE.c.id).where(PEOPLE.c.name == name)

    with store.reading() as tx:
        assert [tx.values(named(tx, name)) for name in ("Ada", "Hedy", "Nobody")] == [[1], [3], []]
    assert len(built) == 1


def test_any_number_of_values_is_one_statement(store: Store) -> None:
    built = []

    @prepared
    def numbered(draft: Drafting, ids: Collection[int]) -> Select[Any]:
        built.append(ids)
        return select(PEOPLE.c.id).where(among(draft, PEOPLE.c.id, ids)).order_by(PEOPLE.c.id)

    with store.reading() as tx:
        assert [tx.values(numbered(tx, ids)) for ids in ([1], [1, 3], {2: "a mapping is a collection too"}, [])] == [
            [1],
            [1, 3],
            [2],
            [],
        ]
    assert len(built) == 1


def test_another_shape_is_another_statement(store: Store) -> None:
    built = []

    @prepared
    def wanted(_draft: Drafting, values: Named, *, limit: int) -> Select[Any]:
        built.append((tuple(values), limit))
        same = (PEOPLE.c[name] == value for name, value in values.items())
        return select(PEOPLE.c.id).where(*same).order_by(PEOPLE.c.id).limit(limit)

    with store.reading() as tx:
        assert tx.values(wanted(tx, Named(name="Ada"), limit=5)) == [1]
        assert tx.values(wanted(tx, Named(name="Grace"), limit=5)) == [2]
        assert tx.values(wanted(tx, Named(name="Grace", id=1), limit=5)) == []
        assert tx.values(wanted(tx, Named(), limit=2)) == [1, 2]
    assert built == [(("name",), 5), (("name", "id"), 5), ((), 2)]


def test_a_shape_is_known_by_its_names_whatever_order_they_come_in(store: Store) -> None:
    @prepared
    def between(_draft: Drafting, *, low: int, high: int) -> Select[Any]:
        return select(PEOPLE.c.id).where(PEOPLE.c.id >= low, PEOPLE.c.id <= high).order_by(PEOPLE.c.id)

    with store.reading() as tx:
        assert tx.values(between(tx, low=2, high=3)) == [2, 3]
        assert tx.values(between(tx, high=2, low=3)) == []


def test_annotations_mean_nothing(store: Store) -> None:
    def named(_draft, values, *, column):  # type: ignore[no-untyped-def]
        return select(PEOPLE.c[column]).where(*(PEOPLE.c[name] == value for name, value in values.items()))

    with store.reading() as tx:
        assert tx.values(prepared(named)(tx, Named(name="Grace"), column="id")) == [2]


def test_a_value_by_keyword_is_refused_because_each_would_be_a_shape(store: Store) -> None:
    @prepared
    def named(_draft: Drafting, name: str) -> Select[Any]:
        return select(PEOPLE.c.id).where(PEOPLE.c.name == name)

    with store.reading() as tx, pytest.raises(TypeError, match="by position: name"):
        named(tx, name="Ada")


def test_the_clock_is_asked_at_every_run(store: Store) -> None:
    @prepared
    def later(draft: Drafting) -> Select[Any]:
        return select(PEOPLE.c.id).where(PEOPLE.c.at < draft.now())

    clock = VirtualClock(NOON)
    watching = Store(store.engine, store.dialect, clock)
    with watching.reading() as tx:
        assert tx.values(later(tx)) == []
        clock.jump(NOON.replace(hour=13))
        assert tx.values(later(tx)) == [1, 2]


def test_a_guard_gets_its_value_at_every_run(store: Store) -> None:
    is_named = PEOPLE.c.name == given("old", String())
    with store.transaction() as tx:
        assert change(tx, PEOPLE, [1, 2, 3], {"name": "Ada L."}, is_named, parameters={"old": "Ada"}) == [1]
        assert change(tx, PEOPLE, [1, 2, 3], {"name": "Grace H."}, is_named, parameters={"old": "Grace"}) == [2]
        assert tx.values(select(PEOPLE.c.name).order_by(PEOPLE.c.id)) == ["Ada L.", "Grace H.", "Hedy"]


@pytest.mark.parametrize("store", ["driver"], indirect=True)
def test_a_statement_that_is_not_given_a_value_of_its_guard_says_which(store: Store) -> None:
    is_named = PEOPLE.c.name == given("old", String())
    with store.transaction() as tx, pytest.raises(TypeError, match="'old'"):
        change(tx, PEOPLE, [1], {"name": "Ada L."}, is_named)


def test_whoever_builds_a_statement_of_their_own_hands_over_what_a_guard_is_given(store: Store) -> None:
    @prepared
    def guarded(_draft: Drafting, *, guard: ColumnElement[bool]) -> Select[Any]:
        return select(PEOPLE.c.id).where(guard)

    is_named = PEOPLE.c.name == given("old", String())
    with store.reading() as tx:
        assert tx.values(guarded(tx, guard=is_named).with_parameters({"old": "Hedy"})) == [3]


def test_the_same_words_are_the_same_guard() -> None:
    assert is_any(PEOPLE.c.name, ["Ada", "Grace"]) is is_any(PEOPLE.c.name, {"Grace", "Ada"})


def test_a_guard_that_is_made_anew_for_every_run_is_logged_and_nothing_fails(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    built = []

    @prepared
    def guarded(_draft: Drafting, *, guard: ColumnElement[bool]) -> Select[Any]:
        built.append(guard)
        return select(PEOPLE.c.id).where(guard)

    often = PEOPLE.c.id == 2
    with store.reading() as tx:
        for number in range(MOST_SHAPES + 500):
            guarded(tx, guard=PEOPLE.c.id == number)
            assert guarded(tx, guard=often).plan.shape == {"guard": often}
        assert tx.values(guarded(tx, guard=PEOPLE.c.id == 3)) == [3]
    assert len(built) == MOST_SHAPES + 502, "what is used often stays"
    assert [entry.getMessage().partition(" of ")[0] for entry in caplog.records] == ["more than 2000 shapes"]


def test_a_full_cache_drops_what_was_not_used_for_longest(caplog: pytest.LogCaptureFixture) -> None:
    cache: Recent[str, int] = Recent("numbers", 2)
    cache.add("one", 1)
    cache.add("two", 2)
    assert cache.get("one") == 1
    cache.add("three", 3)
    assert [cache.get(word) for word in ("one", "two", "three")] == [1, None, 3]
    assert caplog.messages == ["more than 2 numbers: what was not used for longest is dropped"]


def test_a_cache_that_stays_full_is_logged_once_for_each_filling(caplog: pytest.LogCaptureFixture) -> None:
    cache: Recent[int, int] = Recent("numbers", 10)
    for number in range(40):
        cache.add(number, number)
    assert len(cache) == 10
    assert len(caplog.messages) == 3


def test_threads_that_fill_a_cache_together_find_what_they_put_there() -> None:
    cache: Recent[int, int] = Recent("numbers", 3)

    def fill(start: int) -> None:
        for number in range(start, start + 3_000):
            assert cache.get(number) in (None, number)
            assert cache.add(number, number) == number

    in_threads([partial(fill, start) for start in (0, 1, 2, 3)])
    assert len(cache) == 3
