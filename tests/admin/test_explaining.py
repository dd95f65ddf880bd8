"""Rules X1 to X5: what waits says for what, in the words of what decides it; nothing open is unexplained."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import delete, text

from matoolkit.admin.advancing import advance_batch
from matoolkit.admin.explaining import (
    BatchExplained,
    MemberExplained,
    Unexplained,
    explain_batch,
    explain_member,
    unexplained,
)
from matoolkit.admin.freezing import shut_freeze
from matoolkit.admin.gating import Subject, pause, resume
from matoolkit.admin.manual import create_manual_batch
from matoolkit.domain.holds import HoldKind
from matoolkit.domain.why import EndedBy, Why, WhyKind
from matoolkit.errors import GateShut
from matoolkit.store.batches import BatchRow
from matoolkit.store.gatekeeping import note_swept, open_gates
from matoolkit.store.holds import approve_hold
from matoolkit.store.schema import bus_messages, bus_recent_ids, outbox
from tests.orchestrator.runbooks import (
    TWO_PHASES,
    TWO_STEPS,
    WITH_FAREWELL,
    WITH_INIT,
    WITH_POLL,
    WITH_RETRY,
    WITH_ROLLBACK,
)
from tests.signing import Signers
from tests.stage import Failing, Stage

WITH_UNDONE_INIT = """
init:
  - {name: prepare, worker_id: worker-01, function: Prepare, on_failure: clear}
rollbacks:
  clear:
    - {name: clear, worker_id: worker-01, function: Clear}
