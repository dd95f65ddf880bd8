"""The people who run migrations: they publish, cancel, advance, retry, approve, and do so at the wrong moment."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import orjson

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.approving import approve
from matoolkit.admin.cancelling import cancel_batch
from matoolkit.admin.deadletters import resend_dead_letter
from matoolkit.admin.including import include_member
from matoolkit.admin.manual import add_to_manual_batch, create_manual_batch, remove_from_manual_batch
from matoolkit.admin.publishing import publish, set_automation
from matoolkit.admin.reinitializing import retry_init
from matoolkit.admin.retrying import retry_members
from matoolkit.admin.retryplan import Terms
from matoolkit.bus.wire import decode
from matoolkit.domain.retrying import DataChoice, VersionChoice
from matoolkit.domain.states import OverdueBehavior
from matoolkit.errors import DoneWithOldData, NewerVersionWaits, NothingToRetry, Refused
from matoolkit.simulate.declared import SIGNERS
from matoolkit.simulate.invariants import cities_read, rows_were_taken
from matoolkit.simulate.openers import Openers
from matoolkit.simulate.pauses import Pauses
from matoolkit.simulate.processes import Plant
from matoolkit.simulate.regrets import Regrets
from matoolkit.simulate.runbooks import NAME, RunbookWriter
from matoolkit.simulate.signers import Signers

_BY = "ann"
_FAILED_INITS = "SELECT DISTINCT batch_id FROM init_executions WHERE status IN ('failed', 'poll_timeout')"
_IN_FLIGHT = "SELECT b.id FROM batches b WHERE b.status = 'active' AND NOT b.is_manual AND b.reopened_at IS NULL"
_FAILED_IN_IT = "SELECT 1 FROM batch_members m WHERE m.batch_id = b.id AND m.status = 'failed'"
# How often people want the active version in a batch that keeps its own, and wait for a version that is to come.
_WANT_ACTIVE, _WAIT = 0.2, 0.7


class Persons:
    """Everybody who uses the admin side; a refusal is not an error."""

    def __init__(
        self,
        plant: Plant,
        rng: Random,
        writer: RunbookWriter,
        *,
        undoes: bool = False,
        pauses: bool = False,
        gates: bool = False,
    ) -> None:
        self._plant = plant
        self._rng = rng
        self._writer = writer
        self.store = plant.state.open(plant.clock)
        self._publisher = plant.publisher(self.store)
        self._regrets = Regrets(plant, rng, self.store, self._publisher)
        self._undoes = undoes
        self._pauses = Pauses(plant, rng, self.store, self._publisher)
        self._may_pause = pauses
        self._signers = Signers(plant, rng, self.store, self._publisher) if gates else None
        self._openers = Openers(plant, rng, self.store, self._publisher)
        self._visitors = 0
        self.have_signed = False
        # The batch in which members failed, and the version published for them.
        self._fixed: tuple[int, int] | None = None

    def begin(self) -> None:
        """Publish the first version, and let it run."""
        publish(self.store, self._writer.write(), by=_BY, now=self._plant.clock.now(), enable=True)

    def act(self) -> str:
        """Do something that people do."""
        if self._is_fixed():
            return self._try(self._retry_fixed)
        # Actions with a reason come more often than pointless ones.
        has_failed = bool(self._look("SELECT 1 FROM batch_members WHERE status = 'failed' LIMIT 1"))
        has_failed_init = bool(self._look(f"{_FAILED_INITS} LIMIT 1"))
        has_init = bool(self._look("SELECT 1 FROM batches WHERE status = 'init_dispatched' LIMIT 1"))
        has_letters = bool(self._look("SELECT 1 FROM dead_letters WHERE status = 'open' LIMIT 1"))
        wishes: list[tuple[int, Callable[[], str]]] = [
            (8 if has_init or has_failed else 3, self.publish),
            (1, self.cancel),
            (12 if has_failed else 1, self.retry_members),
            (4 if has_failed else 0, self.fix_version),
            (10 if has_failed_init else 1, self.retry_init),
            (6 if self._holds() else 0, self.approve),
            (4 if self._kept_out() else 0, self.include),
            (2, self.create_manual),
            (6, self.advance),
            (2, self.change_manual),
            (8 if has_letters else 0, self.resend),
            (1, self.switch_off),
            *self._takes_back(),
            *(self._pauses.wishes() if self._may_pause else ()),
            *((*self._openers.wishes(), *self._signers.wishes()) if self._signers is not None else ()),
        ]
        wish = self._rng.choices([wish for _, wish in wishes], [weight for weight, _ in wishes])[0]
        return self._try(wish)

    def _takes_back(self) -> list[tuple[int, Callable[[], str]]]:
        if not self._undoes:
            return []
        has_excluded = self._regrets.has_excluded()
        return [
            (14, self._regrets.undo),
            (7, self._regrets.exclude),
            (8 if has_excluded else 0, self._regrets.include),
        ]

    def clear_the_way(self) -> str:
        """Do whatever waits for a person."""
        done = [self._try(wish) for wish in self._pauses.resume_all()]
        done += [self._try(wish) for batch, key in self._holds() for wish in self._approvals(batch, key)]
        done += [self._try(partial(self._advance_or_cancel, batch)) for batch in self._manual_batches()]
        return "; ".join(done)

    def sign_everything(self) -> str:
        """Sign off what is due and waits for that."""
        done = [self._try(wish) for wish in self._signers.sign_everything()] if self._signers is not None else []
        self.have_signed = bool(done)
        return "; ".join(done)

    def try_everything_again(self) -> str:
        """Retry all failed members and inits, also in ended batches."""
        members = self._look("SELECT DISTINCT batch_id FROM batch_members WHERE status = 'failed'")
        done = [self._try(partial(self._retry_init, batch)) for (batch,) in self._look(_FAILED_INITS)]
        done += [self._try(partial(self._retry_members, batch)) for (batch,) in members]
        return "; ".join(done)

    def publish(self) -> str:
        """Publish another version."""
        behavior = self._rng.choice(list(OverdueBehavior))
        rerun_init = self._rng.random() < 0.5
        now = self._plant.clock.now()
        done = publish(
            *(self.store, self._writer.write()),
            by=self._author(),
            now=now,
            overdue_behavior=behavior,
            rerun_init=rerun_init,
        )
        return f"publishes version {done.version} ({behavior}{', init again' if rerun_init else ''})"

    def _author(self) -> str:
        """Return who publishes: where publishers may not sign off, sometimes one of those who would."""
        return _BY if self._signers is None else self._rng.choice(SIGNERS[:2])

    def cancel(self) -> str:
        """Cancel some batch."""
        batch = self._some("SELECT id FROM batches")
        cancel_batch(self.store, self._publisher, batch, by=_BY)
        return f"cancels batch {batch}"

    def retry_members(self) -> str:
        """Let failed members of some batch try again."""
        return self._retry_members(self._some("SELECT DISTINCT batch_id FROM batch_members WHERE status = 'failed'"))

    def fix_version(self) -> str:
        """Publish a version because members failed, to retry them once their batch follows it."""
        batch = self._some(f"{_IN_FLIGHT} AND EXISTS ({_FAILED_IN_IT})")
        said = self.publish()
        ((version,),) = self._look("SELECT MAX(version) FROM runbooks")
        self._fixed = (batch, int(version))
        return f"{said} for those who failed in batch {batch}"

    def _is_fixed(self) -> bool:
        """Tell whether a batch already follows the version that was published because of it."""
        if self._fixed is None:
            return False
        batch, version = self._fixed
        follows = f"SELECT 1 FROM runbooks r JOIN batches b ON b.runbook_id = r.id WHERE b.id = {batch}"
        return bool(self._look(f"{follows} AND r.version >= {version}"))

    def _retry_fixed(self) -> str:
        (batch, _), self._fixed = self._fixed or (0, 0), None
        return self._retry_members(batch)

    def _retry_members(self, batch: int) -> str:
        """Retry failed members as people do: they read why it is refused, and decide."""
        try:
            return self._retried(batch, Terms(VersionChoice.ACTIVE if self._rng.random() < _WANT_ACTIVE else None))
        except DoneWithOldData:
            return self._retried(batch, self._rng.choice([Terms(keep_done=True), Terms(begin_with="phase-0")]))
        except NewerVersionWaits:
            if self._rng.random() < _WAIT:
                raise
            return self._retried(batch, Terms(VersionChoice.CURRENT, keep_done=True))
        except NothingToRetry:
            return self._retried(batch, Terms(data=DataChoice.KEPT))

    def _retried(self, batch: int, terms: Terms) -> str:
        state = self._plant.state
        before = cities_read(state)
        done = retry_members(self.store, self._publisher, batch, terms=terms, by=_BY)
        if done.data is DataChoice.LAST_READING:
            rows_were_taken(state, batch, [*done.going_on, *done.beginning_again], before, cities_read(state))
        return f"retries in batch {batch}: {done.going_on} go on, {done.beginning_again} begin again"

    def retry_init(self) -> str:
        """Run a failed init again."""
        return self._retry_init(self._some(_FAILED_INITS))

    def _retry_init(self, batch: int) -> str:
        retry_init(self.store, self._publisher, batch, by=_BY)
        return f"retries the init of batch {batch}"

    def approve(self) -> str:
        """Approve some hold."""
        holds = self._holds()
        if not holds:
            return "finds no hold"
        return self._approve(*self._rng.choice(holds))

    def include(self) -> str:
        """Include a person whom the last tick left outside."""
        outside = self._kept_out()
        if not outside:
            return "finds nobody outside"
        done = include_member(
            self.store, NAME, self._rng.choice(outside), by=_BY, reason=None, now=self._plant.clock.now()
        )
        when = f"{done.batch_time:%d %H:%M}" if done.batch_time else "any time"
        return f"includes {done.member_key} at {when}"

    def create_manual(self) -> str:
        """Make a batch of visitors and of somebody who is in the source."""
        rows = [self._visitor(), self._visitor(), self._row("p0")]
        done = create_manual_batch(self.store, NAME, rows, by=_BY)
        return f"makes batch {done.batch.id} of {done.members}"

    def advance(self) -> str:
        """Let a manual batch go on."""
        batches = self._manual_batches()
        return self._advance(self._rng.choice(batches)) if batches else self.create_manual()

    def change_manual(self) -> str:
        """Let somebody join or leave a manual batch."""
        batches = self._manual_batches()
        if not batches:
            return "finds no manual batch"
        batch = self._rng.choice(batches)
        if self._rng.random() < 0.5:
            add_to_manual_batch(self.store, self._publisher, batch, [self._visitor()], by=_BY)
            return f"adds somebody to batch {batch}"
        members = self._look(f"SELECT member_key FROM batch_members WHERE batch_id = {batch} AND status = 'active'")
        key = self._rng.choice(members)[0] if members else "nobody"
        remove_from_manual_batch(self.store, self._publisher, batch, [key], by=_BY)
        return f"takes {key} out of batch {batch}"

    def resend(self) -> str:
        """Send a dead letter again."""
        letter = self._some("SELECT id FROM dead_letters WHERE status = 'open'")
        done = resend_dead_letter(self.store, self._publisher, decode, letter, by=_BY)
        return f"resends dead letter {letter}: {done.retried or done.message_id}"

    def switch_off(self) -> str:
        """Switch the automation off, or on again."""
        ((is_on,),) = self._look("SELECT automation_enabled FROM runbook_automation_settings") or ((1,),)
        set_automation(self.store, NAME, enabled=not is_on, by=_BY, now=self._plant.clock.now())
        return f"switches the automation {'off' if is_on else 'on'}"

    def switch_on(self) -> None:
        """Switch the automation on."""
        set_automation(self.store, NAME, enabled=True, by=_BY, now=self._plant.clock.now())

    def _try(self, wish: Callable[[], str]) -> str:
        try:
            return wish()
        except Refused as refused:
            return f"is refused: {refused.message}"

    def _approvals(self, batch: int, key: str) -> list[Callable[[], str]]:
        """Return what approves a hold for sure."""
        if self._signers is not None:
            return self._signers.approve_by_all(batch, key)
        return [partial(self._approve, batch, key)]

    def _approve(self, batch: int, key: str) -> str:
        if self._signers is not None:
            return self._signers.approve_hold(batch, key)
        approve(self.store, self._publisher, batch, key, by=_BY)
        return f"approves the hold of batch {batch}"

    def _advance(self, batch: int) -> str:
        done = advance_batch(self.store, self._publisher, batch, by=_BY)
        return f"advances batch {batch} to {done.phase_name or 'init'}"

    def _advance_or_cancel(self, batch: int) -> str:
        """Advance a manual batch; if all its members have left or failed, it cannot go on."""
        if self._look(f"SELECT 1 FROM batch_members WHERE batch_id = {batch} AND status = 'active'"):
            return self._advance(batch)
        running = f"SELECT 1 FROM rollback_executions WHERE batch_id = {batch} AND status = 'dispatched'"
        if self._look(running):
            return f"waits for batch {batch}"
        cancel_batch(self.store, self._publisher, batch, by=_BY)
        return f"cancels batch {batch}"

    def _holds(self) -> list[tuple[int, str]]:
        held = "SELECT id, hold_key FROM sim_batches WHERE is_held AND NOT is_approved"
        return [(int(number), str(key)) for number, key in self._look(held)]

    def _kept_out(self) -> list[str]:
        remarks = [
            one for (text,) in self._look("SELECT remarks_json FROM runbook_ticks") for one in orjson.loads(text)
        ]
        return sorted({key for remark in remarks if "member include" in remark["seen"] for key in remark["samples"]})

    def _manual_batches(self) -> list[int]:
        open_ones = "status IN ('detected', 'init_dispatched', 'active')"
        return [number for (number,) in self._look(f"SELECT id FROM batches WHERE is_manual AND {open_ones}")]

    def _visitor(self) -> dict[str, Any]:
        self._visitors += 1
        return self._row(f"visitor-{self._visitors}")

    def _row(self, key: str) -> dict[str, Any]:
        row = {"id": key, "start": None, "city": "Bern"}
        return row if self._signers is None else row | {"pilot": "yes"}

    def _some(self, query: str) -> int:
        found = self._look(query)
        if not found:
            raise Refused("there is none")
        return int(self._rng.choice(found)[0])

    def _look(self, query: str) -> list[tuple[Any, ...]]:
        return self._plant.state.look(query)
