"""Rules C1 and C4 on real tables: pilots are chosen by a tick, and a budget keeps later phases from beginning."""

from datetime import timedelta

from matoolkit.admin.gating import open_gate
from matoolkit.domain.doors import Door
from matoolkit.domain.gates import GateKind
from matoolkit.store.gatekeeping import NewGate, shut_gate
from tests.scheduler.calendar import Calendar, runbook

PHASES = [
    {
        "name": name,
        "offset": offset,
        "rollout": {"pilot_first": True, "max_failures": "50%"},
        "steps": [{"name": "go", "worker_id": "worker-01", "function": "Go", "params": {}}],
    }
    for name, offset in (("prepare", "T-7d"), ("cutover", "T-0"))
]


def in_flight(calendar: Calendar) -> int:
    """Let the first phase of a batch begin; the column says who is a pilot."""
    calendar.publish(runbook(pilot={"column": "City"}, phases=PHASES))
    calendar.in_source("ada", "bob", at=calendar.start, city="no")
    calendar.in_source("carla", "dora", at=calendar.start, city="Yes")
    calendar.tick()
    calendar.tick(timedelta(days=3))
    return calendar.batch().id


def test_c1_the_tick_in_which_the_first_phase_begins_chooses_the_pilots_as_it_reads_them(calendar: Calendar) -> None:
    batch = in_flight(calendar)
    calendar.gone("dora")
    calendar.in_source("eva", at=calendar.start, city="yes")
    calendar.tick(timedelta(hours=1))
    pilots = {row.member_key for row in calendar.member_rows(batch) if row.is_pilot}
    assert pilots == {"carla", "dora"}, "who joins later is no pilot, and who leaves stays one"
    assert [phase.member_count for phase in calendar.phase_rows()] == [4, None]


def test_c4_a_phase_behind_a_budget_stays_pending_and_begins_with_the_sweep_after_it_opens(calendar: Calendar) -> None:
    batch = in_flight(calendar)
    first = calendar.phase_rows()[0]
    new = NewGate(
        kind=GateKind.BUDGET,
        reach=Door.START,
        worker_id=None,
        runbook_name=None,
        batch_id=batch,
        phase_execution_id=first.id,
        member_key=None,
        member_key_fold=None,
        shut_from=calendar.clock.now(),
        shut_until=None,
        shut_by="system",
        reason="too many have failed",
    )
    with calendar.store.transaction() as tx:
        gate = shut_gate(tx, new)
    calendar.tick(timedelta(days=8))
    assert calendar.phases() == {"prepare": "dispatched", "cutover": "pending"}
    open_gate(calendar.store, calendar.bus, gate, by="anna", reason="it is understood")
    calendar.scheduler.sweep()
    assert calendar.phases()["cutover"] == "dispatched"
