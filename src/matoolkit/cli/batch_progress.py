"""What a batch comes to: waiting for it, phase by phase or to its end, and what the exit code says of it."""

from collections.abc import Callable, Mapping
from typing import Any

from matoolkit.cli.answers import printable
from matoolkit.cli.batch_view import current_phases, steps_done
from matoolkit.cli.client import path_of
from matoolkit.cli.session import Session
from matoolkit.cli.watching import HowFar, wait
from matoolkit.domain.states import ENDED_BATCHES, ENDED_PHASES, OPEN_STEPS, BatchStatus, PhaseStatus
from matoolkit.words import counted

Item = Mapping[str, Any]
_BAD = 1


class Outcome:
    """How it ended; the exit code tells programs, the sentence people."""

    def __init__(self, *, is_good: bool, sentence: str) -> None:
        self.exit_code = 0 if is_good else _BAD
        self.sentence = sentence


def ended(batch: Item) -> bool:
    """Tell whether a batch has come to its end."""
    return batch.get("status") in ENDED_BATCHES


def outcome_of_batch(batch: Item) -> Outcome:
    """Say what a batch has come to."""
    status = str(batch.get("status"))
    failed = int((batch.get("members") or {}).get("failed", 0))
    sentence = f"batch {batch.get('id')} is {status}" + (f", {counted(failed, 'member')} failed" if failed else "")
    return Outcome(is_good=status == BatchStatus.COMPLETED, sentence=sentence)


def wait_for_batch(session: Session, batch: int) -> Outcome:
    """Wait until a batch has ended."""
    found = wait(session, lambda: session.client.get(path_of("batches", batch)), ended, _how_far)
    return _said(session, outcome_of_batch(found))


def wait_for_step(session: Session, batch: int, advanced: Item) -> Outcome:
    """Wait until what an advance began has ended: the init, or a phase."""
    name = advanced.get("phaseName")

    def is_over(seen: Item) -> bool:
        if ended(seen):
            return True
        if advanced.get("action") == "init_dispatched":
            # If the init of a newer version fails, the batch keeps its status and is held.
            return seen.get("status") == BatchStatus.ACTIVE or bool(seen.get("isHeld"))
        return name is None or _status_of(seen, name) in ENDED_PHASES

    seen = wait(session, lambda: session.client.get(path_of("batches", batch)), is_over, _how_far)
    if advanced.get("action") == "init_dispatched":
        return _said(session, _outcome_of_init(seen))
    return _said(session, outcome_of_batch(seen) if name is None else _outcome_of_phase(seen, name))


def run_to_its_end(session: Session, batch: int, advance: Callable[[], Item]) -> Outcome:
    """Advance a batch and wait, again and again, until it has ended or something went wrong."""
    while True:
        done = advance()
        outcome = wait_for_step(session, batch, done)
        seen = session.client.get(path_of("batches", batch))
        if outcome.exit_code or ended(seen) or done.get("action") == "all_phases_complete":
            return outcome if outcome.exit_code else outcome_of_batch(seen)
        if not any(phase.get("status") == PhaseStatus.PENDING for phase in current_phases(seen)):
            # A rollback may outlast the last phase.
            return wait_for_batch(session, batch)


def wait_for_rest(session: Session, batch: int, keys: set[str], least_steps: int) -> Outcome:
    """Wait until a batch has so many steps and none is under way, and look whether members have failed again."""

    def is_over(seen: Item) -> bool:
        open_ = sum(count for by_state in _steps(seen) for word, count in by_state.items() if word in OPEN_STEPS)
        return ended(seen) or (not open_ and steps_of(seen) >= least_steps)

    wait(session, lambda: session.client.get(path_of("batches", batch)), is_over, _how_far)
    members = session.client.pages(path_of("batches", batch, "members"), status="failed")
    again = sum(member.get("memberKey") in keys for member in members)
    sentence = f"{counted(again, 'member')} of {len(keys):,} failed again" if again else "nobody failed again"
    return _said(session, Outcome(is_good=not again, sentence=sentence))


def steps_of(batch: Item) -> int:
    """Return how many steps the members of a batch have; a member that begins again has new ones."""
    return sum(sum(by_state.values()) for by_state in _steps(batch))


def _steps(batch: Item) -> list[Mapping[str, int]]:
    return [phase.get("steps") or {} for phase in current_phases(batch)]


def _how_far(batch: Item) -> HowFar:
    phases = current_phases(batch)
    running = [phase for phase in phases if phase.get("status") == PhaseStatus.DISPATCHED]
    counted_ = [steps_done(phase.get("steps") or {}) for phase in running or phases]
    doing = " and ".join(f"phase '{phase.get('phaseName')}'" for phase in running) or str(batch.get("status"))
    return HowFar(
        sum(done for done, _ in counted_), sum(total for _, total in counted_), f"batch {batch.get('id')}: {doing}"
    )


def _outcome_of_init(batch: Item) -> Outcome:
    number, status = batch.get("id"), batch.get("status")
    if status == BatchStatus.INIT_DISPATCHED:
        why = printable(batch.get("holdReason") or "it waits for approval")
        return Outcome(is_good=False, sentence=f"batch {number} is held in its init: {why}")
    is_good = status in (BatchStatus.ACTIVE, BatchStatus.COMPLETED)
    return Outcome(is_good=is_good, sentence=f"init of batch {number} has ended: it is {status}")


def _outcome_of_phase(batch: Item, phase: object) -> Outcome:
    word = _status_of(batch, phase)
    failed = int((batch.get("members") or {}).get("failed", 0))
    sentence = f"phase '{phase}' is {word}"
    if failed:
        told = f"{counted(failed, 'member')} of the batch failed"
        sentence += f"; {told}: `matoolkit batch failures {batch.get('id')}`"
    return Outcome(is_good=word in (PhaseStatus.COMPLETED, PhaseStatus.SKIPPED), sentence=sentence)


def _status_of(batch: Item, phase: object) -> str | None:
    found = [one.get("status") for one in current_phases(batch) if one.get("phaseName") == phase]
    return found[-1] if found else None


def _said(session: Session, outcome: Outcome) -> Outcome:
    session.say(outcome.sentence)
    return outcome
