"""Reports: a row for each person, and the sums that a manager asks for (rule U1).

The number of statements grows neither with people nor with batches; a runbook whose columns are shown takes a few.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import orjson

from matoolkit.admin.queries import existing_batch, latest_runbook
from matoolkit.admin.secrecy import secret_columns
from matoolkit.domain.secrecy import row_without_secrets
from matoolkit.domain.states import MemberState, MemberStatus, PhaseStatus, StepStatus
from matoolkit.errors import Flaw, InvalidRequest, did_you_mean
from matoolkit.runbook.templates import Json
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.counts import MemberCount, member_counts
from matoolkit.store.phases import PhaseRow, phases_of_batches
from matoolkit.store.reporting import (
    FailedPeople,
    PhaseTally,
    ReportFilter,
    ReportRow,
    TriedStep,
    batches_of_report,
    beginners,
    count_report,
    failed_people,
    phase_tallies,
    report_page,
    tried_steps,
)
from matoolkit.store.statecounts import state_counts
from matoolkit.store.undofailures import (
    UndoFailure,
    UndoFailureGroup,
    undo_failures_by_cause,
    undo_failures_of_members,
)

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Person:
    """A row of a report: somebody in a batch, the last step that was tried, and the chosen columns of the row.

    `not_undone` are the steps that were to undo something for it and failed.
    """

    row: ReportRow
    step: TriedStep | None
    columns: Mapping[str, Json]
    not_undone: Sequence[UndoFailure]

    @property
    def since(self) -> datetime:
        """When the person came into its state, as far as that is known."""
        row, step = self.row, self.step
        match row.state:
            case MemberState.FAILED:
                found = row.failed_at
            case MemberState.LEFT | MemberState.UNDONE:
                found = row.removed_at
            case MemberState.UNDER_WAY | MemberState.UNDOING:
                found = step.dispatched_at if step else None
            case _:
                found = step.completed_at if step else None
        return found or row.added_at

    @property
    def error(self) -> tuple[str | None, str | None]:
        """Type and text of the error with which the last step failed, if it did."""
        if self.step is None or self.step.status is StepStatus.SUCCEEDED:
            return None, None
        return self.step.error_type, self.step.error_message


@dataclass(frozen=True, slots=True)
class BatchSum:
    """A batch, and how many of its people are in which state."""

    batch: BatchRow
    states: Mapping[MemberState, int]


@dataclass(frozen=True, slots=True)
class PhaseSum:
    """A phase of a runbook, and how many people of the batches have completed it or failed in it."""

    runbook_name: str
    phase_name: str
    offset_minutes: int
    people: int
    completed: int
    failed: int
    under_way: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a report says in one look."""

    states: Mapping[MemberState, int]
    batches: Sequence[BatchSum]
    phases: Sequence[PhaseSum]
    failures: Sequence[FailedPeople]
    people_not_undone: int
    undo_failures: Sequence[UndoFailureGroup]


def require_scope(tx: Transaction, wanted: ReportFilter) -> ReportFilter:
    """Return the filter with the runbook's own spelling; a batch or a runbook that is not there is refused."""
    if wanted.batch_id is not None:
        existing_batch(tx, wanted.batch_id)
    name = None if wanted.runbook_name is None else latest_runbook(tx, wanted.runbook_name).name
    return replace(wanted, runbook_name=name)


def people_page(
    tx: Transaction, wanted: ReportFilter, columns: Sequence[str], *, after: int, limit: int
) -> list[Person]:
    """Return one page of a report; secret columns are masked (rule W8)."""
    rows = report_page(tx, wanted, after=after, limit=limit)
    steps = tried_steps(tx, [row.last_step_id for row in rows if row.last_step_id is not None])
    not_undone: dict[int | None, list[UndoFailure]] = defaultdict(list)
    for failure in undo_failures_of_members(tx, [row.id for row in rows]):
        not_undone[failure.batch_member_id].append(failure)
    cells = _columns_of(tx, rows, columns, are_first=not after) if columns else [{} for _ in rows]
    return [
        Person(row, steps.get(row.last_step_id or 0), mine, not_undone[row.id])
        for row, mine in zip(rows, cells, strict=True)
    ]


def _columns_of(
    tx: Transaction, rows: Sequence[ReportRow], columns: Sequence[str], *, are_first: bool
) -> list[dict[str, Json]]:
    names = {row.runbook_name for row in rows}
    secret = {name: secret_columns(tx, name) for name in sorted(names)}
    data = [row_without_secrets(orjson.loads(row.data_json), secret[row.runbook_name]) for row in rows]
    if are_first:
        _require_columns(columns, data)
    return [_chosen(columns, cells) for cells in data]


