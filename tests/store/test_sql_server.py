"""What SQL Server and Azure SQL say when something goes wrong, in the form in which the driver says it.

Nothing here has met a real Azure SQL: its texts are those that Microsoft documents.
"""

from collections.abc import Iterator

import pytest
from mssql_python.exceptions import raise_exception
from sqlalchemy import text

from matoolkit.errors import (
    ReadsNotStable,
    RowConflict,
    SignInRefused,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    UnknownServer,
)
from matoolkit.store import Store, open_store
from matoolkit.store.dialect.mssql import SqlServer
from matoolkit.store.dialect.mssql_errors import TOLD, Told
from matoolkit.store.upgrade import schema_status
from tests.servers.tds import Organisation, Refusal, Result

SERVER = "[Microsoft][ODBC Driver 18 for SQL Server][SQL Server]"
DRIVER = "[Microsoft][ODBC Driver 18 for SQL Server]"
VERSION = "Microsoft SQL Azure (RTM) - 12.0.2000.8"

# The whole texts, as a server fills them in.
TEXTS: dict[int, tuple[str, type[StoreError]]] = {
    229: ("The UPDATE permission was denied on the object 'batches', database 'state', schema 'dbo'.", StoreReadOnly),
    615: (
        "Could not find database ID 7, name 'state'. The database may be offline. Wait a few minutes and try again.",
        StoreUnavailable,
    ),
    701: ("There is insufficient system memory in resource pool 'default' to run this query.", StoreBusy),
    926: (
        (
            "Database 'replicatedmaster' cannot be opened. It has been marked SUSPECT by recovery."
            " See the SQL Server errorlog for more information."
        ),
        StoreUnavailable,
    ),
    1101: (
        "Could not allocate a new page for database 'state' because of insufficient disk space in filegroup 'PRIMARY'.",
        StoreFull,
    ),
    1105: (
        (
            "Could not allocate space for object 'dbo.steps'.'pk_steps' in database 'state'"
            " because the 'PRIMARY' filegroup is full."
        ),
        StoreFull,
    ),
    1205: (
        (
            "Transaction (Process ID 52) was deadlocked on lock | communication buffer resources with another process"
            " and has been chosen as the deadlock victim. Rerun the transaction."
        ),
        StoreBusy,
    ),
    1222: ("Lock request time out period exceeded.", StoreBusy),
    3906: ('Failed to update database "state" because the database is read-only.', StoreReadOnly),
    3952: (
        (
            "Snapshot isolation transaction failed accessing database 'state' because snapshot isolation is not allowed"
            " in this database. Use ALTER DATABASE to allow snapshot isolation."
        ),
        ReadsNotStable,
    ),
    3958: (
        (
            "Transaction aborted when accessing versioned row in table 'dbo.steps' in database 'state'."
            " Requested versioned row was not found. Your tempdb is probably out of space."
        ),
        StoreBusy,
    ),
    3961: (
        (
            "Snapshot isolation transaction failed in database 'state' because the object accessed by the statement has"
            " been modified by a DDL statement in another concurrent transaction since the start of this transaction."
        ),
        StoreBusy,
    ),
    4060: ('Cannot open database "state" requested by the login. The login failed.', StoreUnavailable),
    4221: (
        (
            "Login to read-secondary failed due to long wait on 'HADR_DATABASE_WAIT_FOR_TRANSITION_TO_VERSIONING'."
            " The replica is not available for login because row versions are missing for transactions that were"
            " in-flight when the replica was recycled."
        ),
        StoreUnavailable,
    ),
    6005: ("SHUTDOWN is in progress.", StoreUnavailable),
    8628: ("A time out occurred while waiting to optimize the query. Rerun the query.", StoreBusy),
    8645: (
        (
            "A timeout occurred while waiting for memory resources to execute the query in resource pool 'default' (2)."
            " Rerun the query."
        ),
        StoreBusy,
    ),
    9002: ("The transaction log for database 'state' is full due to 'LOG_BACKUP'.", StoreFull),
    10928: (
        (
            "Resource ID: 1. The request limit for the database is 60 and has been reached."
            " See 'https://go.microsoft.com/fwlink/?LinkId=267637' for assistance."
        ),
        StoreBusy,
    ),
    10929: (
        (
            "Resource ID: 1. The request minimum guarantee is 0, maximum limit is 60"
            " and the current usage for the database is 51."
            " However, the server is currently too busy to support requests greater than 50 for this database."
        ),
        StoreBusy,
    ),
    18456: ("Login failed for user '<token-identified principal>'.", SignInRefused),
    40143: ("The replica that the data node hosts for the requested partition is not primary.", StoreUnavailable),
    40166: (
        "A CloudDB reconfiguration is going on and all new user transactions are aborted.",
        StoreUnavailable,
    ),
    40197: (
        "The service has encountered an error processing your request. Please try again. Error code 40166.",
        StoreUnavailable,
    ),
    40501: (
        (
            "The service is currently busy. Retry the request after 10 seconds."
            " Incident ID: 6e6e0f4c-2c1e-4c2e-9a8e-3f1f5f0f5a11. Code: 245."
        ),
        StoreBusy,
    ),
    40540: (
        (
            "Transaction was aborted as database is moved to read-only mode."
            " This is a temporary situation and please retry the operation."
        ),
        StoreUnavailable,
    ),
    40544: ("The database 'state' has reached its size quota. Partition or delete data, drop indexes.", StoreFull),
    40613: (
        "Database 'state' on server 'contoso' is not currently available. Please retry the connection later.",
        StoreUnavailable,
    ),
    40615: (
        (
            "Cannot open server 'contoso' requested by the login. Client with IP address '203.0.113.7' is not allowed"
            " to access the server."
        ),
        SignInRefused,
    ),
    42108: (
        "Can not connect to the SQL pool since it is paused. Please resume the SQL pool and try again.",
        StoreUnavailable,
    ),
    42109: ("The SQL pool is warming up. Please try again.", StoreUnavailable),
    49918: ("Cannot process request. Not enough resources to process request.", StoreBusy),
    49919: (
        (
            "Cannot process create or update request."
            ' Too many create or update operations in progress for subscription "42".'
        ),
        StoreBusy,
    ),
    49920: ('Cannot process request. Too many operations in progress for subscription "42".', StoreBusy),
}


