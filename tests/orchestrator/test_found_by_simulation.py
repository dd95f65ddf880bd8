"""What the simulation found, each in as few words as possible."""

from datetime import timedelta

from matoolkit.admin.manual import create_manual_batch
from matoolkit.admin.reinitializing import retry_init
from matoolkit.bus.topology import EVENTS_OF_ORCHESTRATOR
from matoolkit.domain.messages import MemberAdded, MemberRemoved
from matoolkit.domain.states import BatchStatus, MemberStatus
from matoolkit.orchestrator.agenda import Limits
from matoolkit.ports import Outgoing
from tests.stage import Failing, Silent, Stage

from .runbooks import ONE_STEP, TWO_PHASES, WITH_FAREWELL, WITH_INIT


def test_o1_a_retried_init_leaves_out_who_is_in_another_batch_by_now(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_INIT), ["u0", "u1"])
    stage.answers["Group"] = Failing()
    stage.run()
    create_manual_batch(stage.store, "wave", [{"Email": "u0", "Name": "U0"}], by="anna")
    assert retry_init(stage.store, stage.bus, batch.id, by="anna").left_out == ("u0",)
    assert stage.member(batch, "u0").status is MemberStatus.REMOVED
    assert stage.member(batch, "u1").status is MemberStatus.ACTIVE


def test_o1_a_retried_init_leaves_out_whom_another_batch_has_yet_to_see_off(stage: Stage) -> None:
    """Or what runs for leavers could run twice at a time, once for each batch."""
    batch = stage.batch(stage.publish(WITH_INIT), ["u0", "u1"])
    stage.answers["Group"] = Failing()
    stage.run()
    other = create_manual_batch(stage.store, "wave", [{"Email": "u0", "Name": "U0"}], by="anna").batch
    stage.leave_unannounced(other, "u0")
    assert retry_init(stage.store, stage.bus, batch.id, by="anna").left_out == ("u0",)


def test_o5_a_retry_is_not_sent_for_a_member_that_has_left(stage: Stage) -> None:
    retried = ONE_STEP.replace("function: Create", "retry: {max_retries: 2, interval: 1m}, function: Create")
    batch = stage.batch(stage.publish(retried))
    stage.answers["Create"] = Failing()
    stage.due(batch, "prepare")
    stage.run()
    stage.leave_unannounced(batch, "u0")
    stage.clock.advance(timedelta(minutes=2))
    stage.sweep()
    stage.handle()
    assert len(stage.take_jobs()) == 0


def test_o3_a_phase_that_is_due_waits_for_an_earlier_one_of_which_the_news_comes_later(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.due(batch, "cutover", "check")
    dues = stage.bus.receive(EVENTS_OF_ORCHESTRATOR, 10)
    stage.bus.abandon(dues[1:])
    stage.handle()
    assert stage.take_jobs() == []
    stage.bus.abandon(dues[:1])
    stage.run()
    assert stage.functions() == ["Move", "Finish", "Test"]


def test_o3_a_skipped_phase_that_a_late_joiner_reopens_keeps_nobody_else_waiting(stage: Stage) -> None:
    batch = stage.batch(stage.publish(TWO_PHASES))
    stage.skip(batch, "prepare")
    stage.due(batch, "cutover")
    stage.join(batch, "late")
    stage.handle()
    assert sorted(job.function_name for job in stage.take_jobs()) == ["Create", "Move"]


def test_o9_who_was_seen_off_is_not_seen_off_again_by_a_new_version(stage: Stage) -> None:
    batch = stage.batch(stage.publish(WITH_FAREWELL))
    stage.leave(batch, "u0")
    stage.run()
    farewell = next(line for line in WITH_FAREWELL.splitlines() if "forget" in line)
    more = WITH_FAREWELL.replace(farewell, f"{farewell}\n{farewell.replace('forget', 'forget-more')}")
    stage.change_version(batch, stage.publish(more))
    member = stage.member(batch, "u0")
    stage.bus.send([Outgoing("delivered-again", MemberRemoved(batch.id, member.member_key, member.id))])
    stage.run()
    assert [row.step_name for row in stage.rollbacks(batch)] == ["forget"]


def test_o3_who_gets_no_steps_in_an_earlier_phase_is_not_kept_waiting_for_them(stage: Stage) -> None:
    """A member who came back while a phase of the version before was still being given its rows, after its turn."""
    stage = Stage(stage.store, stage.clock, Limits(slice_size=1))
    batch = stage.batch(stage.publish(ONE_STEP), ["u0", "u1", "u2"])
    stage.due(batch, "prepare")
    stage.events.turn()
    stage.leave(batch, "u0")
    stage.come_back_unannounced(batch, "u0")
    stage.change_version(batch, stage.publish(ONE_STEP + "# 2\n"), keep_phases=True)
    stage.due_of(batch, 2, "prepare")
    member = stage.member(batch, "u0")
    stage.bus.send([Outgoing("back", MemberAdded(batch.id, member.member_key, member.id))])
    stage.run()
    now = [step for step in stage.steps(batch) if (step.batch_member_id, step.epoch) == (member.id, member.epoch)]
    assert [step.status for step in now] == ["succeeded"]


def test_v5_a_failed_init_that_another_one_has_overtaken_holds_nothing(stage: Stage) -> None:
    """What was held for the old one could be approved while the new one ran, and the batch went on beside it."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.run()
    stage.answers.update(Domain=Failing(), Undomain=Silent())
    stage.change_version(batch, stage.publish(WITH_INIT + "# 2\n"), rerun_init=True)
    stage.run()
    undoing = stage.jobs[-1]
    assert undoing.function_name == "Undomain"
    stage.answers.update(Domain=None)
    stage.change_version(batch, stage.publish(WITH_INIT + "# 3\n"), rerun_init=True)
    stage.answer(undoing)
    stage.results.turn()
    assert not stage.reload(batch).is_held
    stage.run()
    assert (stage.reload(batch).status, stage.reload(batch).is_held) == (BatchStatus.ACTIVE, False)


def test_v5_a_batch_that_has_begun_is_held_however_many_inits_have_failed_since(stage: Stage) -> None:
    """It failed with the second, and members that waited for the init were forgotten with an open step."""
    batch = stage.batch(stage.publish(WITH_INIT))
    stage.run()
    stage.answers["Domain"] = Failing()
    for version in (2, 3):
        stage.change_version(batch, stage.publish(WITH_INIT + f"# {version}\n"), rerun_init=True)
        stage.run()
        assert (stage.reload(batch).status, stage.reload(batch).is_held) == (BatchStatus.INIT_DISPATCHED, True)
