"""All checks of a database, in the order in which a person would look at them."""

from collections.abc import Iterator
from datetime import timedelta

from matoolkit.clock import Clock, SystemClock
from matoolkit.store.checkup.competing import Reopen, check_competition
from matoolkit.store.checkup.findings import Checked, Outcome, fine, told, untried, wrong
from matoolkit.store.checkup.statements import check_statements
from matoolkit.store.checkup.texts import check_texts
from matoolkit.store.sql.connections import asking_server
from matoolkit.store.sql.transaction import Store
from matoolkit.store.upgrade import SchemaState, file_is_missing, schema_differences, schema_status

_MOST_APART = timedelta(seconds=5)


def check_database(store: Store, reopen: Reopen, clock: Clock | None = None) -> Iterator[Checked]:
    """Check server, options, clock, tables, every statement, texts, and what two processes do to each other."""
    if file_is_missing(store):
        yield wrong("schema", "version", "there is no database yet", "run `matoolkit db upgrade`")
        return
    yield from check_properties(store)
    yield from told("clock", "difference", lambda: check_clock(store, clock or SystemClock()))
    found = list(told("schema", "version", lambda: _schema(store)))
    yield from found
    if any(one.outcome is not Outcome.OK for one in found if one.name == "version"):
        yield untried("statement", "all", "not tried: the tables are not those of this version")
        return
    yield from told("statement", "all", lambda: check_statements(store))
    yield from check_texts(store)
    yield from check_competition(store, reopen)


def check_properties(store: Store) -> Iterator[Checked]:
    """Ask the server which version it has and how it is set up."""
    # The first question of all: an error here is not one of a check, but of the connection.
    with asking_server(store) as connection:
        for name, said, todo in store.dialect.properties(connection):
            yield wrong("server", name, said, todo) if todo else fine("server", name, said)


def check_clock(store: Store, clock: Clock) -> Iterator[Checked]:
    """Compare the clock of the database with ours."""
    if store.dialect.is_file:
        yield fine("clock", "difference", "none: the file has no other clock")
        return
    with store.transaction() as tx:
        before = clock.now()
        there = tx.time()
        after = clock.now()
    apart = there - before if there < before else max(there - after, timedelta())
    said = f"the database is {abs(apart.total_seconds()):.1f} s {'behind' if apart < timedelta() else 'ahead'}"
    if abs(apart) <= _MOST_APART:
        yield fine("clock", "difference", said)
        return
    todo = "synchronise the clock of this machine: leases and messages go by the database's, calendars by this one's"
    yield wrong("clock", "difference", said, todo)


def _schema(store: Store) -> Iterator[Checked]:
    status = schema_status(store)
    said, todo = status.said, status.todo
    yield fine("schema", "version", said) if todo is None else wrong("schema", "version", said, todo)
    if status.state is SchemaState.MISSING:
        return
    for difference in schema_differences(store):
        name, _, how = difference.rpartition(": ")
        yield wrong("schema", name, how, "`matoolkit db upgrade --sql` prints how it should be; fix it by hand")
