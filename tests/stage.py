"""A stage on which a runbook is played: a real store and bus, a virtual clock, a scripted worker.

What the scheduler does is done by hand here, in as few words as possible: `batch`, `due`, `join`, `leave`.
Nothing looks into the orchestrator; what it did is read from rows and messages.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import orjson

from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Chosen
from matoolkit.announcing.phases import dispatch_and_announce
from matoolkit.announcing.withdrawal import withdraw_unsent
from matoolkit.bus.consumer import Consumer
from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR, RESULTS_OF_ORCHESTRATOR, jobs_of_worker
from matoolkit.bus.wire import decode
from matoolkit.clock import VirtualClock
from matoolkit.domain.cells import cell_kinds, report_text
from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.messages import (
    BatchInit,
    MemberAdded,
    MemberRemoved,
    PhaseDue,
    PollCheck,
    ResultStatus,
    RetryCheck,
    WorkerError,
    WorkerJob,
    WorkerResult,
)
from matoolkit.domain.states import BatchStatus, OverdueBehavior, PhaseStatus
from matoolkit.ids import (
    Kind,
    batch_init_id,
    member_added_id,
    member_removed_id,
    phase_due_id,
    poll_check_id,
    reissued,
    result_id,
    retry_check_id,
)
from matoolkit.orchestrator import Orchestrator
from matoolkit.orchestrator.agenda import Limits
from matoolkit.ports import Outgoing
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import (
    BatchRow,
    NewBatch,
    batches_by_id,
    dispatch_init,
    follow_version,
    insert_batches,
    lock_batches,
)
from matoolkit.store.datatables import DataRow, current_keys, mark_gone, open_data_table, upsert_rows
from matoolkit.store.enrolments import members_page, members_waiting_to_catch_up
from matoolkit.store.executions import InitRow, RollbackRow, StepRow, polls_due, retries_due
from matoolkit.store.holds import Hold, hold_batches, release_batches
from matoolkit.store.inits import inits_of_batches
from matoolkit.store.members import (
    MemberRow,
    NewMember,
    Outputs,
    Refresh,
    Return,
    insert_members,
    keep_outputs,
    refresh_members,
    remove_members,
    return_members,
)
from matoolkit.store.moves import cancel
from matoolkit.store.phases import (
    NewPhase,
    PhaseRow,
    insert_phases,
    phases_of_batches,
    skip_phases,
    supersede_phases,
)
from matoolkit.store.rollbacks import rollbacks_of_batches
from matoolkit.store.runbooks import NewVersion, RunbookRow, note_read, publish_version
from matoolkit.store.setaside import set_keys_aside
from matoolkit.store.steps import cancel_steps_of_batches, cancel_steps_of_members, cancel_steps_of_phases, steps_page

WORKER = "worker-01"
SOURCE = """\
data_source: {type: sql, connection: SOURCE_DB, query: 'SELECT Email, Name, Start FROM people', primary_key: Email,
  batch_time_column: Start}
