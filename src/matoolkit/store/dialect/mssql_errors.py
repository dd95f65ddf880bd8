"""What SQL Server, Azure SQL and their driver say when something goes wrong, told apart.

The driver passes on neither the number of an error nor its SQLSTATE. It says its own words for the SQLSTATE and repeats
the text of the server: `Driver Error: <words>; DDBC Error: [Microsoft][SQL Server]<text>`. We know an error of the
server by its text, which must begin like one of the table. Values of rows stand further back in a text, so no data can
pass for another error. The texts are those of a login whose language is English.
"""

import re
from typing import NamedTuple

from matoolkit.errors import (
    ReadsNotStable,
    RowConflict,
    SignInRefused,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)

_LEARN = "https://learn.microsoft.com"
_AZURE = f"{_LEARN}/azure/azure-sql/database/troubleshoot-common-errors-issues"
_ENGINE = f"{_LEARN}/sql/relational-databases/errors-events/database-engine-events-and-errors-"
_JDBC = f"{_LEARN}/sql/connect/jdbc/configurable-retry-logic"
_ERROR = f"{_LEARN}/sql/relational-databases/errors-events/mssqlserver-"
# Microsoft documents these numbers only as the code inside the text of 40197. Other programs quote the texts of 40143
# and 40540; nothing confirms the text of 40166.
_NOT_CONFIRMED = "not confirmed"


class Told(NamedTuple):
    """An error of the server: how its text begins, with `%` for what the server fills in, and what it is to us."""

    number: int
    text: str
    error: type[StoreError]
    source: str


TOLD = (
    Told(229, "The % permission was denied on", StoreReadOnly, f"{_ENGINE}0-to-999"),
    Told(615, "Could not find database ID %, name '%'", StoreUnavailable, _AZURE),
    Told(
        701, "There is insufficient system memory in resource pool '%'", StoreBusy, f"{_ERROR}701-database-engine-error"
    ),
    Told(926, "Database '%' cannot be opened. It has been marked SUSPECT by recovery.", StoreUnavailable, _AZURE),
    Told(1101, "Could not allocate a new page for database '%'", StoreFull, f"{_ENGINE}1000-to-1999"),
    Told(1105, "Could not allocate space for object '%'", StoreFull, f"{_ENGINE}1000-to-1999"),
    Told(1205, "Transaction% was deadlocked on", StoreBusy, f"{_ENGINE}1000-to-1999"),
    Told(1222, "Lock request time out period exceeded.", StoreBusy, f"{_ENGINE}1000-to-1999"),
    Told(
        3906,
        'Failed to update database "%" because the database is read-only.',
        StoreReadOnly,
        f"{_ENGINE}3000-to-3999",
    ),
    Told(
        3952,
        "Snapshot isolation transaction failed accessing database '%' because snapshot isolation is not allowed",
        ReadsNotStable,
        f"{_ENGINE}3000-to-3999",
    ),
    Told(
        3958,
        "Transaction aborted when accessing versioned row in table '%' in database '%'.",
        StoreBusy,
        f"{_ENGINE}3000-to-3999",
    ),
    # A data table got a column while its rows were read; the next reading sees it whole.
    Told(
        3961,
        "Snapshot isolation transaction failed in database '%' because the object accessed by the statement has been"
        " modified by a DDL statement",
        StoreBusy,
        f"{_ENGINE}3000-to-3999",
    ),
    Told(4060, 'Cannot open database "%" requested by the login.', StoreUnavailable, _AZURE),
    Told(4221, "Login to read-secondary failed due to long wait on '%'.", StoreUnavailable, _AZURE),
    Told(6005, "SHUTDOWN is in progress.", StoreUnavailable, f"{_ENGINE}6000-to-6999"),
    Told(8628, "A time out occurred while waiting to optimize the query.", StoreBusy, f"{_ENGINE}8000-to-8999"),
    Told(
        8645,
        "A timeout occurred while waiting for memory resources to execute the query",
        StoreBusy,
        f"{_ERROR}8645-database-engine-error",
    ),
    Told(9002, "The transaction log for database '%' is full", StoreFull, f"{_ERROR}9002-database-engine-error"),
    Told(10928, "Resource ID: %. The % limit for the database is % and has been reached.", StoreBusy, _AZURE),
    Told(10929, "Resource ID: %. The % minimum guarantee is %, maximum limit is %", StoreBusy, _AZURE),
    Told(18456, "Login failed for user '%'", SignInRefused, f"{_ERROR}18456-database-engine-error"),
    Told(
        40143,
        "The replica that the data node hosts for the requested partition is not primary.",
        StoreUnavailable,
        _NOT_CONFIRMED,
    ),
    Told(40166, "A CloudDB reconfiguration is going on", StoreUnavailable, _NOT_CONFIRMED),
    # The text goes on with one of the codes 40020, 40143, 40166 and 40540, or with none.
    Told(40197, "The service has encountered an error processing your request.", StoreUnavailable, _AZURE),
    Told(40501, "The service is currently busy. Retry the request after", StoreBusy, _AZURE),
    Told(40540, "Transaction was aborted as database is moved to read-only mode.", StoreUnavailable, _NOT_CONFIRMED),
    # Documented without the name of the database; the second form has it, and could not be confirmed.
    Told(40544, "The database has reached its size quota.", StoreFull, _AZURE),
    Told(40544, "The database '%' has reached its size quota.", StoreFull, _NOT_CONFIRMED),
    # A serverless database that wakes up says this, too.
    Told(40613, "Database '%' on server '%' is not currently available.", StoreUnavailable, _AZURE),
    # The firewall of the server.
    Told(40615, "Cannot open server '%' requested by the login. Client with IP address '%'", SignInRefused, _AZURE),
    Told(42108, "Can not connect to the SQL pool since it is paused.", StoreUnavailable, _JDBC),
    Told(42109, "The SQL pool is warming up.", StoreUnavailable, f"{_ERROR}42109-database-engine-error"),
    Told(49918, "Cannot process request. Not enough resources to process request.", StoreBusy, _AZURE),
    Told(49919, "Cannot process create or update request. Too many create or update operations", StoreBusy, _AZURE),
    Told(49920, "Cannot process request. Too many operations in progress", StoreBusy, _AZURE),
)

