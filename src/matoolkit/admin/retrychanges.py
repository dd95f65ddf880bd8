"""What changes with the new rows of retried members, and which finished steps used the old values (rule O14)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from matoolkit.admin.retryrows import NewRow, Rows
from matoolkit.domain.keys import folded
from matoolkit.domain.retrying import Past, PastPhase, Retried, Way, kept_phases, left_out
from matoolkit.domain.rowchanges import changed_columns, variables_of
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Transaction
from matoolkit.store.members import members_by_id
from matoolkit.store.narrow_members import NarrowMember
from matoolkit.store.runbooks import runbook_version
from matoolkit.store.steps import done_steps_of_members


@dataclass(frozen=True, slots=True)
class RowChange:
    """The row that a member takes, and the columns that are different in it."""

    member: NarrowMember
    row: NewRow
    columns: Sequence[str]


@dataclass(frozen=True, slots=True)
class ChangedColumn:
    """A column, and the members for whom it changes."""

    name: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DoneBefore:
    """A finished step that used old values of these columns and does not run again."""

    phase_name: str
    step_name: str
    columns: tuple[str, ...]
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """Where retried members begin, and what they have done before."""

    retried: Retried
    phases: Mapping[int, PastPhase]
    pasts: Mapping[int, Past]
    ways: Mapping[int, Way]

    def keeps(self, member: NarrowMember, epoch: int, phase: PastPhase) -> bool:
        """Tell whether what a member did in a phase in an epoch stays done."""
        past = self.pasts[member.id]
        if epoch != member.epoch and folded(phase.name) not in left_out(past, self.phases):
            return False
        return folded(phase.name) in kept_phases(past, self.ways[member.id], self.phases, self.retried)


def row_changes(tx: Transaction, members: Sequence[NarrowMember], rows: Rows) -> list[RowChange]:
    """Compare the new rows of members with the old ones; members whose row is the same are left out."""
    stored = {member.id: member for member in members_by_id(tx, [member.id for member in members])}
    changes = []
    for member in members:
        row, known = rows.rows[folded(member.member_key)], stored[member.id]
        if row.data_hash != known.data_hash:
            columns = changed_columns(orjson.loads(known.data_json), orjson.loads(row.data_json))
            changes.append(RowChange(member, row, columns))
    return changes


def by_column(changes: Sequence[RowChange]) -> tuple[ChangedColumn, ...]:
    """Say for each column that changes for whom it does."""
    members: dict[str, list[str]] = {}
    for change in changes:
        for column in change.columns:
            members.setdefault(column, []).append(change.member.member_key)
    return tuple(ChangedColumn(name, tuple(keys)) for name, keys in sorted(members.items()))


def done_before(tx: Transaction, runbook_name: str, changes: Sequence[RowChange], ways: Ways) -> tuple[DoneBefore, ...]:
    """Return the steps that used a changed column and do not run again for these members."""
    concerned = {change.member.id: change for change in changes if change.columns}
    definitions = _Definitions(tx, runbook_name)
    used: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for step in done_steps_of_members(tx, concerned):
        change, phase = concerned[step.batch_member_id], ways.phases[step.phase_execution_id]
        if not ways.keeps(change.member, step.epoch, phase):
            continue
        definition = definitions.step(phase, step.step_index)
        columns = [column for column in change.columns if column.casefold() in definition.variables]
        if columns:
            names, members = used.setdefault((phase.name, definition.name), (set(), set()))
            names.update(columns)
            members.add(change.member.member_key)
    return tuple(
        DoneBefore(phase, step, tuple(sorted(columns)), tuple(sorted(members)))
        for (phase, step), (columns, members) in used.items()
    )


@dataclass(frozen=True, slots=True)
class _Definition:
    name: str
    variables: frozenset[str]


class _Definitions:
    """The steps of a runbook's versions, each version read once."""

    def __init__(self, tx: Transaction, runbook_name: str) -> None:
        self._tx = tx
        self._name = runbook_name
        self._runbooks: dict[int, Runbook] = {}
        self._steps: dict[tuple[int, int], _Definition] = {}

    def step(self, phase: PastPhase, index: int) -> _Definition:
        """Return a step of a phase as its version has it."""
        known = self._steps.get((phase.id, index))
        if known is None:
            step = self._runbook(phase.version).phases[phase.index].steps[index]
            known = self._steps[phase.id, index] = _Definition(step.name, variables_of(step))
        return known

    def _runbook(self, number: int) -> Runbook:
        if number not in self._runbooks:
            row = runbook_version(self._tx, self._name, number)
            assert row is not None, "a phase has a version"  # noqa: S101 - versions are never deleted
            self._runbooks[number] = parse_runbook(row.yaml_content)
        return self._runbooks[number]
