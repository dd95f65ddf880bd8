"""Rule X6: all that waits for a person's decision is one list, the oldest deadline first."""

from collections.abc import Callable
from datetime import timedelta

from sqlalchemy import text

from matoolkit.admin.attention import what_needs_a_person
from matoolkit.admin.decisions import inbox
from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.gatekeeping import NewGate, shut_gate
from tests.orchestrator.runbooks import TWO_PHASES, WITH_INIT
from tests.stage import Stage

SIGNED = "init_approval: {count: 2}\nsafeguards: {approval: {count: 2}}\nphases:"
WITH_APPROVAL = TWO_PHASES.replace("offset: T-0", "offset: T-0\n    approval: {until: T+4h}", 1)


def kinds(stage: Stage) -> list[str]:
    return [str(matter.kind) for matter in inbox(stage.store).matters]


def test_x6_what_waits_comes_by_its_deadline_and_what_has_none_last(stage: Stage) -> None:
    assert inbox(stage.store).matters == []
    far = stage.batch_at(stage.publish(TWO_PHASES, "far"), 1, days=20)
    near = stage.batch_at(stage.publish(TWO_PHASES, "near"), 1, days=8)
    stage.hold(far, "far-1")
    stage.hold(near, "near-1")
    hour = timedelta(hours=1)
    pause(stage.store, stage.bus, Subject(), by="kwu", reason="an outage", until=stage.now + hour)
    pause(stage.store, stage.bus, Subject(batch_id=far.id), by="kwu", reason="legal hold")
    found = inbox(stage.store).matters
    told = [(one.kind, one.batch_id, one.deadline) for one in found]
    assert told == [
        ("paused", None, stage.now + hour),
        ("held", near.id, stage.now + timedelta(days=3)),
        ("held", far.id, stage.now + timedelta(days=15)),
        ("paused", far.id, None),
    ]
    assert (found[0].sentence, found[0].detail) == ("Everything is paused by kwu", "an outage")
    assert found[3].command == "matoolkit resume --gate 4 --reason TEXT"
    resume(stage.store, stage.bus, Subject(batch_id=far.id), by="kwu", reason="it is over")
    assert kinds(stage) == ["paused", "held", "held"]


def test_x6_a_pause_that_ends_by_itself_needs_nobody_and_is_in_the_inbox(stage: Stage) -> None:
    pause(stage.store, stage.bus, Subject(), by="kwu", reason="an outage", until=stage.now + timedelta(hours=1))
    assert kinds(stage) == ["paused"]
    assert what_needs_a_person(stage.store).matters == []
    pause(stage.store, stage.bus, Subject(runbook_name=None), by="kwu", reason="legal hold")
    assert [str(one.kind) for one in what_needs_a_person(stage.store).matters] == ["paused"]


def test_x6_a_pause_stays_in_the_inbox_when_the_clock_is_put_back(stage: Stage) -> None:
    """The defect: the inbox had its own idea of which gates are in force."""
    pause(stage.store, stage.bus, Subject(), by="kwu", reason="legal hold")
    stage.clock.jump(stage.now - timedelta(minutes=5))
    assert kinds(stage) == ["paused"]
    assert [str(one.kind) for one in what_needs_a_person(stage.store).matters] == ["paused"]


def test_x6_the_inbox_costs_as_many_statements_for_many_batches_as_for_few(
    stage: Stage, statements: Callable[[], list[str]]
) -> None:
    """The defect: inits and holds that wait for sign-offs were asked about batch by batch."""
    document = WITH_INIT.replace("phases:", SIGNED, 1)
    runbook = stage.publish(document)
    counts, found = [], []
    for days in (5, 8):
        for day in range(days, days + 3):
            stage.batch_at(runbook, 1, days=day)
            stage.hold(stage.batch_at(runbook, 1, days=day + 20))
        stage.handle()
        statements()
        found = kinds(stage)
        counts.append(len(statements()))
    assert (found.count("approval"), found.count("held")) == (12, 6)
    assert counts[0] == counts[1]