def everybody(store: Store, wanted: ReportFilter, columns: Sequence[str]) -> Iterator[Person]:
    """Return all of a report, page after page, each in a transaction of its own."""
    after = 0
    while True:
        with store.reading() as tx:
            people = people_page(tx, wanted, columns, after=after, limit=_AT_ONCE)
        yield from people
        if len(people) < _AT_ONCE:
            return
        after = people[-1].row.id


def summary_of(store: Store, wanted: ReportFilter) -> Summary:
    """Count the people of a report's batches by state, by phase and by error; other filters do not matter here."""
    with store.reading() as tx:
        asked = require_scope(tx, wanted)
        batches = batches_of_report(tx, asked)
        ids = [batch.id for batch in batches]
        counts = member_counts(tx, ids)
        states: dict[int, dict[MemberState, int]] = defaultdict(dict)
        for one in state_counts(tx, counts):
            states[one.batch_id][one.state] = one.count
        phases = [phase for phase in phases_of_batches(tx, ids) if phase.status is not PhaseStatus.SUPERSEDED]
        tallies = {one.phase_execution_id: one for one in phase_tallies(tx, [phase.id for phase in phases])}
        passed = _passed_by(phases, tx)
        failures, not_undone = failed_people(tx, ids), undo_failures_by_cause(tx, ids)
        people_not_undone = count_report(tx, replace(asked, only_not_undone=True)) if not_undone else 0
    total: Counter[MemberState] = Counter()
    for by_state in states.values():
        total.update(by_state)
    sums = [BatchSum(batch, states[batch.id]) for batch in batches]
    phase_sums = _phase_sums(batches, counts, phases, tallies, passed)
    return Summary(_in_order(total), sums, phase_sums, failures, people_not_undone, not_undone)


def _require_columns(columns: Sequence[str], data: Sequence[Mapping[str, Json]]) -> None:
    there = {name.casefold(): name for cells in data for name in cells}
    flaws = [
        Flaw("columns", f"no row has a column '{name}'; {did_you_mean(name, there.values()) or _some(there)}")
        for name in columns
        if there and name.casefold() not in there
    ]
    if flaws:
        raise InvalidRequest(flaws)


def _some(there: Mapping[str, str]) -> str:
    return f"there are {', '.join(list(there.values())[:10])}"


def _chosen(columns: Sequence[str], cells: Mapping[str, Json]) -> dict[str, Json]:
    folded = {name.casefold(): value for name, value in cells.items()}
    return {name: folded.get(name.casefold()) for name in columns}


def _in_order(counts: Mapping[MemberState, int]) -> dict[MemberState, int]:
    return {state: counts[state] for state in MemberState if counts.get(state)}


def _passed_by(phases: Sequence[PhaseRow], tx: Transaction) -> Counter[int]:
    """Count for phases who left them out, because they had completed them before they began again (rule O14)."""
    ordered: dict[tuple[int, int], list[PhaseRow]] = defaultdict(list)
    for phase in sorted(phases, key=lambda phase: phase.order):
        ordered[phase.batch_id, phase.runbook_version].append(phase)
    passed: Counter[int] = Counter()
    for some in beginners(tx, sorted({phase.batch_id for phase in phases})):
        for phase in ordered[some.batch_id, some.first_phase_version][: some.first_phase_place]:
            passed[phase.id] += some.members
    return passed


def _phase_sums(
    batches: Sequence[BatchRow],
    counts: Sequence[MemberCount],
    phases: Sequence[PhaseRow],
    tallies: Mapping[int, PhaseTally],
    passed: Mapping[int, int],
) -> list[PhaseSum]:
    """Add up the phases of batches by runbook and name, in the order of the calendar."""
    runbooks = {batch.id: batch.runbook_name for batch in batches}
    present: Counter[int] = Counter()
    for count in counts:
        present[count.batch_id] += 0 if count.status is MemberStatus.REMOVED else count.count
    sums: dict[tuple[str, str], PhaseSum] = {}
    for phase in sorted(phases, key=lambda phase: (runbooks[phase.batch_id], -phase.offset_minutes, phase.phase_index)):
        key = (runbooks[phase.batch_id], phase.phase_name)
        before = sums.get(key, PhaseSum(*key, phase.offset_minutes, 0, 0, 0, 0))
        tally = tallies.get(phase.id, PhaseTally(phase.id, 0, 0, 0))
        sums[key] = PhaseSum(
            *key,
            before.offset_minutes,
            people=before.people + present[phase.batch_id],
            completed=before.completed + tally.completed + passed[phase.id],
            failed=before.failed + tally.failed,
            under_way=before.under_way + tally.members - tally.completed - tally.failed,
        )
    return list(sums.values())
