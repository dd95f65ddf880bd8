"""The end of a play: no more faults, and everybody works until nothing is left to do."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.timing import Due, next_time

if TYPE_CHECKING:
    from matoolkit.simulate.world import World

_MOST_ROUNDS = 80
_MOST_TURNS = 200
_UNFINISHED = """
SELECT 'batch', id FROM batches WHERE status IN ('detected', 'init_dispatched', 'active')
UNION ALL SELECT 'step', id FROM step_executions WHERE lost_at IS NOT NULL
UNION ALL SELECT 'init', id FROM init_executions WHERE lost_at IS NOT NULL
UNION ALL SELECT 'rollback', id FROM rollback_executions WHERE lost_at IS NOT NULL
          OR status IN ('pending', 'dispatched', 'polling')
UNION ALL SELECT 'undone member', id FROM batch_members WHERE undone_at IS NOT NULL AND seen_off_at IS NULL
"""


def come_to_rest(world: World) -> None:
    """Let the system finish everything, or say what it cannot finish."""
    world.faults.are_over = True
    world.crowd.mend()
    world.persons.switch_on()
    if world.is_immediate:
        # Otherwise the people in the source would be taken again every day.
        world.crowd.rows.clear()
    for _ in range(_MOST_ROUNDS):
        _round(world)
        if not world.plant.state.look(_UNFINISHED) and not world.message_ids():
            return
        # People sign just in time, so that nothing old is used in place of it, and what they signed begins at once.
        world.event("person", world.persons.sign_everything)
        ahead = world.clock.now() if world.persons.have_signed else next_time(world.plant)
        world.clock.advance(max(ahead - world.clock.now(), timedelta(seconds=1)))
    raise Violation(f"it never ends: {world.plant.state.look(_UNFINISHED)}, {world.message_ids()}")


def _round(world: World) -> None:
    """Let everybody move once, then the processes with messages until none is left."""
    world.workers.keep()
    world.event("bus", world.sweep_bus)
    if world.plant.is_apart:
        world.event("drain", world.drain)
    world.event("person", world.persons.clear_the_way)
    world.event("tick", lambda: _tick_for_sure(world))
    world.event("sweep", world.sweep)
    world.event("look after", world.look_after)
    for _ in range(_MOST_TURNS):
        while world.workers.held:
            world.event("answer", world.workers.answer)
        due = Due(world.plant)
        if not due:
            world.explain()
            return
        if due.events:
            world.event("events", world.handle_events)
        if due.results:
            world.event("results", world.handle_results)
        if due.jobs:
            world.event("take", world.workers.take)
    raise Violation(f"messages that are never settled: {world.message_ids()}")


def _tick_for_sure(world: World) -> str:
    """Tick with the scheduler that has the lease; a dead one may still hold it."""
    for number, process in enumerate(world.schedulers):
        if process.scheduler.tick() is not None:
            return f"scheduler-{number}"
    world.clock.advance(timedelta(seconds=91))
    return world.tick()