def test_x6_a_freeze_is_in_the_inbox_while_it_lasts(stage: Stage) -> None:
    begins, ends = (stage.now + timedelta(hours=hours) for hours in (1, 2))
    times = {"begins": f"{begins:%Y-%m-%dT%H:%MZ}", "until": f"{ends:%Y-%m-%dT%H:%MZ}"}
    shut_freeze(stage.store, Subject(), by="kwu", reason="year end", **times)
    assert kinds(stage) == []
    stage.clock.advance(timedelta(hours=1))
    (matter,) = inbox(stage.store).matters
    assert (matter.kind, matter.deadline) == ("frozen", ends)
    assert (matter.sentence, matter.command) == (
        "Everything is frozen by kwu",
        "matoolkit freeze remove 1 --reason TEXT",
    )
    stage.clock.advance(timedelta(hours=1))
    assert kinds(stage) == []


def test_x6_a_sign_off_is_in_the_inbox_and_needs_a_person_the_day_before(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(WITH_APPROVAL), 2, days=6)
    (matter,) = inbox(stage.store).matters
    assert (matter.kind, matter.deadline) == ("approval", stage.now + timedelta(days=6, hours=4))
    assert matter.sentence == f"Phase 'cutover' of batch {batch.id} waits for approval"
    assert matter.command == f"matoolkit approval show {batch.id} cutover"
    assert what_needs_a_person(stage.store).matters == []
    stage.clock.advance(timedelta(days=5, hours=5))
    assert "approval" in [str(one.kind) for one in what_needs_a_person(stage.store).matters]


def test_u6_a_sign_off_for_which_something_waits_needs_a_person_however_long_it_is_taken(stage: Stage) -> None:
    with_init = WITH_INIT.replace("phases:", "init_approval: {count: 2}\nphases:", 1)
    stage.batch(stage.publish(with_init, "first"), 1)
    stage.handle()
    (matter,) = what_needs_a_person(stage.store).matters
    assert (matter.kind, matter.command) == ("approval", "matoolkit approval show 1 --init")
    batch = stage.batch(stage.publish(WITH_APPROVAL.replace("T+4h", "T+9d"), "second"), 1)
    stage.due(batch, "prepare")
    stage.run()
    assert [matter.batch_id for matter in what_needs_a_person(stage.store).matters] == [1]
    stage.clock.advance(timedelta(days=5))
    pressing = [(str(matter.kind), matter.batch_id) for matter in what_needs_a_person(stage.store).matters]
    assert pressing == [("approval", batch.id), ("approval", 1)], "by their deadlines"


def test_x6_budgets_late_phases_and_dead_letters_wait_too(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    cutover = next(phase for phase in stage.phase_rows(batch) if phase.phase_name == "cutover")
    with stage.store.transaction() as tx:
        for kind in (GateKind.BUDGET, GateKind.LATE):
            gate = NewGate(
                kind=kind,
                reach=Door.START,
                worker_id=None,
                runbook_name=None,
                batch_id=batch.id,
                phase_execution_id=cutover.id,
                member_key=None,
                member_key_fold=None,
                shut_from=stage.now,
                shut_until=None,
                shut_by="system",
                reason="something is wrong",
            )
            shut_gate(tx, gate)
        keep_dead_letters(
            tx,
            [
                NewDeadLetter(
                    *("orchestrator-events", "orchestrator", "phase-due-1-1", "phase-due", "{}", "{}"),
                    *("broken", None, 10, stage.now),
                )
            ],
            stage.now,
        )
    found = inbox(stage.store).matters
    assert [(str(one.kind), one.sentence) for one in found] == [
        ("late", f"Phase 'cutover' of batch {batch.id} is late"),
        ("budget", f"Too many have failed in phase 'cutover' of batch {batch.id}"),
        ("dead_letter", "1 message of the kind phase-due could not be handled"),
    ]
    assert [one.deadline for one in found] == [cutover.due_at, cutover.due_at, None]


def test_t1_a_version_that_cannot_be_read_does_not_keep_others_out_of_the_inbox(stage: Stage) -> None:
    broken = stage.batch(stage.publish(WITH_APPROVAL, "broken"), 1)
    batch = stage.batch(stage.publish(WITH_APPROVAL), 1)
    with stage.store.transaction() as tx:
        tx.execute(text(f"UPDATE runbooks SET yaml_content = 'name: broken' WHERE id = {broken.runbook_id}"))
    assert [one.batch_id for one in inbox(stage.store).matters] == [batch.id]
