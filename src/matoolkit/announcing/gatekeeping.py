"""What follows when a gate shuts or opens: jobs are taken back, work is woken (rules G4 and G8).

The gate's row is committed before. Then, batch by batch, what left before its pile knew of the gate is taken back, as
far as nobody has received it. A process that finds a gate for which that was not done does it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from matoolkit.announcing.doors import load_doors
from matoolkit.announcing.messages import batch_wake
from matoolkit.domain.doors import Door, PhaseDoor, Work
from matoolkit.domain.gates import Gate
from matoolkit.domain.moves.step import StepMove, TakeBack, TakeBackPoll, TakeBackRetry, Withdraw
from matoolkit.domain.states import StepStatus
from matoolkit.ids import Kind, Reason, reason_of
from matoolkit.ports import Publisher
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import NarrowBatch, lock_narrow_batches
from matoolkit.store.gatekeeping import GateRow, batches_behind, note_swept
from matoolkit.store.gates import gates_in_force
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import phases_of_batches
from matoolkit.store.waking import JobOut, count_wakes, jobs_out_of

_TAKE_BACK = {Reason.ATTEMPT: TakeBack, Reason.RETRY: TakeBackRetry, Reason.POLL: TakeBackPoll}


@dataclass(frozen=True, slots=True)
class TakenBack:
    """How many jobs were taken back, and how many are with workers."""

    taken_back: int = 0
    out: int = 0

    def __add__(self, other: "TakenBack") -> "TakenBack":
        """Count both."""
        return TakenBack(self.taken_back + other.taken_back, self.out + other.out)


def take_back_all(store: Store, publisher: Publisher, gate: GateRow) -> TakenBack:
    """Take back the jobs that a gate covers and that nobody has received, a commit for each batch."""
    found = TakenBack()
    if gate.reach is Door.SEND:
        with store.reading() as tx:
            behind = [batch.id for batch in batches_behind(tx, gate)]
        for batch_id in behind:
            with store.transaction() as tx:
                found += take_back(tx, publisher, gate.id, batch_id)
    with store.transaction() as tx:
        note_swept(tx, gate.id, tx.time(), is_opened=False)
    return found


def take_back(tx: Transaction, publisher: Publisher, gate_id: int, batch_id: int) -> TakenBack:
    """Take back the jobs of a batch that a gate covers, if it is still shut."""
    locked = lock_narrow_batches(tx, [batch_id])
    at = tx.time()
    shut = [gate for gate in gates_in_force(tx, at) if gate.id == gate_id]
    if not locked or not shut:
        return TakenBack()
    found, phases = TakenBack(), _phases_behind(tx, shut[0], locked[0], at)
    for kind in Kind:
        out = [job for job in jobs_out_of(tx, kind, batch_id) if _is_behind(shut[0], locked[0], job, phases)]
        found += _taken_back(tx, publisher, kind, out, at)
    return found


def take_back_from(tx: Transaction, publisher: Publisher, batch_id: int, phase_ids: Collection[int]) -> TakenBack:
    """Take back the jobs of phases of a batch that nobody has received: their window binds every job, and has shut."""
    if not lock_narrow_batches(tx, [batch_id]):
        return TakenBack()
    out = [job for job in jobs_out_of(tx, Kind.STEP, batch_id) if job.phase_execution_id in phase_ids]
    return _taken_back(tx, publisher, Kind.STEP, out, tx.time())


def wake_all(
    store: Store, publisher: Publisher, gate: GateRow, confirm: Callable[[Transaction], object] = lambda _: None
) -> None:
    """Have all work looked at that a gate kept which is open now."""
    with store.transaction() as tx:
        confirm(tx)
        wake_batches(tx, publisher, [batch.id for batch in batches_behind(tx, gate)])
        note_swept(tx, gate.id, tx.time(), is_opened=True)


def wake_batches(tx: Transaction, publisher: Publisher, batch_ids: Collection[int]) -> None:
    """Have everybody looked at again who may wait in batches: something opened a gate there (rule G8)."""
    locked = [batch.id for batch in lock_narrow_batches(tx, batch_ids)]
    publisher.publish(tx, [batch_wake(batch) for batch in count_wakes(tx, locked)])


def _phases_behind(tx: Transaction, gate: Gate, batch: NarrowBatch, at: datetime) -> Mapping[int, PhaseDoor]:
    """Return the phases of a batch, if the gate is about one of them and the later ones."""
    if gate.phase_execution_id is None:
        return {}
    return load_doors(tx, phases_of_batches(tx, [batch.id]), {batch.id: batch}, at)


def _is_behind(gate: Gate, batch: NarrowBatch, job: JobOut, phases: Mapping[int, PhaseDoor]) -> bool:
    phase = phases.get(job.phase_execution_id or 0)
    return gate.covers(Work(batch.runbook_name, batch.id, job.worker_id, job.member_key, phase=phase))


def _taken_back(tx: Transaction, publisher: Publisher, kind: Kind, out: Sequence[JobOut], at: datetime) -> TakenBack:
    withdrawn = set(publisher.withdraw(tx, [job.job_id for job in out])) if out else set()
    moves = [_back(job) for job in out if job.job_id in withdrawn]
    move_steps(tx, kind, moves, at)
    return TakenBack(len(moves), len(out) - len(moves))


def _back(job: JobOut) -> StepMove:
    # The job of a step that has ended is not sent again (rule O5).
    if job.status is not StepStatus.DISPATCHED:
        return Withdraw(job.id, job.job_id)
    return _TAKE_BACK[reason_of(job.job_id)](job.id, job.job_id)
