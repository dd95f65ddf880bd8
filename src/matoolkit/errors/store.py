"""What can go wrong with the database."""

from collections.abc import Sequence
from typing import ClassVar

from matoolkit.errors.root import MatoolkitError, Refused


class InvalidDatabaseUrl(Refused):
    """The address of the database cannot be used."""

    code = "DB400"

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        forms = "write sqlite:///FILE, postgresql://USER@HOST/DATABASE or mssql://HOST/DATABASE"
        super().__init__(f"the database URL cannot be used: {reason}", hint=hint or forms)


class RolesNotSupported(Refused):
    """This database has no users, so nobody can be allowed less than another."""

    code = "DB405"

    def __init__(self, database: str) -> None:
        super().__init__(
            f"{database} has no users and no roles",
            hint="protect its file, or use PostgreSQL or Azure SQL (MATOOLKIT_DATABASE_URL)",
        )


class UnusableKey(Refused):
    """A key is empty, too long, or has a character that cannot be stored."""

    code = "DB422"
    http_status = 422
    exit_code = 1

    def __init__(self, key: str, longest: int) -> None:
        rule = f"it must have 1 to {longest} characters, without NUL and without half of a surrogate pair"
        super().__init__(f"{key[:60]!r} cannot be a key: {rule}")
        self.key = key


class TooManyColumns(Refused):
    """A query returns more columns than a table can have on every database."""

    code = "DB413"
    http_status = 422
    exit_code = 1

    def __init__(self, table: str, columns: int, most: int) -> None:
        super().__init__(
            f"{table} would have {columns} columns; a data table holds at most {most}",
            hint="select only the columns that the runbook needs",
        )


class StoreError(MatoolkitError):
    """The database refused a statement; every other error of the database is a special case of this."""

    code = "DB500"
    advice: ClassVar[str | None] = None

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint or self.advice)


class RowConflict(StoreError):
    """A row breaks a rule of its table: a key that is taken, a parent that is missing, an unknown status."""

    code = "DB409"
    http_status = 409
    exit_code = 5


class StoreUnavailable(StoreError):
    """The database cannot be reached, or the connection broke; what was not committed is undone."""

    code = "DB503"
    http_status = 503
    transient = True
    is_outage = True
    advice = "check that the database runs and MATOOLKIT_DATABASE_URL names it; work resumes when it is back"


class SignInRefused(StoreError):
    """The database does not let this process in: no identity, the wrong one, or a wrong password."""

    code = "DB401"
    http_status = 503
    exit_code = 4
    is_outage = True
    advice = "check the identity or the password of the process, and that the database has a user for it"


class StoreBusy(StoreError):
    """Another process holds what is needed, or a deadlock was broken; the transaction is undone."""

    code = "DB504"
    http_status = 503
    transient = True
    advice = "try again; if it lasts, look for a process that keeps a transaction open"


class StoreFull(StoreError):
    """The database has no room left; the transaction is undone."""

    code = "DB507"
    http_status = 507
    transient = True
    is_outage = True
    advice = "free some disk space or raise the size limit of the database; work resumes by itself"


class StoreReadOnly(StoreError):
    """The database may only be read."""

    code = "DB403"
    http_status = 503
    transient = True
    is_outage = True
    advice = "check the permissions of the file, its folder or the account; a replica cannot be written to"


class StoreDamaged(StoreError):
    """The file is not a database, or it is damaged."""

    code = "DB508"
    advice = "check that MATOOLKIT_DATABASE_URL names the right file; otherwise restore a backup"


class DriverMissing(StoreError):
    """The driver for this database is not installed."""

    code = "DB501"
    exit_code = 2

    def __init__(self, database: str, extra: str) -> None:
        super().__init__(f"the driver for {database} is not installed", hint=f"pip install 'matoolkit[{extra}]'")


class UnknownServer(StoreError):
    """The server says of itself that it is something else than its address promises."""

    code = "DB502"
    exit_code = 2

    def __init__(self, database: str, said: str) -> None:
        super().__init__(
            f"the server does not say that it is {database}, but '{said}'",
            hint=f"let MATOOLKIT_DATABASE_URL name {database} itself; servers that imitate it are not supported",
        )
        self.said = said


class ReadsNotStable(StoreError):
    """The database does not let a reader see one picture while others write."""

    code = "DB505"
    exit_code = 5
    http_status = 503
    advice = (
        "run ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON; `matoolkit db check` says what else may be missing"
    )


class LeaseLost(StoreError):
    """Another process has taken over the work; this one must stop what it was doing."""

    code = "DB410"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(f"{holder} no longer holds the lease '{name}'")
        self.name = name
        self.holder = holder


class WrongSchema(StoreError):
    """The tables do not fit this version of the program."""

    code = "DB510"
    exit_code = 5
    http_status = 503
    advice = "run `matoolkit db upgrade`"


class SchemaMissing(WrongSchema):
    """There are no tables yet."""

    code = "DB511"

    def __init__(self) -> None:
        super().__init__("the database has no tables yet")


class SchemaTooOld(WrongSchema):
    """The tables are those of an older version."""

    code = "DB512"

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(f"the database is at schema {found}, this version of matoolkit needs {wanted}")
        self.found = found
        self.wanted = wanted


class SchemaTooNew(WrongSchema):
    """The tables are those of a newer version."""

    code = "DB513"
    advice = "install the newer matoolkit that ran `matoolkit db upgrade` on this database"

    def __init__(self, found: str, wanted: str) -> None:
        super().__init__(f"the database is at schema {found}, which is newer than this version's {wanted}")
        self.found = found
        self.wanted = wanted


class SchemaDamaged(WrongSchema):
    """The tables are not what their version says."""

    code = "DB514"
    advice = "`matoolkit db check` lists the differences; restore a backup or fix the tables by hand"

    def __init__(self, differences: Sequence[str]) -> None:
        shown = "; ".join(differences[:3])
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        super().__init__(f"the tables differ from what their schema version says: {shown}{more}")
        self.differences = tuple(differences)
