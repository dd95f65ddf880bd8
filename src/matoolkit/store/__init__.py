"""The state of everything, in SQL: SQLite, PostgreSQL or Azure SQL.

Services open a `Store`, begin a transaction and call the functions of this room with it; they never see a
statement. One function is one purpose, its guards are in the statement, and it says which rows it changed.
"""

from matoolkit.store.sql.engine import open_store
from matoolkit.store.sql.transaction import Store, Transaction

__all__ = ["Store", "Transaction", "open_store"]
