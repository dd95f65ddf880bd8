"""Runbook versions, parsed once: a version never changes."""

from dataclasses import dataclass, field

from matoolkit.errors import MatoolkitError
from matoolkit.runbook.calls import CallTemplate
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store.runbooks import RunbookRow, runbook_version, runbooks_by_id
from matoolkit.store.transaction import Transaction

_MOST_KEPT = 128


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version of a runbook."""

    number: int
    runbook: Runbook
    # By the identity of its steps, which live as long as the version does.
    _definitions: dict[int, "Definition"] = field(default_factory=dict)

    def definition(self, step: Step) -> "Definition":
        """Return a step of this version with what all who do it have in common."""
        known = self._definitions.get(id(step))
        if known is None:
            known = self._definitions[id(step)] = Definition(step, self)
        return known


class Definition:
    """A step as a version of a runbook has it, and its call."""

    __slots__ = ("call", "step", "version")

    def __init__(self, step: Step, version: Version) -> None:
        self.step = step
        self.version = version
        self.call = CallTemplate(step)


class Versions:
    """The versions that were needed lately."""

    def __init__(self) -> None:
        self._by_id: dict[int, Version] = {}
        self._by_number: dict[tuple[str, int], Version] = {}

    def of_batch(self, tx: Transaction, runbook_id: int) -> Version:
        """Return the version that a batch follows."""
        if (known := self._by_id.get(runbook_id)) is not None:
            return known
        return self._keep(runbooks_by_id(tx, [runbook_id])[0])

    def numbered(self, tx: Transaction, name: str, number: int) -> Version:
        """Return a version of a runbook by its number."""
        if (known := self._by_number.get((name, number))) is not None:
            return known
        row = runbook_version(tx, name, number)
        if row is None:
            raise MatoolkitError(f"runbook {name} has no version {number}")
        return self._keep(row)

    def _keep(self, row: RunbookRow) -> Version:
        if len(self._by_id) >= _MOST_KEPT:
            self._by_id.clear()
            self._by_number.clear()
        version = Version(row.version, parse_runbook(row.yaml_content))
        self._by_id[row.id] = self._by_number[row.name, row.version] = version
        return version