# What the driver says of itself. A server that is slow to answer a login may be a serverless database that wakes up.
_DRIVER_TEXTS: dict[str, type[StoreError]] = {
    "Failed to load the driver": StoreError,
    "Login timeout expired": StoreUnavailable,
    "Connection closed": StoreUnavailable,
    "IO error": StoreUnavailable,
}

# The driver's words for a SQLSTATE.
_DRIVER_WORDS: dict[str, type[StoreError]] = {
    "Integrity constraint violation": RowConflict,
    "String data, right-truncated": RowConflict,
    "Serialization failure": StoreBusy,
    "Timeout expired": StoreBusy,
    "Client unable to establish connection": StoreUnavailable,
    "Communication link failure": StoreUnavailable,
    "Connection failure during transaction": StoreUnavailable,
    "Connection not open": StoreUnavailable,
    "Connection operation failed": StoreUnavailable,
    "Connection timeout expired": StoreUnavailable,
    "Disconnect error": StoreUnavailable,
    "Invalid authorization specification": SignInRefused,
    "Server rejected the connection": StoreUnavailable,
}

_FORM = re.compile(
    r"Driver Error: (?P<words>.*?)(; DDBC Error: (\[Microsoft\])?(?P<server>\[SQL Server\])?(?P<text>.*))?", re.DOTALL
)


def _beginning(text: str) -> re.Pattern[str]:
    return re.compile("[^'\"]*?".join(re.escape(part) for part in text.split("%")))


_BEGINNINGS = [(_beginning(told.text), told.error) for told in TOLD]


def told_apart(said: str) -> type[StoreError]:
    """Tell which of our errors the driver speaks of; the text says more than the words for the SQLSTATE."""
    form = _FORM.fullmatch(said)
    if form is None:
        return StoreError
    text, by_words = form["text"] or "", _DRIVER_WORDS.get(form["words"], StoreError)
    if form["server"]:
        return next((error for beginning, error in _BEGINNINGS if beginning.match(text)), by_words)
    return next((error for beginning, error in _DRIVER_TEXTS.items() if text.startswith(beginning)), by_words)
