"""A report's people come in pages by batch, one query a page (rule U1)."""

from collections.abc import Callable

from sqlalchemy import update

from matoolkit.domain.states import MemberState, MemberStatus, StepStatus
from matoolkit.store import Store
from matoolkit.store.reporting import (
    FailedPeople,
    PhaseTally,
    ReportFilter,
    batches_of_report,
    beginners,
    count_report,
    failed_people,
    phase_tallies,
    report_page,
    tried_steps,
)
from matoolkit.store.schema import batch_members, step_executions
from tests.store.world import World


def test_u1_people_of_all_batches_come_in_pages_by_batch(
    store: Store, world: World, statements: Callable[[], list[str]]
) -> None:
    one = world.batch()
    two, elsewhere = world.another(one), world.batch(world.runbook("other"))
    late, early = world.members(two, 3), world.members(one, 2)
    world.members(elsewhere, 1)
    with store.transaction() as tx:
        tx.execute(update(batch_members).where(batch_members.c.id == early[0]).values(status=MemberStatus.FAILED))
    wave = ReportFilter(runbook_name="wave")
    with store.reading() as tx:
        seen, last = [], 0
        statements()
        while page := report_page(tx, wave, after=last, limit=2):
            seen += page
            last = page[-1].id
        assert len(statements()) == 4
        assert [person.id for person in seen] == early + late
        assert [person.state for person in seen] == [MemberState.FAILED, *[MemberState.DONE] * 4]
        assert {(person.runbook_name, person.batch_start_time) for person in seen} == {
            ("wave", one.batch_start_time),
            ("wave", two.batch_start_time),
        }
        assert [person.id for person in report_page(tx, ReportFilter(state=MemberState.FAILED))] == [early[0]]
        assert [person.id for person in report_page(tx, ReportFilter(batch_id=two.id))] == late
        assert len(report_page(tx, ReportFilter())) == count_report(tx, ReportFilter()) == 6
        assert [batch.id for batch in batches_of_report(tx, wave)] == [one.id, two.id]
        assert count_report(tx, ReportFilter(key_part="USER2")) == 1


def test_u1_the_last_step_is_the_last_that_was_tried_in_this_epoch(store: Store, world: World) -> None:
    batch = world.batch()
    phases = [world.phase(batch, index) for index in range(2)]
    failed, begun, fresh, again = members = world.members(batch, 4)
    steps = [world.steps(batch, phase, members) for phase in phases]
    with store.transaction() as tx:
        world.dispatched(tx, [steps[0][0], steps[0][1]])
        number = step_executions.c.id
        tx.execute(
            update(step_executions)
            .where(number == steps[0][0])
            .values(status=StepStatus.FAILED, error_type="Taken", error_message="100% taken [x]")
        )
        tx.execute(update(step_executions).where(number == steps[1][0]).values(status=StepStatus.CANCELLED))
        # It fails before it is sent, as a step does whose template cannot be resolved.
        tx.execute(update(step_executions).where(number == steps[1][3]).values(status=StepStatus.FAILED))
        tx.execute(update(batch_members).where(batch_members.c.id == again).values(epoch=2))
        tx.execute(update(batch_members).where(batch_members.c.id == failed).values(status=MemberStatus.FAILED))
    with store.reading() as tx:
        last = {person.id: person.last_step_id for person in report_page(tx, ReportFilter())}
        assert last == {failed: steps[0][0], begun: steps[0][1], fresh: None, again: None}
        tried = tried_steps(tx, steps[0][:2])
        assert (tried[steps[0][0]].phase_name, tried[steps[0][0]].status) == ("phase-0", StepStatus.FAILED)
        assert (tried[steps[0][1]].attempt, tried[steps[0][1]].error_type) == (1, None)
        for part, whom in {"0% TAKEN [": [failed], "0%taken": [], "other": []}.items():
            assert [person.id for person in report_page(tx, ReportFilter(error_part=part))] == whom
        assert failed_people(tx, [batch.id]) == [
            FailedPeople("wave", "phase-0", "step-0", "Taken", "100% taken [x]", 1, "user0")
        ]


def test_u1_phases_are_counted_without_those_who_left(store: Store, world: World) -> None:
    batch = world.batch()
    phase = world.phase(batch)
    through, broken, moving, gone, beginner = members = world.members(batch, 5)
    world.steps(batch, phase, members, per_member=2)
    with store.transaction() as tx:
        mine = step_executions.c.batch_member_id
        done = {"status": StepStatus.SUCCEEDED}
        tx.execute(update(step_executions).where(mine.in_([through, gone])).values(done))
        first = step_executions.c.step_index == 0
        tx.execute(update(step_executions).where(mine.in_([broken, moving]), first).values(done))
        tx.execute(update(step_executions).where(mine == broken, ~first).values(status=StepStatus.FAILED))
        tx.execute(update(batch_members).where(batch_members.c.id == gone).values(status=MemberStatus.REMOVED))
        again = {"epoch": 2, "first_phase_version": 1, "first_phase_place": 1}
        tx.execute(update(batch_members).where(batch_members.c.id == beginner).values(again))
    with store.reading() as tx:
        assert phase_tallies(tx, [phase.id]) == [PhaseTally(phase.id, members=3, completed=1, failed=1)]
        (some,) = beginners(tx, [batch.id])
        assert (some.batch_id, some.first_phase_version, some.first_phase_place, some.members) == (batch.id, 1, 1, 1)
        assert tried_steps(tx, []) == {}
        assert phase_tallies(tx, []) == []
        assert beginners(tx, []) == []
        assert failed_people(tx, []) == []
