"""What a finding's code stands for."""

from dataclasses import dataclass

from matoolkit.errors import Severity


@dataclass(frozen=True, slots=True)
class FindingKind:
    """What a code stands for; `hint` is for findings that have no better one, `hides_value` for possible secrets."""

    code: str
    title: str
    explanation: str
    hint: str
    hides_value: bool = False

    @property
    def severity(self) -> Severity:
        """A warning if its code is RB3xx, else an error."""
        return Severity.WARNING if self.code.startswith("RB3") else Severity.ERROR
