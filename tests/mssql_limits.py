"""What Babelfish cannot do, test by test, each with its reason.

Babelfish speaks T-SQL and is PostgreSQL underneath. The tests of this list fail on it, and should pass on a SQL Server.
A test of the list that passes is an error, and so is an entry that names no test.
"""

_GAPS = "It ignores HOLDLOCK: of two that insert the same row at once, one gets a conflict instead of waiting."

_BY_FILE = {
    "tests/bus/test_sql.py": {
        "test_publishers_of_the_same_ids_in_different_orders_do_not_wait_for_each_other[mssql]": _GAPS,
    },
}

LIMITS = {f"{file}::{name}": reason for file, names in _BY_FILE.items() for name, reason in names.items()}