def error_for(sqlstate: str, said: str) -> type[StoreError]:
    """Let the driver make the exception that it makes of a SQLSTATE and a text, and tell what it is to us."""
    with pytest.raises(Exception, match="Driver Error: ") as raised:
        raise_exception(sqlstate, said)
    return SqlServer().error_for(raised.value)


def test_every_error_of_the_table_has_a_whole_text_here() -> None:
    assert {told.number for told in TOLD} == set(TEXTS)


@pytest.mark.parametrize("told", TOLD, ids=lambda told: str(told.number))
def test_every_row_of_the_table_is_found(told: Told) -> None:
    assert error_for("42000", SERVER + told.text.replace("%", "7")) is told.error


@pytest.mark.parametrize("sqlstate", ["42000", "HY000", "S0001"])
@pytest.mark.parametrize("number", TEXTS)
def test_m6_an_error_of_the_server_is_known_by_its_text(number: int, sqlstate: str) -> None:
    said, error = TEXTS[number]
    assert error_for(sqlstate, SERVER + said) is error


@pytest.mark.parametrize("number", [number for number, (_, error) in TEXTS.items() if error.transient])
def test_a_row_that_holds_the_text_of_a_transient_error_is_an_ordinary_error(number: int) -> None:
    said, _ = TEXTS[number]
    taken = (
        f"Violation of UNIQUE KEY constraint 'uq_x'. Cannot insert duplicate key. The duplicate key value is ({said})."
    )
    assert error_for("23000", SERVER + taken) is RowConflict
    assert error_for("42000", f"{SERVER}Conversion failed when converting the nvarchar value '{said}'.") is StoreError


