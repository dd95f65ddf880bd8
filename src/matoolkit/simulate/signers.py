"""People who sign off, reject, and take that back, sometimes with what they saw long ago (rules S1 to S7)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from matoolkit.admin.approvals import ApprovalState, Asking, approvals_of_batch, waiting_approvals
from matoolkit.admin.approving import approve
from matoolkit.admin.signing import sign_off, withdraw
from matoolkit.domain.signoff import Caller, Signer
from matoolkit.domain.states import SignOff, SignOffSubject
from matoolkit.errors import NotAsShown, Refused
from matoolkit.ports import Publisher
from matoolkit.simulate.database import WatchedStore
from matoolkit.simulate.declared import SIGNERS
from matoolkit.simulate.doortriggers import LISTED
from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.processes import Plant

_ROLES = frozenset({"Admin", "Approver"})
_ASKED = "SELECT 1 FROM sim_rules WHERE rules ->> '$.approval' IS NOT NULL LIMIT 1"
_STANDING = "SELECT batch_id, phase_execution_id, signed_by FROM approvals WHERE withdrawn_at IS NULL"
_NOT_OF_HOLDS = f"{_STANDING} AND subject <> 'hold'"
# How often people can sign in, and how often they name what they saw earlier.
_SIGN_IN, _WITH_OLD = 0.75, 0.5
_SIGNABLE = frozenset({ApprovalState.EARLY, ApprovalState.WAITING, ApprovalState.REJECTED, ApprovalState.LATE})
# What can be signed off at the end.
_MISSING = frozenset({ApprovalState.WAITING, ApprovalState.REJECTED})
# Of a batch what a sign-off is about: T, the version, who is in it, and which sign-offs were used before. An init that
# was asked for goes on under its version (rule V5).
_STATE = f"""
SELECT b.batch_start_time, COALESCE(p.runbook_version, CASE b.status WHEN 'init_dispatched' THEN
(SELECT MAX(runbook_version) FROM init_executions WHERE batch_id = b.id) END, r.version), {LISTED.format(batch="b.id")},
(SELECT group_concat(a.id) FROM approvals a WHERE a.phase_execution_id = p.id AND a.used_at IS NOT NULL), p.status
FROM batches b JOIN runbooks r ON r.id = b.runbook_id LEFT JOIN phase_executions p ON p.id = {{phase}}
WHERE b.id = {{batch}}
"""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What somebody looked at, and how it was then."""

    batch: int
    phase: int | None
    digest: str
    state: tuple[Any, ...]

    @property
    def has_begun(self) -> bool:
        """Whether it was a phase that had begun, in which only late joiners are asked about."""
        return self.phase is not None and self.state[-1] != "pending"


