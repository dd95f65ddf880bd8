"""Errors of the databases that members come from."""

from collections.abc import Sequence

from matoolkit.errors.root import MatoolkitError, Refused, did_you_mean


class SourceNotConfigured(Refused):
    """An environment variable that a runbook's source needs is not set."""

    code = "SC404"
    http_status = 422

    def __init__(self, variable: str, *, needed_for: str) -> None:
        super().__init__(
            f"the environment variable {variable}, {needed_for}, is not set",
            hint=f"set {variable} where the scheduler runs",
        )
        self.variable = variable


class SourceFailed(MatoolkitError):
    """A source could not be queried; nothing was changed because of it (rule T2)."""

    code = "SC502"
    http_status = 502
    transient = True


class SpoolFailed(MatoolkitError):
    """The rows of a source cannot be kept in the folder for temporary files; nothing was changed (rule T2)."""

    code = "SC507"
    http_status = 507
    transient = True

    def __init__(self, folder: str, reason: str) -> None:
        super().__init__(
            f"the rows of the source cannot be kept in {folder}: {reason}",
            hint="make room there, or set TMPDIR to a folder on a disk with room for all rows",
        )


class MissingColumn(MatoolkitError):
    """A query did not return a column that its runbook names."""

    code = "SC422"
    http_status = 422

    def __init__(self, column: str, columns: Sequence[str]) -> None:
        hint = did_you_mean(column, columns) or f"it returned {', '.join(columns[:10])}"
        super().__init__(f"the query returned no column '{column}', which the runbook's data_source names", hint=hint)
        self.column = column