@pytest.mark.parametrize(
    ("sqlstate", "said", "error"),
    [
        ("23000", 'The INSERT statement conflicted with the CHECK constraint "ck_status".', RowConflict),
        (
            "23000",
            "Violation of PRIMARY KEY constraint 'pk_steps'. The duplicate key value is (deadlocked).",
            RowConflict,
        ),
        (
            "22001",
            "String or binary data would be truncated. Truncated value: 'SHUTDOWN is in progress.'.",
            RowConflict,
        ),
        ("42S02", "Invalid object name 'The SQL pool is warming up.'.", StoreError),
        (
            "42000",
            (
                "The current transaction cannot be committed and cannot be rolled back to a savepoint."
                " Roll back the entire transaction."
            ),
            StoreError,
        ),
        ("42000", "Database 'state' does not exist. Make sure that the name is entered correctly.", StoreError),
        ("42000", "Could not find stored procedure 'x'.", StoreError),
        ("42000", "Cannot process the object 'x'.", StoreError),
        ("HY000", "Database '' exists. SELECT ' on server '' is not currently available.", StoreError),
    ],
)
def test_an_ordinary_error_that_resembles_a_transient_one_is_not_taken_for_it(
    sqlstate: str, said: str, error: type[StoreError]
) -> None:
    assert error_for(sqlstate, SERVER + said) is error


@pytest.mark.parametrize(
    ("sqlstate", "said", "error"),
    [
        ("08S01", f"{DRIVER}TCP Provider: Error code 0x68", StoreUnavailable),
        ("08S01", f"{DRIVER}Communication link failure", StoreUnavailable),
        ("08001", f"{DRIVER}Unable to complete login process due to delay in login response", StoreUnavailable),
        ("08003", f"{DRIVER}Connection is not open", StoreUnavailable),
        ("08007", f"{DRIVER}The connection failed during the transaction", StoreUnavailable),
        ("28000", f"{SERVER}Login failed for user 'me'.", SignInRefused),
        ("HYT01", f"{DRIVER}Connection timeout expired", StoreUnavailable),
        ("HYT00", f"{DRIVER}Login timeout expired", StoreUnavailable),
        ("HYT00", f"{DRIVER}Query timeout expired", StoreBusy),
        ("40001", f"{SERVER}A text of a later version.", StoreBusy),
        (
            "HY000",
            f"{DRIVER}Connection closed: Connection closed by server while reading TDS packet header",
            StoreUnavailable,
        ),
        ("HY000", f"{DRIVER}IO error: Broken pipe (os error 32)", StoreUnavailable),
        ("HY000", f"{SERVER}IO error in the user's text", StoreError),
        ("08001", "Failed to load the driver. Please read the installation guide.", StoreError),
    ],
)
def test_m6_what_the_driver_says_of_the_connection_is_told_apart(
    sqlstate: str, said: str, error: type[StoreError]
) -> None:
    assert error_for(sqlstate, said) is error


def test_an_exception_of_another_form_is_no_transient_error() -> None:
    assert SqlServer().error_for(ValueError("SHUTDOWN is in progress.")) is StoreError


@pytest.fixture
def azure(organisation: Organisation) -> Iterator[Store]:
    # SQLAlchemy asks a few things before the first query.
    organisation.answer_all_else(Result([("", "nvarchar")], [("READ COMMITTED",)]))
    organisation.answer("select @@version", Result([("", "nvarchar")], [(VERSION,)]))
    organisation.answer("SELECT @@VERSION", Result([("", "nvarchar")], [(VERSION,)]))
    organisation.accept(None)
    store = open_store(f"mssql://me:hunter2@localhost:{organisation.port()}/state?Encrypt=yes")
    yield store
    store.close()


def transaction(store: Store) -> None:
    with store.transaction() as tx:
        tx.values(text("SELECT 1 AS work"))


def test_m6_a_fault_of_azure_sql_ends_a_transaction_and_the_next_one_works(
    organisation: Organisation, azure: Store
) -> None:
    organisation.answer("SELECT 1 AS work", Refusal(40197, TEXTS[40197][0]))
    for _ in range(2):
        with pytest.raises(StoreUnavailable) as failed:
            transaction(azure)
        assert "Error code 40166" in failed.value.message
    organisation.answer("SELECT 1 AS work", Result([("", "nvarchar")], [("1",)]))
    transaction(azure)


def test_a_server_of_an_unknown_kind_is_refused_with_what_it_says_of_itself(
    organisation: Organisation, azure: Store
) -> None:
    other = "Babelfish for PostgreSQL with SQL Server Compatibility\nCopyright (c) its makers"
    for question in ("select @@version", "SELECT @@VERSION"):
        organisation.answer(question, Result([("", "nvarchar")], [(other,)]))
    with pytest.raises(UnknownServer, match=r"Babelfish for PostgreSQL with SQL Server Compatibility'$") as refused:
        schema_status(azure)
    assert "SQL Server" in str(refused.value.hint)
