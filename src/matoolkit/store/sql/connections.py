"""Connections for the few modules that need one: Alembic, which changes tables, and the listener.

Everything else works with a transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from matoolkit.store.sql.faults import ToldApart
from matoolkit.store.sql.transaction import Store


@contextmanager
def looking_at_tables(store: Store) -> Iterator[Connection]:
    """Look at the tables themselves, without changing anything."""
    with ToldApart(store.dialect, store.url), store.reader.connect() as connection:
        yield connection


@contextmanager
def asking_server(store: Store) -> Iterator[Connection]:
    """Ask the server about itself, as a writer: whether readers can work may be what is asked."""
    with ToldApart(store.dialect, store.url), store.engine.connect() as connection:
        yield connection


@contextmanager
def changing_tables(store: Store) -> Iterator[Connection]:
    """Change tables in one transaction, while no other process does."""
    with (
        ToldApart(store.dialect, store.url),
        store.engine.connect() as connection,
        store.dialect.free_to_rebuild(connection),
        connection.begin(),
    ):
        store.dialect.lock_schema(connection)
        yield connection


@contextmanager
def own_driver_connection(store: Store) -> Iterator[Any]:
    """Take a connection of the driver out of the pool: it may stay in a mode that no other user expects."""
    with ToldApart(store.dialect, store.url):
        borrowed = store.engine.raw_connection()
        connection = borrowed.driver_connection
        borrowed.detach()
        try:
            yield connection
        finally:
            borrowed.close()
