"""One look at every runbook: version transition, query, membership, due phases (rules T1 and T2).

Runbooks do not block each other: an error of one is recorded with it, and the tick goes on with the next. Running a
tick twice changes nothing.
"""

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from matoolkit.clock import Clock
from matoolkit.domain.keys import folded
from matoolkit.errors import LeaseLost, MatoolkitError, StoreError
from matoolkit.outages import Outage
from matoolkit.ports import Publisher, Source
from matoolkit.runbook.model import DataSource, Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.scheduler.due_phases import dispatch_due_phases, dispatch_kept_phases
from matoolkit.scheduler.enrolling import Enrolling
from matoolkit.scheduler.gates import look_after_gates
from matoolkit.scheduler.late_inits import look_after_late_inits
from matoolkit.scheduler.leasing import SchedulerLease, Stopping
from matoolkit.scheduler.reading import SourceReader
from matoolkit.scheduler.soaks import wake_after_soaks
from matoolkit.scheduler.spool import Spool
from matoolkit.scheduler.sweeps import ask_for_checks
from matoolkit.scheduler.tallies import Tally
from matoolkit.scheduler.transitions import transition_batches
from matoolkit.scheduler.windows import Windows
from matoolkit.store import Store
from matoolkit.store.automation import automated_runbooks, record_tick
from matoolkit.store.idempotency import forget_requests, have_requests_run_out
from matoolkit.store.runbooks import RunbookRow, active_runbooks, clear_error, note_read, record_error
from matoolkit.telemetry.tracing import span

log = logging.getLogger(__name__)

OpenSource = Callable[[DataSource], Source]


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Finds batches and membership changes and what is due, while it has the lease."""

    store: Store
    publisher: Publisher
    open_source: OpenSource
    clock: Clock
    lease: SchedulerLease
    interval: timedelta
    _troubles: dict[tuple[str, str], Outage] = field(default_factory=dict, init=False)
    _windows: Windows = field(default_factory=Windows, init=False)

    def tick(self) -> list[Tally] | None:
        """Look at every runbook once and say what was done; nothing at all if another scheduler works."""
        if not self.lease.hold():
            return None
        with span("tick"):
            return self._look_at_all()

    def _look_at_all(self) -> list[Tally]:
        with self.store.reading() as tx:
            runbooks, automated = active_runbooks(tx), set(automated_runbooks(tx))
        tallies = [self._look_at(runbook, is_automated=folded(runbook.name) in automated) for runbook in runbooks]
        # Batches of runbooks without an active version go on too (rule V7).
        self._isolated("", "dispatching due phases", lambda: self._dispatch(None))
        self._isolated("", "forgetting old requests", self._forget_requests)
        return tallies

    def sweep(self) -> int:
        """Ask for the polls and retries that are due, and say how many; look after gates that open."""
        if not self.lease.hold():
            return 0
        at = self.clock.now()
        look_after_gates(self.store, self.publisher, self.lease.confirm)
        wake_after_soaks(self.store, self.publisher, self.lease.confirm)
        look_after_late_inits(self.store, self.lease.confirm)
        kept = self._windows.look_after(self.store, self.publisher, self.lease.confirm)
        dispatch_kept_phases(self.store, self.publisher, self.lease.confirm, at)
        return ask_for_checks(self.store, self.publisher, self.lease.confirm, at, kept)

    def _look_at(self, runbook: RunbookRow, *, is_automated: bool) -> Tally:
        with span("look at runbook", {"runbook": runbook.name, "version": runbook.version}) as one:
            tally = self._followed(runbook, is_automated=is_automated)
            if tally.error is not None:
                one.fail(tally.error.partition(":")[0])
        return tally

    def _followed(self, runbook: RunbookRow, *, is_automated: bool) -> Tally:
        started, tally = self.clock.monotonic(), Tally(runbook.name, runbook.version, self.clock.now())
        follow = partial(self._follow, runbook, tally, is_automated=is_automated)
        tally.error = self._isolated(runbook.name, "following the source", follow)
        # Due phases do not wait for a source that is away (rule T2).
        not_dispatched = self._isolated(runbook.name, "dispatching due phases", lambda: self._dispatch(tally))
        tally.error = tally.error or not_dispatched
        tally.seconds = self.clock.monotonic() - started
        self._isolated(runbook.name, "recording the tick", lambda: self._record(runbook, tally))
        return tally

    def _isolated(self, runbook_name: str, what: str, work: Callable[[], None]) -> str | None:
        """Do something for one runbook and return its error; only errors that concern all runbooks are raised."""
        trouble = self._troubles.get((runbook_name, what))
        if trouble is None:
            trouble = Outage(what, log, self.clock, about={"runbook": runbook_name or None})
            self._troubles[runbook_name, what] = trouble
        try:
            work()
        except (LeaseLost, Stopping):
            raise
        except MatoolkitError as error:
            # An outage of the database concerns all runbooks, not this one.
            if isinstance(error, StoreError) and error.spares_work:
                raise
            trouble.failed(error)
            # People look at it in the runbook's status, where nothing else says what to do.
            return f"{error.code}: {error.message}" + (f"; {error.hint}" if error.hint else "")
        except Exception as bug:  # noqa: BLE001 - it is told with its traceback, and no other runbook is to blame
            trouble.failed(bug)
            return f"{type(bug).__name__}: this is a bug in matoolkit, see the log of the scheduler"
        trouble.worked()
        return None

    def _dispatch(self, tally: Tally | None) -> None:
        name, at = tally.runbook_name if tally else None, self.clock.now()
        dispatched = dispatch_due_phases(self.store, self.publisher, self.lease.confirm, at, name)
        if tally:
            tally.phases_dispatched = dispatched

    def _forget_requests(self) -> None:
        """Delete expired idempotency keys of the API; no other process looks at all of them."""
        with self.store.reading() as tx:
            if not have_requests_run_out(tx, tx.lock_time()):
                return
        with self.store.transaction() as tx:
            self.lease.confirm(tx)
            forget_requests(tx, tx.lock_time())

    def _follow(self, runbook: RunbookRow, tally: Tally, *, is_automated: bool) -> None:
        model = parse_runbook(runbook.yaml_content)
        self._transition(runbook, model)
        if is_automated:
            self._enrol(runbook, model, tally)
        # A held batch could not take the new version. It takes it now, before any phase of the old one is dispatched
        # (T6).
        if tally.batches_released:
            self._transition(runbook, model)

    def _transition(self, runbook: RunbookRow, model: Runbook) -> None:
        transition_batches(self.store, self.publisher, runbook, model, self.clock.now(), self.lease.confirm)

    def _enrol(self, runbook: RunbookRow, model: Runbook, tally: Tally) -> None:
        source = self.open_source(model.data_source)
        with closing(Spool()) as spool:
            reader = SourceReader(self.store, self.lease.confirm, spool)
            reading = reader.read(runbook, model.data_source, source, self.clock.now())
            tally.note_reading(reading)
            # Read the clock again: reading may have taken long, and T may have passed.
            enrolling = Enrolling(
                self.store, self.publisher, self.lease.confirm, runbook, model, self.interval, tally, self.clock.now()
            )
            enrolling.follow(reading)

    def _record(self, runbook: RunbookRow, tally: Tally) -> None:
        with self.store.transaction() as tx:
            self.lease.confirm(tx)
            at = self.clock.now()
            record_tick(tx, tally.row(at))
            if tally.queried:
                note_read(tx, runbook.id, tally.started_at)
            if tally.error is None:
                clear_error(tx, runbook.id)
            else:
                record_error(tx, runbook.id, tally.error, at)
