"""What two processes do to each other: who waits, who is passed by, and who gives way in a deadlock."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta

from sqlalchemy import func, insert, select

from matoolkit.errors import RowConflict, StoreBusy, StoreError
from matoolkit.ports import Subscription
from matoolkit.store.checkup.findings import Checked, fine, untried, wrong
from matoolkit.store.queue import NewQueued, enqueue, lock_due
from matoolkit.store.schema import leases
from matoolkit.store.sql.connections import changing_tables
from matoolkit.store.sql.rehearsal import LONG_AGO
from matoolkit.store.sql.transaction import Store, Transaction

# Opens the database once more, as another process does that waits so many seconds for a lock.
Reopen = Callable[[float], Store]

# Long enough for a slow network: who waits longer waits for a lock.
_IMPATIENT_SECONDS = 1.0
# Servers look for deadlocks every few seconds.
_PATIENT_SECONDS = 20.0
_ONE, _TWO = "matoolkit db check 1", "matoolkit db check 2"
_TOPIC = "matoolkit-db-check"
_NO_WAITING = "let readers see versions of rows: READ_COMMITTED_SNAPSHOT and ALLOW_SNAPSHOT_ISOLATION must be on"
_REPORT = "report it with this text: this database does not lock as matoolkit needs it"
_NO_ABORT = "XACT_ABORT must be off: look for it in the server's option `user options`, and report it with this text"


def check_competition(store: Store, reopen: Reopen) -> Iterator[Checked]:
    """Let two connections meet; nothing is committed."""
    impatient, patient = reopen(_IMPATIENT_SECONDS), reopen(_PATIENT_SECONDS)
    try:
        yield _checked("part that fails", lambda: _part(store), _NO_ABORT)
        yield _checked("upgrade beside an upgrade", lambda: _upgrade(store, impatient), _REPORT)
        yield _checked("reader beside a writer", lambda: _reader(store, impatient), _NO_WAITING)
        if store.dialect.is_file:
            for name in ("claim beside a claim", "deadlock"):
                yield untried("together", name, "not tried: a file has one writer at a time")
            return
        yield _checked("claim beside a claim", lambda: _claim(store, impatient), _REPORT)
        yield _checked("deadlock", lambda: _deadlock(store, patient), _REPORT)
    finally:
        impatient.close()
        patient.close()


class _NotSo(Exception):
    """What was expected did not happen."""


def _checked(name: str, check: Callable[[], str], todo: str) -> Checked:
    try:
        return fine("together", name, check())
    except _NotSo as finding:
        return wrong("together", name, str(finding), todo)
    except StoreError as error:
        return wrong("together", name, error.message, todo)


class _Over(Exception):
    """A transaction has shown what it should, and is undone."""


@contextmanager
def undone(store: Store) -> Iterator[Transaction]:
    """Begin a transaction that is rolled back in the end."""
    with suppress(_Over), store.transaction() as tx:
        yield tx
        raise _Over


def take(tx: Transaction, name: str) -> None:
    """Write a row with a name that no other row may have."""
    tx.execute(insert(leases).values(name=name, holder="", token=0, acquired_at=LONG_AGO, expires_at=LONG_AGO))


def taken(tx: Transaction, name: str) -> int:
    """Count the rows with a name."""
    count: int = tx.values(select(func.count()).select_from(leases).where(leases.c.name == name))[0]
    return count


def _part(store: Store) -> str:
    with undone(store) as tx:
        take(tx, _ONE)
        with suppress(RowConflict), tx.part():
            take(tx, _ONE)
            raise _NotSo("a name was taken twice")
        if taken(tx, _ONE) != 1:
            raise _NotSo("a part that failed undid what was before it")
    return "is undone by itself"


def _upgrade(store: Store, other: Store) -> str:
    with changing_tables(store):
        try:
            with changing_tables(other):
                raise _NotSo("both may change the tables at the same time")
        except StoreBusy:
            return "waits"


def _reader(store: Store, other: Store) -> str:
    with undone(store) as tx:
        take(tx, _ONE)
        try:
            with other.reading() as reader:
                seen = taken(reader, _ONE)
        except StoreBusy as busy:
            raise _NotSo(f"waits: {busy.message}") from None
        if seen:
            raise _NotSo("sees what is not committed")
    return "does not wait, and sees what was committed"


def _claim(store: Store, other: Store) -> str:
    subscription = Subscription(_TOPIC, _TOPIC)
    until = LONG_AGO + timedelta(minutes=1)
    message = NewQueued(_TOPIC, _TOPIC, _ONE, "check", "{}", "{}", LONG_AGO, until)
    with undone(store) as tx:
        enqueue(tx, [message], LONG_AGO, forget_before=LONG_AGO)
        if len(lock_due(tx, subscription, _ONE, LONG_AGO, until=until, most=1)) != 1:
            raise _NotSo("a message that is due is not found")
        try:
            with undone(other) as second:
                got = lock_due(second, subscription, _TWO, LONG_AGO, until=until, most=1)
        except StoreBusy as busy:
            raise _NotSo(f"waits: {busy.message}") from None
        if got:
            raise _NotSo("both got the same message")
    return "passes by what another one holds"


def _deadlock(store: Store, other: Store) -> str:
    meeting = threading.Barrier(2, timeout=_PATIENT_SECONDS)

    def taking(where: Store, first: str, second: str) -> StoreError | None:
        try:
            with undone(where) as tx:
                take(tx, first)
                meeting.wait()
                take(tx, second)
        except StoreError as error:
            meeting.abort()
            return error
        except threading.BrokenBarrierError:
            return None  # the other one never got so far, and says why
        return None

    with ThreadPoolExecutor(1) as beside:
        there = beside.submit(taking, other, _TWO, _ONE)
        ends = [taking(store, _ONE, _TWO), there.result()]
    failed = [error for error in ends if error is not None]
    if not failed:
        raise _NotSo("nobody gave way")
    for error in failed:
        if not isinstance(error, StoreBusy):
            raise error
    for where in (store, other):
        with undone(where) as tx:
            take(tx, _ONE)
    return "one gives way, and its work can be done again"
