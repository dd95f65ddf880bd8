"""Everything in which the three databases differ, and nothing else.

A `Dialect` answers the few questions that the rest of the store asks of a database;
there is one class for each, in a module of its own.
"""

from matoolkit.store.dialect.choice import dialect_for
from matoolkit.store.dialect.questions import Dialect

__all__ = ["Dialect", "dialect_for"]
