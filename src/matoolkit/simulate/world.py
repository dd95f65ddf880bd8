"""The whole system in one thread: a seed chooses who acts next and what goes wrong."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

from matoolkit.clock import VirtualClock
from matoolkit.simulate.accidents import Accidents
from matoolkit.simulate.answers import answers_are_true
from matoolkit.simulate.catalogue import Announcements
from matoolkit.simulate.coverage import Coverage
from matoolkit.simulate.crowd import Crowd
from matoolkit.simulate.doors import Doors
from matoolkit.simulate.endings import everything_ended
from matoolkit.simulate.explained import everything_is_explained
from matoolkit.simulate.faults import Fault, Faults
from matoolkit.simulate.invariants import Violation, Watch, counts_agree, nobody_twice, outputs_are_found
from matoolkit.simulate.jobs import Jobs
from matoolkit.simulate.patience import polls_have_their_time
from matoolkit.simulate.persons import Persons
from matoolkit.simulate.plans import Outcome, Plan
from matoolkit.simulate.processes import OrchestratorProcess, Plant, SchedulerProcess
from matoolkit.simulate.recording import entries_after
from matoolkit.simulate.rest import come_to_rest
from matoolkit.simulate.roll import Roll
from matoolkit.simulate.runbooks import RunbookWriter
from matoolkit.simulate.safeguards import Removals
from matoolkit.simulate.takenback import jobs_are_taken_back
from matoolkit.simulate.timing import Due, next_time
from matoolkit.simulate.trouble import TroubleLog
from matoolkit.simulate.versions import versions_are_followed
from matoolkit.simulate.waking import nothing_forgotten
from matoolkit.simulate.workers import ScriptedWorkers
from matoolkit.store.dialect.types import stored_text

BEGINNING = datetime(2026, 3, 3, 6, 0, tzinfo=UTC)
# Days before some clock is put back or forward: windows are as short as they get then (rule K3).
_BEFORE_CHANGES = (
    (datetime(2026, 3, 7, 20, 0, tzinfo=UTC), "America/New_York"),
    (datetime(2026, 3, 28, 18, 0, tzinfo=UTC), "Europe/Berlin"),
    (datetime(2026, 4, 4, 6, 0, tzinfo=UTC), "Australia/Lord_Howe"),
    (datetime(2026, 10, 24, 18, 0, tzinfo=UTC), "Europe/Berlin"),
    (datetime(2026, 10, 31, 18, 0, tzinfo=UTC), "America/New_York"),
)

# Explaining costs half as much as everything else, so after most events nobody asks.
_EXPLAINED_EVERY = 4
# How often people take up again what is over.
_SECOND_WIND, _LIMITED_WIND = 0.3, 0.6

Act = Callable[[], str | None]


def beginning(plan: Plan) -> tuple[datetime, str | None]:
    """Return when a play begins: with gates, in most cases before clocks are changed, and in which zone they are."""
    days = ((BEGINNING, "UTC"), *_BEFORE_CHANGES)
    return days[plan.seed // 5 % len(days)] if plan.gates else (BEGINNING, None)


# For whom something runs, in batches that people may still leave.
_BUSY = """
SELECT m.member_key FROM batch_members m JOIN sim_batches b ON b.id = m.batch_id
WHERE b.batch_start_time > '{now}' AND NOT b.is_held AND (EXISTS
  (SELECT 1 FROM step_executions s WHERE s.batch_member_id = m.id
   AND (s.lost_at IS NOT NULL OR s.retry_after IS NOT NULL OR s.poll_due_at IS NOT NULL))
  OR EXISTS (SELECT 1 FROM rollback_executions r WHERE r.batch_member_id = m.id AND r.lost_at IS NOT NULL))