""" + TWO_PHASES.lstrip()

T_OF_TUESDAY = "2026-03-10"


def explained(stage: Stage, batch: BatchRow, phase: str | None = None) -> BatchExplained:
    return explain_batch(stage.store, batch.id, phase)


def lines(stage: Stage, batch: BatchRow) -> list[tuple[str, int]]:
    return [(line.why.kind, line.members) for line in explained(stage, batch).lines]


def of_member(stage: Stage, batch: BatchRow, key: str = "u0") -> MemberExplained:
    return explain_member(stage.store, batch.id, stage.member(batch, key).id)


def why(stage: Stage, batch: BatchRow, key: str = "u0") -> Why:
    (found,) = of_member(stage, batch, key).whys
    return found


def left_over(stage: Stage) -> list[object]:
    with stage.store.reading() as tx:
        return list(unexplained(tx))


def test_x2_members_wait_for_a_phase_that_is_not_due_then_for_their_jobs(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 3, days=6)
    found = why(stage, batch)
    due = stage.now + timedelta(days=1)
    assert (found.kind, found.until, found.ended_by) == (WhyKind.NOT_DUE, due, EndedBy.TIME)
    assert lines(stage, batch) == [("not_due", 3)]
    stage.clock.advance(timedelta(days=1))
    assert lines(stage, batch) == [("tick", 3)]
    stage.due(batch, "prepare")
    stage.handle()
    found = why(stage, batch)
    assert (found.kind, found.since, found.until) == ("job_out", stage.now, stage.now + timedelta(hours=24))
    assert found.sentence == "the job of prepare/create is out at worker-01"
    stage.work()
    stage.handle()
    assert lines(stage, batch) == [("not_due", 3)]
    assert left_over(stage) == []


def test_x2_a_poll_says_its_deadline_and_a_retry_its_time(stage: Stage) -> None:
    for runbook, outcome, kind in ((WITH_RETRY, Failing("busy"), "retry"), (WITH_POLL, {"complete": False}, "poll")):
        batch = stage.batch(stage.publish(runbook, kind), 2)
        stage.due(batch, "prepare")
        stage.handle()
        for job in stage.take_jobs():
            stage.answer(job, outcome)
        stage.handle()
        found = why(stage, batch)
        assert found.kind == kind
        assert (found.until or stage.now) > stage.now
        assert (found.detail or "").startswith("attempt 1: busy" if kind == "retry" else "")
        assert lines(stage, batch) == [(kind, 2)]


def test_x1_a_poll_behind_a_pause_is_explained_by_the_pause(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_POLL), 2)
    stage.due(batch, "prepare")
    stage.handle()
    for job in stage.take_jobs():
        stage.answer(job, {"complete": False})
    stage.handle()
    gate = pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold").gate
    kinds = [one.kind for one in of_member(stage, batch).whys]
    assert kinds == ["pause", "poll"]
    assert lines(stage, batch) == [("pause", 2), ("poll", 2)]
    line = explained(stage, batch).lines[0]
    assert (line.why.gate_id, line.why.command) == (gate.id, f"matoolkit resume --gate {gate.id} --reason TEXT")
    assert "legal hold" in line.why.sentence


def test_x2_a_gate_of_a_person_or_a_worker_explains_those_whom_it_keeps(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 4)
    pause(stage.store, stage.bus, Subject(runbook_name="wave", member_key="U1"), by="kwu", reason="legal hold")
    stage.due(batch, "prepare")
    stage.handle()
    assert lines(stage, batch) == [("job_out", 3), ("pause", 1)]
    stage.answers["Create"] = {"Id": 1}
    pause(stage.store, stage.bus, Subject(worker_id="worker-01"), by="kwu", reason="it is rebuilt")
    assert sorted(lines(stage, batch)) == [("pause", 1), ("pause", 4)]
    assert left_over(stage) == []
    resume(stage.store, stage.bus, Subject(worker_id="worker-01"), by="kwu", reason="it is back")
    assert ("outbox", 3) in lines(stage, batch), "the message that wakes them is on its way"
    stage.handle()
    assert lines(stage, batch) == [("job_out", 3), ("pause", 1)]


def test_x2_a_held_batch_says_so_with_its_command(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 2)
    stage.hold(batch)
    found = explained(stage, batch)
    assert [(one.kind, one.command) for one in found.whys] == [("removals", f"matoolkit hold show {batch.id}")]
    assert lines(stage, batch) == [("removals", 2)]


def test_x2_what_is_undone_and_who_has_failed(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_ROLLBACK), 1)
    stage.answers.update(Create={"Id": "1"}, License=Failing("no licence"))
    stage.due(batch, "prepare")
    stage.handle()
    stage.work()
    stage.handle()
    stage.work()
    stage.handle()
    failed, found = of_member(stage, batch).whys
    assert failed.sentence == "prepare/license failed at the first attempt: no licence"
    assert found.kind == "job_out"
    assert "which undoes what was done" in found.sentence
    assert lines(stage, batch) == [("job_out", 1)]
    stage.run()
    found = of_member(stage, batch).whys[-1]
    assert (found.kind, found.ended_by) == ("ended", EndedBy.PERSON)
    assert not of_member(stage, batch).unexplained
    assert lines(stage, batch) == []


@pytest.mark.parametrize("shut", [False, True])
def test_x2_an_init_explains_itself_and_those_who_wait_for_it(stage: Stage, shut: bool) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    assert [one.kind for one in explained(stage, batch).whys] == ["outbox"]
    if shut:
        pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    stage.handle()
    kinds = [one.kind for one in explained(stage, batch).whys]
    assert kinds == (["pause"] if shut else ["job_out"])
    assert {kind for kind, _ in lines(stage, batch)} == {"init_running", *(["pause"] if shut else [])}
    assert left_over(stage) == []


def test_x5_an_init_that_nobody_wakes_is_unexplained(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), 2)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    stage.handle()
    resume(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason=None)
    assert left_over(stage) == []
    with stage.store.transaction() as tx:
        tx.execute(text("DELETE FROM bus_messages"))
    assert left_over(stage) == [Unexplained(batch.id, "the batch")]


def test_x2_a_manual_batch_tells_what_would_refuse_its_advance(stage: Stage) -> None:
    stage.publish(WITH_INIT.replace("phases:", "init_approval: {count: 2}\nphases:", 1))
    batch = create_manual_batch(stage.store, "wave", [{"Email": "u0"}], by="anna").batch
    advance, approval = explained(stage, batch).whys
    assert (approval.kind, approval.command) == ("approval", f"matoolkit approval show {batch.id} --init")
    assert (advance.kind, advance.command) == ("advance", f"matoolkit batch advance {batch.id}")
    with pytest.raises(GateShut, match=f"the init of batch {batch.id} cannot begin: waits for approval: 0 of 2 given"):
        advance_batch(stage.store, stage.bus, batch.id, by="anna")


def test_x2_a_key_with_a_space_stands_in_quotes_in_the_command(stage: Stage) -> None:
    stage.answers["Create"] = Failing("no licence")
    batch = stage.batch(stage.publish(TWO_PHASES), ["Ada Lovelace"])
    stage.due(batch, "prepare")
    stage.run()
    command = of_member(stage, batch, "Ada Lovelace").whys[-1].command
    assert command == f"matoolkit batch retry {batch.id} --member 'Ada Lovelace'"


def test_x2_who_waits_for_the_init_is_told_for_what_that_waits(stage: Stage) -> None:
    signed = WITH_INIT.replace("phases:", "init_approval: {count: 2}\nphases:", 1)
    batch = stage.batch(stage.publish(signed), 2)
    stage.handle()
    init, approval = of_member(stage, batch).whys
    assert (init.kind, init.command) == ("init_running", None)
    assert (approval.kind, approval.command) == ("approval", f"matoolkit approval show {batch.id} --init")
    assert lines(stage, batch) == [("init_running", 2)], "of the batch it is told once"


def test_x4_the_next_three_things_have_times_and_offsets(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    coming = explained(stage, batch).coming
    told = [(one.offset, one.sentence) for one in coming]
    assert told == [("T-5d", "prepare is due"), ("T-0", "check is due"), ("T-0", "cutover is due")]


def test_x4_what_ends_by_itself_is_told_once_and_no_more_than_three_things(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 3)
    hour = timedelta(hours=1)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold", until=stage.now + hour)
    mine = Subject(runbook_name="wave", member_key="u1")
    pause(stage.store, stage.bus, mine, by="kwu", reason="he travels", until=stage.now + 2 * hour)
    begins, ends = (f"{stage.now + hours * hour:%Y-%m-%dT%H:%MZ}" for hours in (3, 4))
    shut_freeze(stage.store, Subject(), by="kwu", reason="quarter end", begins=begins, until=ends)
    coming = explained(stage, batch).coming
    assert [(one.offset, one.sentence) for one in coming] == [
        ("T-4d 23h", "a pause ends"),
        ("T-4d 22h", "a pause ends"),
        ("T-4d 21h", "a freeze begins: quarter end"),
    ]


def test_x4_a_gate_that_has_shut_does_not_begin_once_more_when_the_clock_is_put_back(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    stage.clock.jump(stage.now - timedelta(minutes=5))
    assert [one.sentence for one in explained(stage, batch).coming if "legal hold" in one.sentence] == []


@pytest.mark.parametrize("kind", HoldKind)
def test_x2_a_hold_that_was_approved_waits_for_a_tick_whatever_it_is_for(stage: Stage, kind: HoldKind) -> None:
    """The defect: a late batch that a person had approved was said to wait for a person still."""
    batch = stage.batch(stage.publish(TWO_PHASES), 1)
    stage.due(batch, "prepare")
    stage.hold_for(batch, kind, "k1")
    stage.handle()
    assert lines(stage, batch) == [(kind, 1)]
    with stage.store.transaction() as tx:
        approve_hold(tx, batch.id, "k1", "kwu", stage.now)
    (found,) = explained(stage, batch).whys
    assert found.kind is WhyKind.AUTOMATION_OFF
    assert found.sentence.startswith("kwu approved what the batch was held for")
    assert lines(stage, batch) == [("automation_off", 1)]


def test_x5_a_wake_that_was_lost_is_unexplained(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 3)
    pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason="legal hold")
    stage.due(batch, "prepare")
    stage.handle()
    assert left_over(stage) == []
    with stage.store.transaction() as tx:
        open_gates(tx, [1], stage.now, "somebody who forgets", None)
        note_swept(tx, 1, stage.now, is_opened=True)
    (lost,) = left_over(stage)
    assert (lost.batch_id, lost.things) == (batch.id, 3)  # type: ignore[attr-defined]
    assert explained(stage, batch).unexplained == [lost]


def test_x5_a_phase_whose_message_was_lost_is_unexplained(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_STEPS), 1)
    stage.due(batch, "prepare")
    assert left_over(stage) == []
    with stage.store.transaction() as tx:
        tx.execute(delete(outbox))
        tx.execute(delete(bus_messages))
    assert Unexplained(batch.id, "phase prepare") in left_over(stage)


def test_x5_what_service_bus_has_nobody_can_look_at(stage: Stage) -> None:
    """There no message goes through this database, and one may always be on its way."""
    batch = stage.batch(stage.publish(TWO_STEPS), 1)
    stage.due(batch, "prepare")
    with stage.store.transaction() as tx:
        for table in (outbox, bus_messages, bus_recent_ids):
            tx.execute(delete(table))
    assert left_over(stage) == []


def test_x1_a_phase_that_is_not_due_names_the_gates_that_will_be_shut_then(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 1, days=6)
    for days, reason in ((0.5, "until tonight"), (2, "until it has begun")):
        until = stage.now + timedelta(days=days)
        pause(stage.store, stage.bus, Subject(batch_id=batch.id), by="kwu", reason=reason, until=until)
    found = explained(stage, batch, "prepare").phases[0].whys
    assert [one.kind for one in found] == ["not_due", "pause"]
    assert "until it has begun" in found[1].sentence


def test_x3_statements_do_not_grow_with_members(stage: Stage, statements: Callable[[], list[str]]) -> None:
    counts = []
    for members in (6, 400):
        batch = stage.batch(stage.publish(TWO_PHASES, f"wave-{members}"), members)
        pause(stage.store, stage.bus, Subject(runbook_name=batch.runbook_name, member_key="u1"), by="k", reason="hold")
        stage.due(batch, "prepare")
        stage.handle()
        statements()
        found = explained(stage, batch)
        counts.append(len(statements()))
        assert [(line.why.kind, line.members, len(line.samples)) for line in found.lines] == [
            ("job_out", members - 1, 5),
            ("pause", 1, 1),
        ]
    assert counts[0] == counts[1] < 40, counts


def test_x2_who_is_paused_is_told_so_before_its_phase_is_due(stage: Stage) -> None:
    batch = stage.batch_at(stage.publish(TWO_PHASES), 3, days=6)
    mine = Subject(runbook_name="wave", member_key="u1")
    pause(stage.store, stage.bus, mine, by="kwu", reason="he travels", until=stage.now + timedelta(hours=1))
    assert lines(stage, batch) == [("not_due", 3)], "it is over before the phase is due"
    pause(stage.store, stage.bus, mine, by="kwu", reason="legal hold")
    assert [one.kind for one in of_member(stage, batch, "u1").whys] == ["not_due", "pause"]
    assert why(stage, batch, "u0").kind == "not_due"
    assert lines(stage, batch) == [("not_due", 3), ("pause", 1)]


def test_x2_what_is_undone_waits_for_the_job_that_is_out(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL), 1)
    stage.due(batch, "prepare")
    stage.handle()
    (job,) = stage.take_jobs()
    stage.leave(batch, "u0")
    assert [one.kind for one in of_member(stage, batch).whys] == ["job_out"]
    stage.handle()
    out, behind = of_member(stage, batch).whys
    assert (out.kind, out.sentence) == (
        "job_out",
        "the job of prepare/create is out at worker-01, although the step was cancelled",
    )
    assert (behind.kind, behind.sentence) == ("compensation", "what was done for it is undone after that")
    assert left_over(stage) == []
    stage.answer(job)
    stage.handle()
    (found,) = of_member(stage, batch).whys
    assert (found.kind, found.sentence) == (
        "job_out",
        "the job of on_member_removed/forget, which undoes what was done, is out at worker-01",
    )


def test_x2_an_init_that_has_failed_is_undone_first(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_UNDONE_INIT), 1)
    stage.handle()
    stage.answers["Prepare"] = Failing("no group")
    stage.work()
    stage.handle()
    kinds = [one.kind for one in explained(stage, batch).whys]
    assert kinds == ["job_out", "compensation"]
    assert left_over(stage) == []


@pytest.mark.parametrize(("day", "told"), [("tue", [("window", T_OF_TUESDAY)]), ("mon", [])])
def test_x1_a_phase_that_is_not_due_names_its_window_if_that_is_shut_then(
    stage: Stage, day: str, told: list[tuple[str, str]]
) -> None:
    """It is due on a Monday, and today is a Tuesday."""
    window = f"window: {{days: [{day}], from: '00:00', to: '24:00'}}"
    document = TWO_PHASES.replace("offset: T-0", f"offset: T-0\n    {window}", 1)
    batch = stage.batch_at(stage.publish(document), 2, days=6)
    stage.due(batch, "prepare")
    stage.run()
    (cutover,) = explained(stage, batch, "cutover").phases
    assert [(one.kind, f"{one.until:%Y-%m-%d}") for one in cutover.whys] == [("not_due", "2026-03-09"), *told]
    assert [(one.kind, f"{one.until:%Y-%m-%d}") for one in of_member(stage, batch).whys][1:] == told


def test_x4_the_same_is_told_once_with_its_first_time(stage: Stage) -> None:
    """The defect: jobs of two steps were two lines that read the same."""
    batch = stage.batch(stage.publish(TWO_STEPS), 4)
    stage.due(batch, "prepare")
    stage.handle()
    first, second, *_ = stage.take_jobs()
    stage.clock.advance(timedelta(minutes=1))
    stage.answer(first, {"Id": 1})
    stage.answer(second, {"Id": 2})
    stage.handle()
    lost = [one for one in explained(stage, batch).coming if "counts as lost" in one.sentence]
    assert [(one.at, one.sentence) for one in lost] == [
        (stage.now + timedelta(days=1, minutes=-1), "prepare: the first job counts as lost if no answer has come")
    ]


def test_s3_who_joined_after_the_approval_is_told_before_the_phase_begins(stage: Stage) -> None:
    """The defect: late joiners waited for the calendar alone, as it was told, and then in the phase for people."""
    document = TWO_PHASES.replace("offset: T-0", "offset: T-0\n    approval: {}", 1)
    batch = stage.batch(stage.publish(document), 2)
    stage.due(batch, "prepare")
    stage.run()
    Signers(stage).approve(batch, "ann")
    assert [one.kind for one in of_member(stage, batch).whys] == ["not_due"]
    stage.join(batch, "late")
    stage.run()
    assert [one.kind for one in of_member(stage, batch).whys] == ["not_due"]
    (not_due, waits) = of_member(stage, batch, "late").whys
    assert (waits.kind, waits.command) == ("approval", f"matoolkit approval show {batch.id} cutover")
    assert waits.sentence == "joined after the approval, and waits in the phase for another unless it is given before"
    assert lines(stage, batch) == [("not_due", 3), ("approval", 1)]
    Signers(stage).approve(batch, "ann")
    assert of_member(stage, batch, "late").whys == [not_due]
