"""Every exception of the system.

    MatoolkitError                MT500   something in the system itself is wrong
    ├── NaiveTime                 MT501   a time without zone reached code that needs an instant
    ├── Refused                   MT400   what was asked for cannot be done as asked
    │   ├── InvalidSettings       ST400   the environment holds a setting that cannot be used
    │   ├── UnreadableFile        IN404   a file that was named cannot be read
    │   ├── UnknownFindingCode    RB404   no finding has this code
    │   ├── InvalidRunbook        RB400   a runbook has errors; carries its findings
    │   ├── InvalidDatabaseUrl    DB400   the address of the database cannot be used
    │   ├── UnusableKey           DB422   a key is empty, too long, or holds a NUL character
    │   └── TooManyColumns        DB413   a query returns more columns than a table can have
    ├── TemplateError             TP400   a template cannot be resolved for a member
    │   ├── UnresolvedVariable    TP404   nobody supplies the variable
    │   ├── AmbiguousVariable     TP409   several names match it but for their case
    │   ├── NotText               TP422   null, a list or a mapping stands inside a longer text
    │   └── FunctionNotAllowed    TP403   a templated function resolved to a name that is not allowed
    └── StoreError                DB500   the database refused a statement
        ├── RowConflict           DB409   a row breaks a rule of its table
        ├── StoreUnavailable      DB503   the database cannot be reached, or the connection broke
        ├── StoreBusy             DB504   another process holds what is needed, or a deadlock was broken
        ├── StoreFull             DB507   the database has no room left
        ├── StoreReadOnly         DB403   the database may only be read
        ├── StoreDamaged          DB508   the file is no database, or a broken one
        ├── DriverMissing         DB501   the driver for this database is not installed
        ├── LeaseLost             DB410   another process has taken over the work
        └── WrongSchema           DB510   the tables do not fit this version of the program
            ├── SchemaMissing     DB511   there are no tables yet
            ├── SchemaTooOld      DB512   the tables are those of an older version
            ├── SchemaTooNew      DB513   the tables are those of a newer version
            └── SchemaDamaged     DB514   the tables are not what their version says

Each class has a stable code, the HTTP status and the exit code with which people meet it; each instance
says what is wrong and, where something can be done about it, a hint. API, CLI and web render the same object.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from itertools import islice
from typing import ClassVar

_MOST_LETTERS_OFF = 4
_MOST_COMPARED = 200


class Severity(StrEnum):
    """How bad a finding is: an error stops the document from being used, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a document, where it stands there, and how to mend it.

    Lines and columns count from 1; `path` leads to the value from the top of the document.
    """

    code: str
    severity: Severity
    message: str
    line: int
    column: int
    hint: str | None = None
    path: tuple[str | int, ...] = ()

    @property
    def is_error(self) -> bool:
        """Whether the document cannot be used because of it."""
        return self.severity is Severity.ERROR


class MatoolkitError(Exception):
    """Something in the system itself is wrong."""

    code: ClassVar[str] = "MT500"
    http_status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 6

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class NaiveTime(MatoolkitError):
    """A time without zone reached code that needs an instant."""

    code = "MT501"

    def __init__(self, instant: datetime) -> None:
        super().__init__(f"{instant.isoformat()} has no time zone, so it is not an instant")
        self.instant = instant


class Refused(MatoolkitError):
    """What was asked for cannot be done as asked."""

    code = "MT400"
    http_status = 400
    exit_code = 2


class InvalidSettings(Refused):
    """The environment holds a setting that cannot be used."""

    code = "ST400"

    def __init__(self, problems: Sequence[str], *, hint: str | None = None) -> None:
        super().__init__("; ".join(problems), hint=hint)
        self.problems = tuple(problems)


class UnreadableFile(Refused):
    """A file that was named cannot be read."""

    code = "IN404"
    http_status = 404
    exit_code = 3

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot read {path}: {reason}", hint="check the path; `-` reads standard input")
        self.path = path


class UnknownFindingCode(Refused):
    """No finding has this code."""

    code = "RB404"
    http_status = 404
    exit_code = 3

    def __init__(self, asked: str, known: Iterable[str]) -> None:
        super().__init__(f"no finding has the code {asked!r}", hint=did_you_mean(asked.upper(), known))
        self.asked = asked


class InvalidRunbook(Refused):
    """A runbook has errors; carries all its findings, warnings included."""

    code = "RB400"
    http_status = 422
    exit_code = 1

    def __init__(self, findings: Sequence[Finding]) -> None:
        errors = sum(finding.is_error for finding in findings)
        super().__init__(
            f"the runbook has {errors} error{'s' if errors != 1 else ''}",
            hint="`matoolkit runbook lint FILE` shows each with its line",
        )
        self.findings = tuple(findings)


class TemplateError(MatoolkitError):
    """A template cannot be resolved for a member."""

    code = "TP400"
    http_status = 422
    exit_code = 1

    def __init__(self, reason: str, *, variable: str | None = None, hint: str | None = None) -> None:
        super().__init__(reason, hint=hint)
        self.variable = variable

    def blamed_on(self, step: str, member: str | None) -> "TemplateError":
        """Name the step and the member, which the template itself does not know (rule R9)."""
        whose = f"step '{step}'" if member is None else f"step '{step}' of member '{member}'"
        self.message = f"{whose}: {self.message}"
        self.args = (self.message,)
        return self


class UnresolvedVariable(TemplateError):
    """Nobody supplies the variable."""

    code = "TP404"

    def __init__(self, variable: str, known: Iterable[str]) -> None:
        super().__init__(
            f"variable '{variable}' cannot be resolved: it is neither a special variable, nor an output of an"
            " earlier step, nor a column of the query",
            variable=variable,
            hint=did_you_mean(variable, known),
        )


class AmbiguousVariable(TemplateError):
    """Several names match the variable but for their case, and none exactly."""

    code = "TP409"

    def __init__(self, variable: str, candidates: Sequence[str]) -> None:
        super().__init__(
            f"variable '{variable}' could be any of {', '.join(candidates)}",
            variable=variable,
            hint="write the name exactly as it is spelled where it comes from",
        )
        self.candidates = tuple(candidates)


class NotText(TemplateError):
    """Null, a list or a mapping stands where only text can."""

    code = "TP422"

    def __init__(self, variable: str, what: str) -> None:
        super().__init__(
            f"variable '{variable}' is {what}, which cannot be written inside a longer text",
            variable=variable,
            hint=f"let '{{{{{variable}}}}}' be the whole value, so that it keeps its type",
        )


class FunctionNotAllowed(TemplateError):
    """A templated function resolved to a name that the step does not allow (rule R5)."""

    code = "TP403"

    def __init__(self, function: str, allowed: Sequence[str]) -> None:
        super().__init__(
            f"function '{function}' is not one of the step's allowed_functions",
            hint=f"allowed are {', '.join(allowed)}",
        )
        self.function = function


class InvalidDatabaseUrl(Refused):
    """The address of the database cannot be used."""

    code = "DB400"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the database URL cannot be used: {reason}",
            hint="write sqlite:///FILE, postgresql://USER@HOST/DATABASE or mssql://HOST/DATABASE",
        )


class UnusableKey(Refused):
    """A key is empty, too long, or holds a NUL character."""

    code = "DB422"
    http_status = 422
    exit_code = 1

    def __init__(self, key: str, longest: int) -> None:
        super().__init__(f"{key[:60]!r} cannot be a key: it must have 1 to {longest} characters, and no NUL among them")
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
    """The database refused a statement; every other trouble with it is a special case of this.

    `transient` says that the same work may well succeed later, so it counts as nobody's failure (rule M6).
    """

    code = "DB500"
    transient: ClassVar[bool] = False
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
    advice = "check that the database runs and MATOOLKIT_DATABASE_URL names it; work resumes when it is back"


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
    advice = "free some disk space or raise the size limit of the database; work resumes by itself"


class StoreReadOnly(StoreError):
    """The database may only be read."""

    code = "DB403"
    advice = "check the permissions of the file or the account; a replica cannot be written to"


class StoreDamaged(StoreError):
    """The file is no database, or a broken one."""

    code = "DB508"
    advice = "check that MATOOLKIT_DATABASE_URL names the right file; otherwise restore a backup"


class DriverMissing(StoreError):
    """The driver for this database is not installed."""

    code = "DB501"
    exit_code = 2

    def __init__(self, database: str, extra: str) -> None:
        super().__init__(f"the driver for {database} is not installed", hint=f"pip install 'matoolkit[{extra}]'")


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
    advice = "`matoolkit db check` lists the differences; restore a backup or mend the tables by hand"

    def __init__(self, differences: Sequence[str]) -> None:
        shown = "; ".join(differences[:3])
        more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
        super().__init__(f"the tables differ from what their schema version says: {shown}{more}")
        self.differences = tuple(differences)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one was most likely meant to be."""
    # Comparing is slow; a word that was meant is hardly longer or shorter, and nobody types among thousands.
    similar = (name for name in known if abs(len(name) - len(word)) <= _MOST_LETTERS_OFF)
    by_folded = {name.casefold(): name for name in islice(similar, _MOST_COMPARED)}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Phrase the nearest known word as a hint."""
    found = nearest(word, known)
    return f"did you mean '{found}'?" if found else None
