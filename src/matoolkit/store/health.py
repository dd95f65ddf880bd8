"""Whether the database works: this tells a fault of the database from a fault of a message (rule M6)."""

from sqlalchemy import select

from matoolkit.store.idempotency import require_writable
from matoolkit.store.schema import metadata
from matoolkit.store.sql.transaction import Store


def require_healthy(store: Store) -> None:
    """Read from every table with all its columns, and write; raise the error of the database if that fails."""
    with store.reading() as tx:
        for table in metadata.sorted_tables:
            tx.rows(lambda *row: row, select(table).limit(1))
    require_writable(store)