"""

Answer = Callable[[WorkerJob], Any]


@dataclass(frozen=True)
class Failing:
    """An answer: the function failed."""

    message: str = "it did not work"
    type: str | None = "Oops"
    is_throttled: bool = False


@dataclass(frozen=True)
class Silent:
    """No answer: the worker died, or hangs."""


@dataclass
class Stage:
    """One play."""

    store: Store
    clock: VirtualClock
    limits: Limits = field(default_factory=Limits)
    answers: dict[str, Any] = field(default_factory=dict)
    jobs: list[WorkerJob] = field(default_factory=list)
    asked: int = 0

    events_of_orchestrator = EVENTS_OF_ORCHESTRATOR

    def __post_init__(self) -> None:
        self.bus = SqlBus(self.store)
        self.orchestrator = Orchestrator(self.store, self.bus, self.limits)
        self.events = Consumer(self.store, self.bus, EVENTS_OF_ORCHESTRATOR, self.orchestrator.handle)
        self.results = Consumer(self.store, self.bus, RESULTS_OF_ORCHESTRATOR, self.orchestrator.handle)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    # What people and the scheduler do

    def publish(self, phases: str, name: str = "wave") -> RunbookRow:
        """Publish a runbook; only the parts that matter are given."""
        text = f"name: {name}\n{SOURCE}{phases}"
        parse_runbook(text)
        new = NewVersion(name, text, f"hash-{hash(text)}", OverdueBehavior.RERUN, False, "anna")
        with self.store.transaction() as tx:
            return publish_version(tx, new, self.now)

    def batch(self, runbook: RunbookRow, members: int | Sequence[str] = 1) -> BatchRow:
        """Detect a batch in five days: its members, its phases, and its init if it has one."""
        return self.batch_at(runbook, members, days=5)

    def batch_at(self, runbook: RunbookRow, members: int | Sequence[str], *, days: int) -> BatchRow:
        """Detect a batch that starts in so many days."""
        parsed = parse_runbook(runbook.yaml_content)
        start = self.now + timedelta(days=days)
        status = BatchStatus.INIT_DISPATCHED if parsed.init else BatchStatus.ACTIVE
        with self.store.transaction() as tx:
            new = NewBatch(runbook.id, runbook.name, start, status, init_count=1 if parsed.init else 0)
            batch = insert_batches(tx, [new], self.now)[0]
            new_members = self._new_members(batch, members, caught_up=True)
            insert_members(tx, new_members, self.now)
            self._read(tx, runbook, {one.member_key: (start, orjson.loads(one.data_json)) for one in new_members})
            insert_phases(tx, self._new_phases(batch, runbook))
            if parsed.init:
                init = BatchInit(batch.id, runbook.name, runbook.version)
                self.bus.publish(tx, [Outgoing(batch_init_id(batch.id, runbook.version, 1), init)])
        return batch

    def due(self, batch: BatchRow, *names: str) -> None:
        """Let phases be due."""
        with self.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            wanted = [phase for phase in phases_of_batches(tx, [batch.id]) if phase.phase_name in names]
            pending = [phase for phase in wanted if phase.status is PhaseStatus.PENDING]
            dispatch_and_announce(tx, self.bus, pending, {batch.id: batch}, self.now)

    def due_of(self, batch: BatchRow, version: int, *names: str) -> None:
        """Let phases of one version be due."""
        others = [phase for phase in self.phase_rows(batch) if phase.runbook_version != version]
        names_of_others = {phase.phase_name for phase in others if phase.status is PhaseStatus.PENDING}
        assert not names_of_others.intersection(names)
        self.due(batch, *names)

    def join(self, batch: BatchRow, *keys: str) -> None:
        """Let people join a batch that is under way."""
        with self.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            added = insert_members(tx, self._new_members(batch, keys, caught_up=False), self.now)
            self.bus.publish(
                tx,
                [
                    Outgoing(member_added_id(new.id, 1), MemberAdded(batch.id, new.member_key_fold, new.id))
                    for new in added
                ],
            )

    def leave(self, batch: BatchRow, *keys: str, reason: str = "gone") -> None:
        """Let people leave a batch."""
        members = [member for member in self.members(batch) if member.member_key in keys]
        with self.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            gone = remove_members(tx, [member.id for member in members], "scheduler", reason, self.now)
            withdraw_unsent(tx, self.bus, cancel_steps_of_members(tx, gone, self.now))
            self.bus.publish(
                tx,
                [
                    Outgoing(
                        member_removed_id(member.id, member.epoch),
                        MemberRemoved(batch.id, member.member_key, member.id),
                    )
                    for member in members
                ],
            )

    def add_row(self, batch: BatchRow, key: str) -> None:
        """Put a member into a batch without telling the orchestrator."""
        with self.store.transaction() as tx:
            insert_members(tx, self._new_members(batch, [key], caught_up=False), self.now)

    def announce(self, batch: BatchRow, key: str, *, times: int) -> None:
        """Say once more that a member joined."""
        member = self.member(batch, key)
        name = reissued(member_added_id(member.id, member.epoch), times)
        self.bus.send([Outgoing(name, MemberAdded(batch.id, key, member.id))])

    def leave_unannounced(self, batch: BatchRow, key: str) -> None:
        """Let a member leave without telling the orchestrator."""
        with self.store.transaction() as tx:
            remove_members(tx, [self.member(batch, key).id], "scheduler", "gone", self.now)

    def come_back_unannounced(self, batch: BatchRow, key: str) -> None:
        """Let a member come back without telling the orchestrator."""
        with self.store.transaction() as tx:
            return_members(tx, [Return(self.member(batch, key).id, '{"Email": "u0"}', "h")], self.now)

    def hold(self, batch: BatchRow, key: str = "removals-1") -> None:
        """Hold a batch."""
        self.hold_for(batch, HoldKind.REMOVALS, key)

    def hold_for(
        self, batch: BatchRow, kind: HoldKind, key: str, reason: str = "too many are gone", **shown: Any
    ) -> None:
        """Hold a batch for something, such as members by their ids."""
        told = orjson.dumps({"kind": kind, **shown}).decode()
        with self.store.transaction() as tx:
            hold_batches(tx, [Hold(batch.id, GateKind(kind), reason, key, told)], self.now)

    def release(self, batch: BatchRow) -> None:
        """End the hold of a batch, and wake who waits for it."""
        with self.store.transaction() as tx:
            (row,) = lock_batches(tx, [batch.id])
            release_batches(tx, [batch.id], self.now)
            running = [row for row in phases_of_batches(tx, [batch.id]) if row.status is PhaseStatus.DISPATCHED]
            dues = [_due(batch, phase, phase.dispatch_count) for phase in running]
            waiting = members_waiting_to_catch_up(tx, [batch.id])
            added = [
                Outgoing(member_added_id(member.id, member.epoch), MemberAdded(batch.id, member.member_key, member.id))
                for member in waiting
            ]
            again = [Outgoing(reissued(sent.message_id, row.hold_count), sent.message) for sent in [*dues, *added]]
            self.bus.publish(tx, again)

    def skip(self, batch: BatchRow, *names: str) -> None:
        """Pass phases by."""
        with self.store.transaction() as tx:
            phases = [phase for phase in phases_of_batches(tx, [batch.id]) if phase.phase_name in names]
            skip_phases(tx, [phase.id for phase in phases], self.now)

    def come_back(self, batch: BatchRow, *keys: str) -> None:
        """Let people who left return."""
        members = [member for member in self.members(batch) if member.member_key in keys]
        with self.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            return_members(tx, [Return(member.id, member.data_json, "h") for member in members], self.now)
            self.bus.publish(
                tx,
                [
                    Outgoing(
                        member_added_id(member.id, member.epoch + 1),
                        MemberAdded(batch.id, member.member_key, member.id),
                    )
                    for member in members
                ],
            )

    def sweep(self) -> None:
        """Ask for polls and retries that are due, as the scheduler's short timer does, and look for what is lost."""
        with self.store.transaction() as tx:
            polls = [
                Outgoing(poll_check_id(work.kind, work.id, work.attempt), PollCheck(work.id, work.kind))
                for kind in Kind
                for work in polls_due(tx, kind, self.now)
            ]
            retries = [
                Outgoing(retry_check_id(work.kind, work.id, work.attempt), RetryCheck(work.id, work.kind))
                for kind in Kind
                for work in retries_due(tx, kind, self.now)
            ]
            self.bus.publish(tx, [*polls, *retries])
        self.bus.sweep()
        self.orchestrator.sweep()

    def remind(self, batch: BatchRow, *names: str, times: int = 1) -> None:
        """Say once more that phases are due, as the end of a hold does."""
        for phase in self.phase_rows(batch):
            if phase.phase_name in names:
                due = _due(batch, phase, phase.dispatch_count)
                self.bus.send([Outgoing(reissued(due.message_id, times), due.message)])

    def refresh(self, batch: BatchRow, key: str, data: dict[str, Any]) -> None:
        """Let the source have other data for a member."""
        with self.store.transaction() as tx:
            refresh_members(tx, [Refresh(self.member(batch, key).id, orjson.dumps(data).decode(), "h2")])

    def correct(
        self, runbook: RunbookRow, batch: BatchRow, rows: dict[str, dict[str, Any]], *, set_aside: Sequence[str] = ()
    ) -> None:
        """Let the source be read again, in which somebody has corrected some rows of a batch."""
        with self.store.transaction() as tx:
            self._read(tx, runbook, {key: (batch.batch_start_time, data) for key, data in rows.items()})
            set_keys_aside(tx, runbook.id, set_aside)

    def lose(self, runbook: RunbookRow, *keys: str) -> None:
        """Let the source be read again, without some rows."""
        with self.store.transaction() as tx:
            table = open_data_table(tx, runbook.data_table, [])
            there = current_keys(tx, table, after=0, limit=1000)
            mark_gone(tx, table, [number for number, fold in there if fold in keys], self.now)

    def keep(self, batch: BatchRow, key: str, outputs: dict[str, Any]) -> None:
        """Let a member have outputs from before."""
        member = self.member(batch, key)
        with self.store.transaction() as tx:
            keep_outputs(tx, [Outputs(member.id, member.epoch, orjson.dumps(outputs).decode())])

    def check_polls(self, *steps: int) -> None:
        """Ask for a poll of steps, whether it is due or not."""
        checks = self.asked = self.asked + 1
        self.bus.send([Outgoing(f"poll-check-{step}-{checks}", PollCheck(step, Kind.STEP)) for step in steps])

    def request_init(self, batch: BatchRow, version: int, *, times: int) -> None:
        """Ask for an init again."""
        name = reissued(batch_init_id(batch.id, version, 1), times)
        self.bus.send([Outgoing(name, BatchInit(batch.id, batch.runbook_name, version))])

    def cancel_steps(self, batch: BatchRow) -> None:
        """Cancel the steps of a batch and tell nobody, as a process that dies halfway might."""
        with self.store.transaction() as tx:
            cancel_steps_of_batches(tx, [batch.id], self.now)

    def change_version(
        self, batch: BatchRow, to: RunbookRow, *, rerun_init: bool = False, keep_phases: bool = False
    ) -> None:
        """Let a batch follow a new version: old phases are superseded, or those that have begun go on."""
        with self.store.transaction() as tx:
            lock_batches(tx, [batch.id])
            follow_version(tx, [batch.id], to.id)
            phases = phases_of_batches(tx, [batch.id])
            unwanted = [phase.id for phase in phases if not keep_phases or phase.status is PhaseStatus.PENDING]
            old = supersede_phases(tx, unwanted, self.now)
            withdraw_unsent(tx, self.bus, cancel_steps_of_phases(tx, old, self.now))
            insert_phases(tx, self._new_phases(batch, to))
            if rerun_init:
                inits = inits_of_batches(tx, [batch.id])
                gone = cancel(tx, Kind.INIT, [row.id for row in inits], self.now)
                withdraw_unsent(tx, self.bus, [row for row in inits if row.id in gone], Kind.INIT)
                dispatch_init(tx, [batch.id], self.now)
                count = batches_by_id(tx, [batch.id])[0].init_count
                message = BatchInit(batch.id, to.name, to.version)
                self.bus.publish(tx, [Outgoing(batch_init_id(batch.id, to.version, count), message)])

    # What workers do

    def take_jobs(self, worker: str = WORKER, most: int = 1000) -> list[WorkerJob]:
        """Take jobs from the bus without answering them."""
        subscription = jobs_of_worker(worker)
        received = self.bus.receive(subscription, most)
        self.bus.complete_now(received)
        taken = [decode(subscription.topic, message.message_type, message.body) for message in received]
        jobs = [job for job in taken if isinstance(job, WorkerJob)]
        self.jobs += jobs
        return jobs

    def answer(self, job: WorkerJob | str, outcome: Any = None, *, again: int = 0) -> None:
        """Send the result of a job."""
        self.bus.send(self._results([(job, outcome)], again))

    def work(self, worker: str = WORKER) -> int:
        """Take all jobs and answer each as the script says: by function, a value or a function of the job."""
        jobs = self.take_jobs(worker)
        outcomes = []
        for job in jobs:
            scripted = self.answers.get(job.function_name)
            outcomes.append((job, scripted(job) if callable(scripted) else scripted))
        self.bus.send(self._results(outcomes))
        return len(jobs)

    def _results(self, outcomes: Sequence[tuple[WorkerJob | str, Any]], again: int = 0) -> list[Outgoing]:
        sent = []
        for job, outcome in outcomes:
            name = job if isinstance(job, str) else job.job_id
            if isinstance(outcome, Silent):
                continue
            if isinstance(outcome, Failing):
                error = WorkerError(outcome.message, outcome.type, outcome.is_throttled)
                result = WorkerResult(name, ResultStatus.FAILURE, self.now, error=error)
            else:
                result = WorkerResult(name, ResultStatus.SUCCESS, self.now, result=outcome)
            sent.append(Outgoing(result_id(name) + ("" if not again else f"-again{again}"), result))
        return sent

    # What the orchestrator does

    def handle(self) -> int:
        """Let the orchestrator handle all that waits for it."""
        count = 0
        while turned := self.events.turn() + self.results.turn():
            count += turned
        return count

    def run(self) -> None:
        """Let orchestrator and worker go on until nothing moves."""
        while self.handle() + self.work():
            pass

    def later(self, **duration: float) -> None:
        """Let time pass, let what is due then happen, and go on until nothing moves."""
        self.clock.advance(timedelta(**duration))
        self.sweep()
        self.run()

    # What there is to see

    def steps(self, batch: BatchRow) -> list[StepRow]:
        with self.store.reading() as tx:
            return steps_page(tx, batch.id, limit=100_000)

    def members(self, batch: BatchRow) -> list[MemberRow]:
        with self.store.reading() as tx:
            return members_page(tx, batch.id, limit=100_000)

    def member(self, batch: BatchRow, key: str = "u0") -> MemberRow:
        return next(member for member in self.members(batch) if member.member_key == key)

    def phases(self, batch: BatchRow) -> dict[str, PhaseStatus]:
        """Return the status of each phase of the version that came last."""
        with self.store.reading() as tx:
            return {phase.phase_name: phase.status for phase in phases_of_batches(tx, [batch.id])}

    def phase_rows(self, batch: BatchRow) -> list[PhaseRow]:
        with self.store.reading() as tx:
            return phases_of_batches(tx, [batch.id])

    def reload(self, batch: BatchRow) -> BatchRow:
        with self.store.reading() as tx:
            return batches_by_id(tx, [batch.id])[0]

    def inits(self, batch: BatchRow) -> list[InitRow]:
        with self.store.reading() as tx:
            return inits_of_batches(tx, [batch.id])

    def rollbacks(self, batch: BatchRow) -> list[RollbackRow]:
        with self.store.reading() as tx:
            return rollbacks_of_batches(tx, [batch.id])

    def states(self, batch: BatchRow, key: str = "u0") -> dict[str, str]:
        """Return the status of each step of a member, the latest epoch's if it has several."""
        number = self.member(batch, key).id
        return {step.step_name: str(step.status) for step in self.steps(batch) if step.batch_member_id == number}

    def outputs(self, batch: BatchRow, key: str = "u0") -> Any:
        return orjson.loads(self.member(batch, key).worker_data_json)

    def pilots(self, batch: BatchRow) -> list[str]:
        """Return the keys of those who go first."""
        return [member.member_key for member in self.members(batch) if member.is_pilot]

    def places(self, batch: BatchRow) -> list[str]:
        """Return the keys of those who have a place in some phase, as the rows have it."""
        keys = {member.id: member.member_key for member in self.members(batch)}
        return [keys[step.batch_member_id] for step in self.steps(batch) if step.holds_place]

    def retry(self, batch: BatchRow, *keys: str) -> None:
        """Let failed people try again, as a person decides it."""
        retry_members(
            self.store,
            self.bus,
            batch.id,
            Chosen([self.member(batch, key).id for key in keys]),
            by="anna",
            reason="again",
        )

    def functions(self) -> list[str]:
        """Return the functions of all jobs that were taken, in order."""
        return [job.function_name for job in self.jobs]

    def _new_members(self, batch: BatchRow, members: int | Iterable[str], *, caught_up: bool) -> list[NewMember]:
        keys = [f"u{number}" for number in range(members)] if isinstance(members, int) else members
        at = self.now if caught_up else None
        return [
            NewMember(batch.id, key, orjson.dumps({"Email": key, "Name": key.upper()}).decode(), "h", caught_up_at=at)
            for key in keys
        ]

    def _read(
        self, tx: Transaction, runbook: RunbookRow, rows: dict[str, tuple[datetime | None, dict[str, Any]]]
    ) -> None:
        """Write rows to the data table of a version, as a tick does."""
        columns = list(dict.fromkeys(column for _, data in rows.values() for column in data))
        table = open_data_table(tx, runbook.data_table, columns)
        written = [
            DataRow(
                key,
                time,
                blake2b(f"{time}{data}".encode(), digest_size=16).digest(),
                [report_text(data.get(column)) for column in table.columns],
                cell_kinds(data, table.columns),
            )
            for key, (time, data) in rows.items()
        ]
        upsert_rows(tx, table, written, self.now)
        note_read(tx, runbook.id, self.now)

    def _new_phases(self, batch: BatchRow, runbook: RunbookRow) -> list[NewPhase]:
        start = batch.batch_start_time
        return [
            NewPhase(
                batch.id,
                runbook.version,
                phase.name,
                index,
                phase.offset.minutes,
                start - timedelta(minutes=phase.offset.minutes) if start else None,
            )
            for index, phase in enumerate(parse_runbook(runbook.yaml_content).phases)
        ]


def _due(batch: BatchRow, phase: PhaseRow, occurrence: int) -> Outgoing:
    message = PhaseDue(batch.id, batch.runbook_name, phase.runbook_version, phase.phase_name, phase.id)
    return Outgoing(phase_due_id(phase.id, occurrence), message)
