"""A stage with some of everything that pages show, names with markup and control characters among it."""

from dataclasses import dataclass

from matoolkit.bus.topology import jobs_of_worker
from matoolkit.domain.holds import HoldKind
from matoolkit.store.batches import BatchRow
from matoolkit.store.catalogue import AnnouncedFunction, announce_functions
from tests.orchestrator.runbooks import ONE_STEP, TWO_PHASES, WITH_ROLLBACK
from tests.stage import WORKER, Failing, Stage

HOSTILE = (
    "<script>document.title='taken'</script>@contoso.com",
    '"><img src=x onerror=alert(1)>@contoso.com',
    "\x1b[31mred\x1b[0m@contoso.com",
    "\u202egnp.exe\u202c@contoso.com",
    f"{'long-' * 75}@contoso.com",
)
LATE_BATCHES = 3


@dataclass(frozen=True, slots=True)
class Furnished:
    """The batches of the stage, by what they are for."""

    failed: BatchRow
    undone: BatchRow
    held: BatchRow
    buried: BatchRow
    late: tuple[BatchRow, ...]


def furnish(stage: Stage, held_members: int = 12) -> Furnished:
    """Put some of everything on a stage."""
    with stage.store.transaction() as tx:
        known = [
            AnnouncedFunction("Create", '[{"name": "Email", "type": "str", "is_mandatory": true, "is_secret": false}]'),
            AnnouncedFunction("License", '[{"name": "User", "type": "str", "is_mandatory": true, "is_secret": true}]'),
        ]
        announce_functions(tx, WORKER, known, stage.now)
    failed = _failed(stage)
    undone = _undone(stage)
    buried = _buried(stage)
    return Furnished(failed, undone, _held(stage, held_members), buried, _late(stage))


def _failed(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES, "moving"), [*HOSTILE, "ada", "grace", "alan"])
    stage.answers["Create"] = lambda job: Failing("<b>no</b> \x1b[31mlicence") if "a" in str(job) else {"Id": "1"}
    stage.due(batch, "prepare")
    stage.run()
    return batch


def _undone(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(WITH_ROLLBACK, "guarded"), [*HOSTILE, "dorothy"])
    stage.answers.update(Create={"Id": "1"}, License=Failing(), Unlicense=Failing("<i>cannot</i>"))
    stage.due(batch, "prepare")
    stage.run()
    return batch


def _buried(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(ONE_STEP, "buried"), ["claude", HOSTILE[0]])
    stage.due(batch, "prepare")
    stage.handle()
    for message in stage.bus.receive(jobs_of_worker(WORKER), 100):
        stage.bus.dead_letter(message, "Poison", "the <b>worker</b> choked on it")
    stage.sweep()
    return batch


def _held(stage: Stage, members: int) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES, "waves"), [*HOSTILE, *(f"person-{n}@x" for n in range(members))])
    gone = [member.id for member in stage.members(batch)][: members // 2 + len(HOSTILE)]
    reason = f"the source no longer returns {len(gone)} of its {members + len(HOSTILE)} members"
    stage.hold_for(batch, HoldKind.REMOVALS, "5b93f06cf027febd332d82a137750c2c", reason, memberIds=gone)
    return batch


def _late(stage: Stage) -> tuple[BatchRow, ...]:
    runbook = stage.publish(TWO_PHASES, "history")
    batches = []
    for days in range(-1, -1 - LATE_BATCHES, -1):
        batch = stage.batch_at(runbook, [f"late-{-days}@x"], days=days)
        start = batch.batch_start_time or stage.now
        reason = f"{start:%Y-%m-%d %H:%M} UTC had passed when the batch was first seen"
        stage.hold_for(batch, HoldKind.LATE, f"late-{batch.id}", reason, start=start.isoformat())
        batches.append(batch)
    return tuple(batches)
