"""What can be wrong with a runbook, as a document and as templates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from matoolkit.errors.root import MatoolkitError, Refused, did_you_mean


class Severity(StrEnum):
    """How bad a finding is: an error stops the document from being used, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a document, where it is, and how to fix it.

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


class UnknownCode(Refused):
    """No error and no finding has this code."""

    code = "RB404"
    http_status = 404
    exit_code = 3

    def __init__(self, asked: str, known: Iterable[str]) -> None:
        hint = did_you_mean(asked.upper(), known)
        listed = "`matoolkit explain` lists them all"
        super().__init__(f"nothing has the code {asked!r}", hint=f"{hint} {listed}" if hint else listed)
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
    """Nothing supplies the variable."""

    code = "TP404"

    def __init__(self, variable: str, known: Iterable[str]) -> None:
        super().__init__(
            f"variable '{variable}' cannot be resolved: it is neither a special variable, nor an output of an"
            " earlier step, nor a column of the query",
            variable=variable,
            hint=did_you_mean(variable, known),
        )


class AmbiguousVariable(TemplateError):
    """Several names match the variable if case is ignored, and none exactly."""

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


class SecretFromData(TemplateError):
    """Data names a secret, which only a runbook may do (rule W8)."""

    code = "TP424"

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"variable '{variable}' has a value that begins with 'secret:': data may not name a secret",
            variable=variable,
            hint="write secret:NAME in the runbook, or correct the data",
        )


class NotAFunctionName(TemplateError):
    """A templated function resolved to something that is not a name."""

    code = "TP423"

    def __init__(self, variable: str, what: str) -> None:
        super().__init__(f"variable '{variable}' is {what} and cannot name a function", variable=variable)


class FunctionNotAllowed(TemplateError):
    """A templated function resolved to a name that the step does not allow (rule R5)."""

    code = "TP403"

    def __init__(self, function: str, allowed: Sequence[str]) -> None:
        super().__init__(
            f"function '{function}' is not one of the step's allowed_functions",
            hint=f"allowed are {', '.join(allowed)}",
        )
        self.function = function