ORDER BY m.id
"""
_MISSED = "SELECT 1 FROM batch_members WHERE member_key = '{key}' AND status = 'removed' LIMIT 1"

# Waves that people have signed something off for which has yet to begin.
_SIGNED = """
SELECT DISTINCT b.batch_start_time FROM approvals a JOIN batches b ON b.id = a.batch_id
WHERE a.used_at IS NULL AND a.withdrawn_at IS NULL AND a.batch_start_time = b.batch_start_time AND b.status = 'active'
"""
_FAILED = "SELECT DISTINCT member_key FROM batch_members WHERE status = 'failed' ORDER BY id"


class World:
    """Schedulers, orchestrators, workers, people, a source and a clock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        begins, zone = beginning(plan)
        self.clock = VirtualClock(begins)
        self.rng = rng = Random(plan.seed)
        self.faults = Faults(rng, plan.disabled, is_apart=plan.is_apart)
        self.plant = Plant(self.clock, rng, self.faults, is_apart=rng.random() < 0.3 or plan.is_apart)
        # With gates there are fewer waves with more people, so that some wait for others.
        people, waves = plan.members or rng.randint(3, 9), 3
        if plan.gates:
            people, waves = plan.members or rng.randint(5, 9), 2
        self.crowd = Crowd(rng, self.clock.now(), people, waves)
        self.is_immediate = rng.random() < 0.15
        writer = RunbookWriter(rng, is_immediate=self.is_immediate, zone=zone)
        self.persons = Persons(self.plant, rng, writer, undoes=plan.undoes, pauses=plan.pauses, gates=plan.gates)
        self.accidents = Accidents(self.plant, rng, self._others_act)
        self.bus = self.plant.plain_bus()
        self.workers = ScriptedWorkers(self.bus, self.clock, rng, self.faults)
        self.announcements = Announcements(self.plant.state, rng)
        self.schedulers = [self._scheduler(0), self._scheduler(1)]
        self.orchestrators = [self._orchestrator(), self._orchestrator()]
        self.watch = Watch(is_apart=self.plant.is_apart)
        self.jobs = Jobs(self.plant)
        self.removals = Removals(self.plant)
        self.roll = Roll(self.plant, is_immediate=self.is_immediate)
        self.doors = Doors(self.plant.state, self.clock)
        self.coverage = Coverage()
        self.trouble = TroubleLog()
        self.history: list[str] = []
        self._seen = 0
        self._reader = self.plant.state.open(self.clock)
        self._interfered = self._has_news = False

    def run(self) -> Outcome:
        """Play it to the end, and say what came of it."""
        violation = None
        with self.trouble:
            try:
                self.persons.begin()
                for _ in range(self.plan.events):
                    self._next_turn()
                come_to_rest(self)
                everything_ended(self)
                if self.rng.random() < (_LIMITED_WIND if self.plan.gates else _SECOND_WIND):
                    self.event("person", self.persons.try_everything_again)
                    come_to_rest(self)
                    everything_ended(self)
            except Violation as found:
                violation = str(found)
        faults = {kind: count for kind, count in self.faults.counts.items() if count > 0}
        return Outcome(self.plan, len(self.history), self.history, faults, self.coverage.met, violation)

    def event(self, name: str, act: Act) -> None:
        """Let somebody act, write down what came of it, and look whether all is well."""
        said = act()
        entries = entries_after(self.plant.state, self._seen)
        self._seen = entries[-1].seq if entries else self._seen
        line = f"{len(self.history) + 1:>4} {self.clock.now():%d %H:%M:%S} {name}: {said or ''}"
        self.history.append("\n        ".join([line, *map(str, entries)]))
        self.coverage.see(entries, by_person=name == "person", by_both=self._interfered)
        self._interfered = False
        self.watch.see(entries)
        self.roll.see(entries)
        self.watch.see_taken(self.workers.taken)
        message_ids = self.message_ids()
        self.jobs.see(entries, self.workers.taken, message_ids)
        self.workers.taken.clear()
        self.trouble.check()
        self.plant.mail.check(entries)
        self.announcements.check(entries)
        if self.plant.trespasses:
            raise Violation(self.plant.trespasses[0])
        if entries:
            self.removals.see(entries)
            versions_are_followed(entries)
            polls_have_their_time(entries, self.plant.state)
            answers_are_true(entries, self.workers.said, self.plant)
            nobody_twice(self.plant.state)
            counts_agree(self.plant.state)
            outputs_are_found(self.plant.state, entries)
            self.doors.see(entries)
            jobs_are_taken_back(self.plant, entries)
            nothing_forgotten(self.plant.state, message_ids, self.doors)
            if len(self.history) % _EXPLAINED_EVERY == 0:
                self.explain()

    def explain(self) -> None:
        """Demand that the system can say for what everything waits that is open."""
        everything_is_explained(self._reader, self.message_ids())

    def message_ids(self) -> list[str]:
        """Return the ids of all messages that are on their way."""
        found = self.plant.messages.look("SELECT message_id FROM bus_messages")
        found += self.plant.state.look("SELECT message_id FROM outbox") if self.plant.is_apart else []
        return [name for (name,) in found]

    def _next_turn(self) -> None:
        due = Due(self.plant)
        self.crowd.is_missed = bool(self.plant.state.look(_MISSED.format(key=self.crowd.mistaken)))
        turns: list[tuple[int, str, Act]] = [
            # A change in the source is seen soon, while jobs and messages of the members concerned are still out.
            (60 if self._has_news else 4, "tick", self.tick),
            (5, "sweep", self.sweep),
            (12 if due.events else 0, "events", self.handle_events),
            (12 if due.results else 0, "results", self.handle_results),
            (4, "look after", self.look_after),
            (15 if due.jobs else 0, "take", self.workers.take),
            (20 if self.workers.held else 0, "answer", self.workers.answer),
            (3, "bus", self.sweep_bus),
            # Where much waits for people, they come more often.
            (12 if self.plan.gates else 5, "person", self._person),
            (12, "time", self._time),
            (60 if self.crowd.is_missed else 8, "source", self._source),
            (4 if self.workers.echoes else 0, "echo", self._echo),
            (8 if due else 0, "delay", self._delay),
            (2, "jump", self._jump),
            (3 if self.plan.is_apart else 0, "hello", self._hello),
            (3 if self.plan.is_apart else 0, "drain", self.drain),
        ]
        _, name, act = self.rng.choices(turns, [weight for weight, _, _ in turns])[0]
        self.event(name, act)

    # Processes

    def tick(self) -> str:
        """Let a scheduler tick."""
        number = self._which(self.schedulers)
        process = self.schedulers[number]

        def tick() -> str:
            tallies = process.scheduler.tick()
            self._has_news = self._has_news and (tallies is None or self.crowd.is_down)
            return "another one works" if tallies is None else "; ".join(filter(None, (one.error for one in tallies)))

        replace = partial(self._replace_scheduler, number)
        return self.accidents.turn(process.store, tick, replace, may_lose_lease=True)

    def sweep(self) -> str:
        """Let a scheduler sweep."""
        number = self._which(self.schedulers)
        process = self.schedulers[number]
        return self.accidents.turn(process.store, process.scheduler.sweep, partial(self._replace_scheduler, number))

    def handle_events(self) -> str:
        """Let an orchestrator handle a pile of events."""
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        return self.accidents.turn(process.store, process.events.turn, partial(self._replace_orchestrator, number))

    def handle_results(self) -> str:
        """Let an orchestrator handle a pile of results."""
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        return self.accidents.turn(process.store, process.results.turn, partial(self._replace_orchestrator, number))

    def look_after(self) -> str:
        """Let an orchestrator look for what is lost or over."""
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        sweep = process.orchestrator.sweep
        return self.accidents.turn(process.store, sweep, partial(self._replace_orchestrator, number))

    def sweep_bus(self) -> str:
        """Let the bus sweep, and a relay send what others left behind."""
        self.bus.sweep()
        if self.plan.is_apart:
            # Dropping duplicates is a help, not the guarantee.
            self.plant.messages.meddle("DELETE FROM bus_recent_ids")
        process = self.orchestrators[0]
        if process.relay is None:
            return ""
        return self.accidents.turn(process.store, process.relay.sweep, partial(self._replace_orchestrator, 0))

    def drain(self) -> str:
        """Let an orchestrator keep the dead letters of a bus that is apart."""
        process = self.orchestrators[0]
        if process.drain is None:
            return ""
        return self.accidents.turn(process.store, process.drain.sweep, partial(self._replace_orchestrator, 0))

    def _person(self) -> str:
        return self.accidents.turn(self.persons.store, self.persons.act, lambda: None)

    def _others_act(self, is_lease_lost: bool) -> None:
        """Let others act while somebody is in the middle of something."""
        self._interfered = True
        if is_lease_lost:
            self._source()
            self.tick()
        self.handle_events()
        self.handle_results()
        if self.rng.random() < 0.3:
            self._person()

    def _which(self, processes: Sequence[SchedulerProcess | OrchestratorProcess]) -> int:
        """Choose a process, other than the one that is in the middle of something."""
        free = [number for number, one in enumerate(processes) if one.store is not self.accidents.interrupted]
        return self.rng.choice(free)

    def _scheduler(self, number: int) -> SchedulerProcess:
        return SchedulerProcess(self.plant, f"scheduler-{number}", self.crowd)

    def _orchestrator(self) -> OrchestratorProcess:
        return OrchestratorProcess(self.plant, self.accidents.slow_down)

    def _replace_scheduler(self, number: int) -> None:
        self.schedulers[number] = self._scheduler(number)

    def _replace_orchestrator(self, number: int) -> None:
        self.orchestrators[number] = self._orchestrator()

    # Surroundings

    def _source(self) -> str:
        crowd, self._has_news = self.crowd, True
        crowd.is_down = self.faults.strikes(Fault.SOURCE_DOWN)
        crowd.doubled = set()
        if self.faults.strikes(Fault.DUPLICATE_ROWS):
            crowd.doubled = {self.rng.choice(sorted(crowd.rows))}
        if self.faults.strikes(Fault.BROKEN_VIEW):
            crowd.hidden = set(crowd.rows) if self.rng.random() < 0.5 else set(sorted(crowd.rows)[::2])
            return "the view is broken"
        if len(crowd.hidden) > 1 and self.rng.random() < 0.4:
            crowd.hidden = set()
            return "the view is fixed"
        crowd.signed = [_instant(start) for (start,) in self.plant.state.look(_SIGNED)]
        crowd.failed = [key for (key,) in self.plant.state.look(_FAILED)]
        crowd.busy = [key for (key,) in self.plant.state.look(_BUSY.format(now=stored_text(self.clock.now())))]
        return crowd.change(self.clock.now())

    def _echo(self) -> str | None:
        message = self.workers.echo()
        if message is None:
            return None
        self.plant.messages.meddle(f"DELETE FROM bus_recent_ids WHERE message_id = '{message.message_id}'")
        self.bus.send([message])
        return f"{message.message_id} again"

    def _hello(self) -> str:
        message = self.announcements.announce()
        self.bus.send([message])
        return message.message_id

    def _delay(self) -> str | None:
        waiting = self.plant.messages.look(
            "SELECT id, message_id FROM bus_messages WHERE lock_token IS NULL ORDER BY id"
        )
        if not waiting or not self.faults.strikes(Fault.DELAYED):
            return None
        # News of who left hurts most when it comes late.
        leavers = [message for message in waiting if message[1].startswith("member-removed-")]
        number, name = self.rng.choice(leavers or waiting)
        until = self.clock.now() + timedelta(seconds=self.rng.choice([20, 400, 4000]))
        self.plant.messages.meddle(f"UPDATE bus_messages SET visible_at = '{stored_text(until)}' WHERE id = {number}")
        return f"{name} until {until:%H:%M:%S}"

    def _time(self) -> str:
        dice = self.rng.random()
        if dice < 0.4:
            by = timedelta(seconds=self.rng.randint(1, 50))
            self.workers.keep()
        elif dice < 0.6:
            by = timedelta(minutes=self.rng.randint(1, 10))
        else:
            by = min(max(next_time(self.plant) - self.clock.now(), timedelta(seconds=1)), timedelta(hours=12))
        self.clock.advance(by)
        return f"{by} pass"

    def _jump(self) -> str | None:
        if not self.faults.strikes(Fault.CLOCK_JUMP):
            return None
        by = timedelta(seconds=self.rng.choice([-300, -40, 100, 4000, 20_000]))
        self.clock.jump(self.clock.now() + by)
        return f"the clock jumps by {by.total_seconds():.0f} s"


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
