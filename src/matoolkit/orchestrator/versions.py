"""Runbook versions, parsed once: a version never changes. What is secret in it depends on what workers announce."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from matoolkit.domain.secrecy import known_secrets
from matoolkit.errors import MatoolkitError
from matoolkit.runbook.calls import CallTemplate
from matoolkit.runbook.model import Runbook, Step
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.secrecy import SecretParameters, Secrets, secrets_of
from matoolkit.store.catalogue import known_functions
from matoolkit.store.runbooks import RunbookRow, runbook_version, runbooks_by_id
from matoolkit.store.sql.transaction import Transaction

_MOST_KEPT = 128
# Another orchestrator may have handled an announcement; this one knows it after this long at the latest.
_FRESH = timedelta(minutes=1)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version of a runbook."""

    number: int
    runbook: Runbook
    secrets: Secrets
    # By the identity of its steps, which live as long as the version does.
    _definitions: dict[int, "Definition"] = field(default_factory=dict)

    def definition(self, step: Step) -> "Definition":
        """Return a step of this version with everything that is the same for all members."""
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
        self.call = CallTemplate(step, version.secrets)


class Versions:
    """The versions that were needed lately."""

    def __init__(self) -> None:
        self._by_id: dict[int, Version] = {}
        self._by_number: dict[tuple[str, int], Version] = {}
        self._secret: SecretParameters = known_secrets(())
        self._has_news = False
        self._asked_at = self._now = _LONG_AGO

    def expect_news(self) -> None:
        """Note that a worker has announced something."""
        self._has_news = True

    def refresh(self, tx: Transaction, now: datetime) -> None:
        """Read announcements again after a new one, or after a while: another process may have handled one."""
        self._now = now
        if self._by_id and (self._has_news or now - self._asked_at >= _FRESH):
            self._ask(tx)

    def _ask(self, tx: Transaction) -> None:
        self._has_news, self._asked_at = False, self._now
        secret = known_secrets((row.function_name, row.parameters_json) for row in known_functions(tx))
        if secret != self._secret:
            self._secret = secret
            self._forget()

    def of_batch(self, tx: Transaction, runbook_id: int) -> Version:
        """Return the version that a batch follows."""
        if (known := self._by_id.get(runbook_id)) is not None:
            return known
        return self._keep(tx, runbooks_by_id(tx, [runbook_id])[0])

    def numbered(self, tx: Transaction, name: str, number: int) -> Version:
        """Return a version of a runbook by its number."""
        if (known := self._by_number.get((name, number))) is not None:
            return known
        row = runbook_version(tx, name, number)
        if row is None:
            raise MatoolkitError(f"runbook {name} has no version {number}")
        return self._keep(tx, row)

    def _keep(self, tx: Transaction, row: RunbookRow) -> Version:
        if len(self._by_id) >= _MOST_KEPT:
            self._forget()
        self._ask(tx)
        runbook = parse_runbook(row.yaml_content)
        version = Version(row.version, runbook, secrets_of(runbook, self._secret))
        self._by_id[row.id] = self._by_number[row.name, row.version] = version
        return version

    def _forget(self) -> None:
        self._by_id.clear()
        self._by_number.clear()
