"""Plans a person's retry of failed members: which version runs, which members do what, which are left out (O14)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from matoolkit.admin.retrychanges import DoneBefore, RowChange, Ways, done_before, row_changes
from matoolkit.admin.retryrows import Rows, rows_to_take
from matoolkit.domain.batch import MEMBERS_CAN_BE_RETRIED
from matoolkit.domain.keys import folded
from matoolkit.domain.retrying import (
    BeginAgain,
    DataChoice,
    GoOn,
    LeftOutBecause,
    Past,
    PastPhase,
    PastStep,
    Retried,
    VersionChoice,
    Way,
    way_on,
)
from matoolkit.domain.states import MemberStatus
from matoolkit.domain.transitions import Stay, TargetVersion, Transition, taken_up, why_it_stays
from matoolkit.errors import (
    NewerVersionWaits,
    NoActiveVersion,
    NothingToRetry,
    StillRunning,
    UnknownPhase,
    WrongBatchStatus,
)
from matoolkit.errors.admin import shown
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Transaction
from matoolkit.store.batches import BatchRow
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.failures import members_that_failed
from matoolkit.store.inflight import batches_in_flight, in_flight
from matoolkit.store.narrow_executions import next_steps_of_members, unfinished_rollbacks_of_members
from matoolkit.store.narrow_members import NarrowMember, narrow_members
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.rollbacks import rollbacks_of_members
from matoolkit.store.runbooks import RunbookRow, active_runbook, runbooks_by_id
from matoolkit.store.steps import current_steps_of_members


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which failed members are meant: all, those with certain numbers, or those that failed in a certain way."""

    member_ids: Collection[int] | None = None
    phase_name: str | None = None
    step_name: str | None = None
    error: str | None = None
    fingerprint: str | None = None


@dataclass(frozen=True, slots=True)
class Terms:
    """How failed members are retried: which version, from which phase at the latest, and with which row.

    Rows of a file, or of the source as it is now, are given. With `keep_done` it does not matter what was done before.
    """

    version: VersionChoice | None = None
    begin_with: str | None = None
    keep_done: bool = False
    data: DataChoice | None = None
    rows: Rows | None = None


@dataclass(frozen=True, slots=True)
class Runs:
    """The version that runs, its phases in their order, and what it does to the batch if the batch has to take it."""

    row: RunbookRow
    target: TargetVersion
    active: RunbookRow | None
    transition: Transition | None = None

    @property
    def phase_names(self) -> list[str]:
        """The names of its phases, in the order in which members go through them."""
        return [self.target.runbook.phases[index].name for index in self.target.in_order]


@dataclass(frozen=True, slots=True)
class Plan:
    """Which members do what under which version and with which row, and which are left out and why."""

    runs: Runs
    members: Sequence[NarrowMember]
    ways: Mapping[int, Way]
    left_out: Mapping[LeftOutBecause, Sequence[NarrowMember]]
    rows: Rows | None
    changes: Sequence[RowChange]
    done_before: Sequence[DoneBefore]

    @property
    def going_on(self) -> list[NarrowMember]:
        """Those who go on from where they failed."""
        return [member for member in self.members if isinstance(self.ways[member.id], GoOn)]

    @property
    def again(self) -> list[tuple[NarrowMember, BeginAgain]]:
        """Those who begin again, and where."""
        ways = ((member, self.ways[member.id]) for member in self.members)
        return [(member, way) for member, way in ways if isinstance(way, BeginAgain)]

    @property
    def steps(self) -> list[PastStep]:
        """The steps that are open again."""
        return [step for way in self.ways.values() if isinstance(way, GoOn) for step in way.steps]


def plan_retry(tx: Transaction, batch: BatchRow, chosen: Chosen, terms: Terms) -> Plan:
    """Decide what a retry does; an obstacle is an error."""
    if batch.status not in MEMBERS_CAN_BE_RETRIED:
        raise WrongBatchStatus(batch.id, batch.status, "only members of a batch that has begun can be retried")
    failed = _failed_members(tx, batch, chosen)
    runs = version_that_runs(tx, batch, terms)
    rows = rows_to_take(tx, batch, terms.data, terms.rows, {folded(member.member_key) for member in failed})
    left_out = _left_out(tx, batch, failed, rows)
    out = {member.id for members in left_out.values() for member in members}
    wanted = [member for member in failed if member.id not in out]
    if not wanted:
        raise NothingToRetry(f"batch {batch.id}", _why_nobody(left_out))
    _refuse_unsettled(tx, batch, wanted)
    ways = _ways(tx, batch, wanted, runs, terms)
    changes = [] if rows is None else row_changes(tx, wanted, rows)
    return Plan(runs, wanted, ways.ways, left_out, rows, changes, done_before(tx, batch.runbook_name, changes, ways))


def _left_out(
    tx: Transaction, batch: BatchRow, failed: Sequence[NarrowMember], rows: Rows | None
) -> dict[LeftOutBecause, list[NarrowMember]]:
    folds = {member.id: folded(member.member_key) for member in failed}
    taken = taken_keys(tx, batch.runbook_name, set(folds.values()), besides=batch.id)
    excluded = excluded_keys(tx, batch.runbook_name)
    found: dict[LeftOutBecause, list[NarrowMember]] = {}
    for member in failed:
        fold = folds[member.id]
        because = None if rows is None else rows.why_not(fold, batch.batch_start_time)
        if fold in taken:
            because = LeftOutBecause.IN_ANOTHER_BATCH
        if fold in excluded:
            because = LeftOutBecause.EXCLUDED
        if because is not None:
            found.setdefault(because, []).append(member)
    return found