class Signers:
    """Three people, two of them publish too; where nobody can sign in they are one."""

    def __init__(self, plant: Plant, rng: Random, store: WatchedStore, publisher: Publisher) -> None:
        self._plant, self._rng = plant, rng
        self._store, self._publisher = store, publisher
        caller = Caller.PERSON if rng.random() < _SIGN_IN else Caller.NOBODY
        names = SIGNERS if caller is Caller.PERSON else ("local",)
        self.people = [Signer(name, _ROLES, caller) for name in names]
        self._looks: list[_Seen] = []

    def wishes(self) -> list[tuple[int, Callable[[], str]]]:
        """Return what they may do, and how often they do it."""
        if not self._plant.state.look(_ASKED):
            return []
        return [(20, self.sign), (10, self.look), (3, self.reject), (3, self.take_back)]

    def look(self) -> str:
        """Look at something that waits for sign-offs, to sign it some time."""
        seen = self._seen()
        self._looks.append(seen)
        return f"looks at {seen.digest} of batch {seen.batch}"

    def sign(self) -> str:
        """Sign something off that was looked at just now, or earlier."""
        return self._sign(self._to_sign(), SignOff.APPROVE)

    def reject(self) -> str:
        """Say no to something."""
        return self._sign(self._to_sign(), SignOff.REJECT)

    def take_back(self) -> str:
        """Take back what somebody has signed."""
        found = self._plant.state.look(_NOT_OF_HOLDS)
        if not found:
            raise Refused("nobody has signed")
        batch, phase, name = self._rng.choice(found)
        (by,) = (one for one in self.people if one.name == name)
        withdraw(self._store, self._publisher, batch, phase, by=by)
        return f"{name} takes back what it signed of batch {batch}, phase {phase}"

    def sign_everything(self) -> Iterator[Callable[[], str]]:
        """Return what lets all begin that is due and waits for sign-offs: all noes are taken back, and all sign."""
        now = self._plant.clock.now()
        for asking in waiting_approvals(self._store) if self._plant.state.look(_ASKED) else ():
            is_due = asking.due_at is None or asking.due_at <= now
            if is_due and asking.state in _MISSING and asking.asked.subject is not SignOffSubject.HOLD:
                batch, phase = asking.batch.id, asking.asked.phase_execution_id
                if (no := asking.asked.rejection) is not None:
                    yield partial(self._take_back, no.signed_by, batch, phase)
                yield from (partial(self._sign_now, batch, phase, by) for by in self.people)

    def approve_hold(self, batch: int, key: str) -> str:
        """Let somebody approve what a batch is held for; that may need several people."""
        return self._approve(self._rng.choice(self.people), batch, key)

    def approve_by_all(self, batch: int, key: str) -> list[Callable[[], str]]:
        """Return what approves a hold, one person after the other."""
        return [partial(self._approve, by, batch, key) for by in self.people]

    def _approve(self, by: Signer, batch: int, key: str) -> str:
        approve(self._store, self._publisher, batch, key, by=by.name, signer=by)
        return f"{by.name} approves the hold of batch {batch}"

    def _take_back(self, name: str, batch: int, phase: int | None) -> str:
        (by,) = (one for one in self.people if one.name == name)
        withdraw(self._store, self._publisher, batch, phase, by=by)
        return f"{name} says no no longer"

    def _sign_now(self, batch: int, phase: int | None, by: Signer) -> str:
        return self._sign(self._look_at(batch, phase), SignOff.APPROVE, by)

    def _to_sign(self) -> _Seen:
        if self._looks and self._rng.random() < _WITH_OLD:
            return self._looks.pop(self._rng.randrange(len(self._looks)))
        return self._seen()

    def _seen(self) -> _Seen:
        asking = [one for one in waiting_approvals(self._store, everything=True) if _may_be_signed(one)]
        if not asking:
            raise Refused("nothing is to be signed")
        chosen = self._rng.choice(asking)
        return self._look_at(chosen.batch.id, chosen.asked.phase_execution_id)

    def _look_at(self, batch: int, phase: int | None) -> _Seen:
        with self._undisturbed():
            found = [
                one.digest
                for one in approvals_of_batch(self._store, batch)
                if one.asking.asked.phase_execution_id == phase and one.asking.asked.subject is not SignOffSubject.HOLD
            ]
            if not found:
                raise Refused("nothing is to be signed any more")
            return _Seen(batch, phase, found[0], self._state(batch, phase))

    def _sign(self, seen: _Seen, decision: SignOff, by: Signer | None = None) -> str:
        by = by or self._rng.choice(self.people)
        with self._undisturbed():
            try:
                sign_off(
                    *(self._store, self._publisher, seen.batch, seen.phase, decision),
                    by=by,
                    digest=seen.digest,
                    reason="looked at",
                )
            except NotAsShown:
                if self._state(seen.batch, seen.phase) == seen.state:
                    raise Violation(f"{seen} is refused as if something had changed (rule S2)") from None
                raise
            self._demand_as_seen(seen)
        return f"{by.name} signs {seen.digest} of batch {seen.batch}, phase {seen.phase}: {decision}"

    def _demand_as_seen(self, seen: _Seen) -> None:
        """Demand that what was signed is what was seen: T, the version and the list (rule S2).

        In a phase that has begun those who had joined before are not asked about any more.
        """
        start, version, listed, _, _ = seen.state
        now_start, now_version, now_listed, _, _ = self._state(seen.batch, seen.phase)
        is_same = (start, version) == (now_start, now_version)
        if seen.has_begun:
            new = set((now_listed or "").split(",")) - set((listed or "").split(","))
            late = f"SELECT id FROM batch_members WHERE batch_id = {seen.batch} AND joined_no > {self._used(seen)}"
            joined = {str(number) for (number,) in self._plant.state.look(late)}
            unseen = [one for one in sorted(new) if one.split(":")[0] in joined]
        else:
            unseen = [] if listed == now_listed else [f"{listed} was seen, and it is {now_listed}"]
        if not is_same or unseen:
            raise Violation(f"{seen} was signed, and is another since: {unseen}, {now_start}, {now_version} (rule S2)")

    def _used(self, seen: _Seen) -> int:
        """Return up to which number those had joined about whom the latest used sign-off was when it was seen."""
        before = seen.state[3]
        if before is None:
            return -1
        ((number,),) = self._plant.state.look(f"SELECT MAX(covered_no) FROM approvals WHERE id IN ({before})")
        return int(number)

    def _state(self, batch: int, phase: int | None) -> tuple[Any, ...]:
        (found,) = self._plant.state.look(_STATE.format(batch=batch, phase="NULL" if phase is None else phase))
        return found

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Let nobody act between two transactions: what is compared must be of one moment."""
        between, self._store.between = self._store.between, None
        try:
            yield
        finally:
            self._store.between = between


def _may_be_signed(asking: Asking) -> bool:
    return asking.state in _SIGNABLE and asking.asked.subject is not SignOffSubject.HOLD
