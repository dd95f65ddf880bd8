"""Rule X2: every kind of reason to wait is told through `explain`, with what ends it, who may, and the command."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TypeAlias

import pytest

from matoolkit.admin.approving import approve
from matoolkit.admin.explaining import explain_batch, explain_member
from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, pause
from matoolkit.admin.manual import create_manual_batch
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.store.batches import BatchRow
from matoolkit.store.gatekeeping import NewGate, shut_gate
from tests.orchestrator.runbooks import TWO_PHASES, WITH_FAREWELL, WITH_INIT, WITH_POLL, WITH_RETRY
from tests.stage import Failing, Stage

pytestmark = pytest.mark.on("sqlite")

# What is told: a part of the sentence, what ends it, and the command; `B` stands for the number of the batch.
Told: TypeAlias = tuple[str, EndedBy, str | None]
PERSON, TIME, FACT = EndedBy.PERSON, EndedBy.TIME, EndedBy.FACT


def under_way(stage: Stage, runbook: str = TWO_PHASES, members: int = 2) -> BatchRow:
    batch = stage.batch(stage.publish(runbook), members)
    stage.due(batch, "prepare")
    stage.handle()
    return batch


def on_phase(rule: str, phase: str = "T-5d") -> str:
    return TWO_PHASES.replace(f"offset: {phase}", f"offset: {phase}\n    {rule}", 1)


def held(kind: HoldKind) -> Callable[[Stage], BatchRow]:
    def scene(stage: Stage) -> BatchRow:
        batch = stage.batch(stage.publish(TWO_PHASES), 2)
        stage.hold_for(batch, kind, f"{kind}-1", "look at it")
        return batch

    return scene


def late(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    prepare = next(phase for phase in stage.phase_rows(batch) if phase.phase_name == "prepare")
    gate = NewGate(
        kind=GateKind.LATE,
        reach=Door.START,
        worker_id=None,
        runbook_name=None,
        batch_id=batch.id,
        phase_execution_id=prepare.id,
        member_key=None,
        member_key_fold=None,
        shut_from=stage.now,
        shut_until=None,
        shut_by="scheduler",
        reason="it was due long ago",
    )
    with stage.store.transaction() as tx:
        shut_gate(tx, gate)
    return batch


def over_budget(stage: Stage) -> BatchRow:
    stage.answers["Create"] = Failing("no licence")
    batch = under_way(stage, on_phase("rollout: {max_failures: 1, at_once: 2}"), members=5)
    stage.work()
    stage.handle()
    return batch


def paused(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    return batch


def frozen(stage: Stage) -> BatchRow:
    ends = f"{stage.now + timedelta(days=2):%Y-%m-%dT%H:%MZ}"
    shut_freeze(stage.store, Subject(), by="kwu", reason="quarter end", until=ends)
    return stage.batch(stage.publish(TWO_PHASES), 2)


def outside_window(stage: Stage) -> BatchRow:
    rule = "window: {days: [sat], from: '20:00', to: '21:00', zone: Europe/Berlin}"
    return stage.batch(stage.publish(on_phase(rule)), 2)


def not_approved(stage: Stage) -> BatchRow:
    return stage.batch(stage.publish(on_phase("approval: {count: 2}")), 2)


def behind_pilots(stage: Stage) -> BatchRow:
    return under_way(stage, "pilot: {count: 1}" + on_phase("rollout: {pilot_first: true}"), members=3)


def without_place(stage: Stage) -> BatchRow:
    return under_way(stage, on_phase("rollout: {at_once: 1}"), members=3)


def not_due(stage: Stage) -> BatchRow:
    return stage.batch_at(stage.publish(TWO_PHASES), 2, days=6)


def manual(stage: Stage) -> BatchRow:
    stage.publish(TWO_PHASES)
    return create_manual_batch(stage.store, "wave", [{"Email": "u0"}], by="anna").batch


def due(stage: Stage) -> BatchRow:
    return stage.batch(stage.publish(TWO_PHASES), 2)


def approved_without_automation(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.hold(batch)
    approve(stage.store, stage.bus, batch.id, "removals-1", by="anna")
    return batch


def in_init(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    stage.handle()
    return batch


def behind_an_earlier_phase(stage: Stage) -> BatchRow:
    batch = not_approved(stage)
    stage.clock.advance(timedelta(days=6))
    return batch


def polling(stage: Stage) -> BatchRow:
    batch = under_way(stage, WITH_POLL)
    for job in stage.take_jobs():
        stage.answer(job, {"complete": False})
    stage.handle()
    return batch


def retrying(stage: Stage) -> BatchRow:
    batch = under_way(stage, WITH_RETRY)
    for job in stage.take_jobs():
        stage.answer(job, Failing("busy"))
    stage.handle()
    return batch


def leaving_while_a_job_is_out(stage: Stage) -> BatchRow:
    batch = under_way(stage, WITH_FAREWELL)
    stage.take_jobs()
    stage.leave(batch, "u0")
    stage.handle()
    return batch


def joining_late(stage: Stage) -> BatchRow:
    batch = under_way(stage)
    stage.join(batch, "u7")
    return batch


def leaving(stage: Stage) -> BatchRow:
    batch = under_way(stage, WITH_FAREWELL)
    stage.leave(batch, "u0")
    return batch


def just_begun(stage: Stage) -> BatchRow:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.due(batch, "prepare")
    return batch


def failed(stage: Stage) -> BatchRow:
    stage.answers["Create"] = Failing("no licence")
    batch = under_way(stage)
    stage.run()
    return batch


HOLD = "matoolkit hold show B"
SCENES: Mapping[WhyKind, tuple[Callable[[Stage], BatchRow], Told]] = {
    WhyKind.REMOVALS: (held(HoldKind.REMOVALS), ("held until a person approves: look at it", PERSON, HOLD)),
    WhyKind.CALLED_OFF: (held(HoldKind.CALLED_OFF), ("held until a person approves: look at it", PERSON, HOLD)),
    WhyKind.RESCHEDULE: (held(HoldKind.RESCHEDULE), ("held until a person approves: look at it", PERSON, HOLD)),
    WhyKind.INIT_FAILED: (held(HoldKind.INIT), ("held until a person approves: look at it", PERSON, HOLD)),
    WhyKind.REPEAT: (held(HoldKind.REPEAT), ("held until a person approves: look at it", PERSON, HOLD)),
    WhyKind.LATE: (late, ("late: it was due long ago", PERSON, "matoolkit gate open 1 --reason TEXT")),
    WhyKind.BUDGET: (over_budget, ("failed", PERSON, "matoolkit gate open 1 --allow 0 --reason TEXT")),
    WhyKind.PAUSE: (paused, ("paused by kwu at", PERSON, "matoolkit resume --gate 1 --reason TEXT")),
    WhyKind.FREEZE: (frozen, ("frozen by kwu until", TIME, "matoolkit freeze remove 1 --reason TEXT")),
    WhyKind.WINDOW: (outside_window, ("outside its window (sat 20:00-21:00 Europe/Berlin): it opens at", TIME, None)),
    WhyKind.APPROVAL: (
        not_approved,
        ("waits for approval: 0 of 2 given", PERSON, "matoolkit approval show B prepare"),
    ),
    WhyKind.PILOT: (behind_pilots, ("1 of 1 pilot has not ended phase 'prepare'", FACT, None)),
    WhyKind.AT_ONCE: (without_place, ("1 member may be in phase 'prepare' at once", FACT, None)),
    WhyKind.NOT_DUE: (not_due, ("prepare is not due", TIME, None)),
    WhyKind.ADVANCE: (manual, ("begins when a person advances the batch", PERSON, "matoolkit batch advance B")),
    WhyKind.TICK: (due, ("prepare is due, and begins with the next tick", FACT, None)),
    WhyKind.AUTOMATION_OFF: (
        approved_without_automation,
        ("but automation of wave is off", PERSON, "matoolkit automation enable wave"),
    ),
    WhyKind.INIT: (in_init, ("the init of the batch is not done", FACT, None)),
    WhyKind.EARLIER_PHASE: (behind_an_earlier_phase, ("prepare comes first, and it waits", FACT, None)),
    WhyKind.MEMBERS: (under_way, ("2 members are in it", FACT, None)),
    WhyKind.JOB_OUT: (under_way, ("the job of prepare/create is out at worker-01", FACT, None)),
    WhyKind.RETRY: (retrying, ("did not succeed, and is tried again", FACT, None)),
    WhyKind.POLL: (polling, ("is not done; worker-01 is asked again", FACT, None)),
    WhyKind.COMPENSATION: (leaving_while_a_job_is_out, ("what was done for it is undone after that", FACT, None)),
    WhyKind.CATCHING_UP: (joining_late, ("it joined late, and gets the steps of the phases", FACT, None)),
    WhyKind.UNDO: (leaving, ("it has left: gone; what is to be undone is looked for", FACT, None)),
    WhyKind.OUTBOX: (just_begun, ("it has begun, and its members get their steps", FACT, None)),
    WhyKind.ENDED: (failed, ("it has failed; nothing more happens by itself", PERSON, "matoolkit batch retry B")),
}


def whys(stage: Stage, batch: BatchRow) -> Iterator[Why]:
    found = explain_batch(stage.store, batch.id)
    assert found.unexplained == []
    yield from found.whys
    for phase in found.phases:
        yield from phase.whys
    for line in found.lines:
        yield line.why
    for member in stage.members(batch):
        yield from explain_member(stage.store, batch.id, member.id).whys


@pytest.mark.parametrize("kind", WhyKind)
def test_x2_every_kind_says_what_ends_it_and_the_command(stage: Stage, kind: WhyKind) -> None:
    scene, (sentence, ended_by, command) = SCENES[kind]
    batch = scene(stage)
    told = [one for one in whys(stage, batch) if one.kind is kind and sentence in one.sentence]
    assert told, [(one.kind, one.sentence) for one in whys(stage, batch)]
    assert {one.ended_by for one in told} == {ended_by}
    wanted = None if command is None else command.replace("B", str(batch.id))
    assert all((one.command or "").startswith(wanted or "") and bool(one.command) is bool(wanted) for one in told)
    assert all(one.who for one in told if ended_by is PERSON)
    assert all(one.until for one in told if ended_by is TIME)


def test_x2_behind_pilots_it_is_a_fact_that_is_waited_for_and_then_a_time(stage: Stage) -> None:
    rollout = on_phase("rollout: {pilot_first: true, soak: 2h}")
    batch = under_way(stage, "pilot: {count: 1}" + rollout, members=2)
    stage.work()
    stage.handle()
    told = {(one.ended_by, one.until) for one in whys(stage, batch) if one.kind is WhyKind.PILOT}
    assert told == {(TIME, stage.now + timedelta(hours=2))}