_IN_WORDS = {
    LeftOutBecause.IN_ANOTHER_BATCH: "another batch has {}",
    LeftOutBecause.EXCLUDED: "a person excluded {}",
    LeftOutBecause.NO_ROW: "there is no row for {}",
    LeftOutBecause.SET_ASIDE: "the row of {} was set aside",
    LeftOutBecause.ANOTHER_TIME: "the row of {} has another time than the batch",
}


def _why_nobody(left_out: Mapping[LeftOutBecause, Sequence[NarrowMember]]) -> str:
    return "; ".join(_IN_WORDS[because].format(shown(keys_of(members))) for because, members in left_out.items())


def version_that_runs(tx: Transaction, batch: BatchRow, terms: Terms) -> Runs:
    """Return the version that a batch follows, or the active one if a person says so and the batch may take it."""
    own = runbooks_by_id(tx, [batch.runbook_id])[0]
    active = active_runbook(tx, batch.runbook_name)
    if active is None and terms.version is VersionChoice.ACTIVE:
        raise NoActiveVersion(batch.runbook_name)
    if active is None:
        return _runs(own, None)
    stay = why_it_stays(in_flight(batch, (), active.id))
    if stay in (None, Stay.HELD):
        if terms.version is not VersionChoice.CURRENT:
            raise NewerVersionWaits(batch.id, own.version, active.version, is_held=batch.is_held)
        return _runs(own, active)
    if terms.version is not VersionChoice.ACTIVE or active.id == own.id:
        return _runs(own, active)
    runs = _runs(active, active)
    (now,) = batches_in_flight(tx, [batch], active.id)
    return Runs(runs.row, runs.target, active, taken_up(now, runs.target, tx.time()))


def keys_of(members: Sequence[NarrowMember]) -> list[str]:
    """Return the keys of members."""
    return [member.member_key for member in members]


def _runs(row: RunbookRow, active: RunbookRow | None) -> Runs:
    return Runs(row, TargetVersion(row.version, parse_runbook(row.yaml_content)), active)


def _failed_members(tx: Transaction, batch: BatchRow, chosen: Chosen) -> list[NarrowMember]:
    ids: Collection[int] = members_that_failed(
        tx,
        batch.id,
        phase_name=chosen.phase_name,
        step_name=chosen.step_name,
        error=chosen.error,
        fingerprint=chosen.fingerprint,
    )
    if chosen.member_ids is not None:
        ids = set(ids).intersection(chosen.member_ids)
    failed = [member for member in narrow_members(tx, ids) if member.status is MemberStatus.FAILED]
    if not failed:
        raise NothingToRetry(f"batch {batch.id}", "no member that was asked for has failed")
    return failed


def _refuse_unsettled(tx: Transaction, batch: BatchRow, members: Sequence[NarrowMember]) -> None:
    keys = {member.id: member.member_key for member in members}
    undoing = {row.batch_member_id for row in unfinished_rollbacks_of_members(tx, keys)}
    if undoing:
        names = [key for number, key in keys.items() if number in undoing]
        raise StillRunning(f"batch {batch.id}", f"the rollback of {shown(names)} has not ended")
    out = {step.batch_member_id for step in next_steps_of_members(tx, keys) if step.is_in_flight}
    if out:
        names = [key for number, key in keys.items() if number in out]
        raise StillRunning(f"batch {batch.id}", f"a job of {shown(names)} is still out")


def _ways(tx: Transaction, batch: BatchRow, members: Sequence[NarrowMember], runs: Runs, terms: Terms) -> Ways:
    retried = Retried(runs.row.version, runs.phase_names, terms.begin_with)
    if terms.begin_with is not None and retried.place_of(terms.begin_with) is None:
        raise UnknownPhase(terms.begin_with, runs.row.version, runs.phase_names)
    phases = {
        phase.id: PastPhase(phase.id, phase.runbook_version, phase.phase_name, phase.offset_minutes, phase.phase_index)
        for phase in phases_of_batches(tx, [batch.id])
    }
    pasts = _pasts(tx, members)
    return Ways(retried, phases, pasts, {number: way_on(past, phases, retried) for number, past in pasts.items()})


def _pasts(tx: Transaction, members: Sequence[NarrowMember]) -> dict[int, Past]:
    """Return what members have behind them in their present epochs."""
    steps: dict[int, list[PastStep]] = {member.id: [] for member in members}
    for step in current_steps_of_members(tx, steps):
        steps[step.batch_member_id].append(step)
    epochs = {member.id: member.epoch for member in members}
    undone = {
        rollback.batch_member_id
        for rollback in rollbacks_of_members(tx, epochs)
        if rollback.attempt > 0 and rollback.epoch == epochs.get(rollback.batch_member_id or 0)
    }
    return {
        member.id: Past(steps[member.id], is_undone=member.id in undone, first=member.first_phase) for member in members
    }
