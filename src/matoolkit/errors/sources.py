"""Errors of the databases that members come from."""

from matoolkit.errors.root import MatoolkitError, Refused


class SourceNotConfigured(Refused):
    """The environment lacks what a runbook's source needs."""

    code = "SC404"
    http_status = 422

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"the environment variable {variable}, which the runbook's data_source names, is not set",
            hint=f"set {variable} where the scheduler runs",
        )
        self.variable = variable


class SourceFailed(MatoolkitError):
    """A source could not be queried; nothing was changed because of it (rule T2)."""

    code = "SC502"
    http_status = 502
    transient = True
