"""The whole system in one thread: a seed chooses who moves next and what goes wrong."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from random import Random

from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, arm, disarm
from matoolkit.errors import LeaseLost
from matoolkit.simulate.coverage import Coverage
from matoolkit.simulate.crowd import Crowd
from matoolkit.simulate.database import WatchedStore
from matoolkit.simulate.endings import everything_ended
from matoolkit.simulate.faults import Fault, Faults
from matoolkit.simulate.invariants import Violation, Watch, nobody_twice
from matoolkit.simulate.persons import Persons
from matoolkit.simulate.processes import OrchestratorProcess, Plant, SchedulerProcess
from matoolkit.simulate.recording import entries_after
from matoolkit.simulate.runbooks import RunbookWriter
from matoolkit.simulate.trouble import TroubleLog
from matoolkit.simulate.waking import nothing_forgotten
from matoolkit.simulate.workers import ScriptedWorkers

BEGINNING = datetime(2026, 3, 3, 6, 0, tzinfo=UTC)

_CRASHES = {
    Fault.CRASH_BEFORE_COMMIT: ("store.before_commit", "store.before_commit", "consumer.handled"),
    Fault.CRASH_AFTER_COMMIT: ("store.after_commit", "store.after_commit", "bus.received"),
    Fault.CRASH_WHILE_SENDING: ("relay.before_send", "relay.after_send"),
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is played: a seed, how long it goes wrong, with how many people, and without which faults."""

    seed: int
    events: int = 160
    members: int | None = None
    disabled: tuple[Fault, ...] = ()


@dataclass(slots=True)
class Outcome:
    """What came of it."""

    plan: Plan
    events: int
    history: list[str]
    faults: dict[Fault, int]
    moves: set[tuple[str, str, str]]
    violation: str | None

    @property
    def fingerprint(self) -> str:
        """The same for the same history."""
        return blake2b("\n".join(self.history).encode(), digest_size=16).hexdigest()


class World:
    """Schedulers, orchestrators, workers, people, a source and a clock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.clock = VirtualClock(BEGINNING)
        self.history: list[str] = []
        self.events = 0
        self._seen = 0
        self._is_nested = False
        self._interrupted: WatchedStore | None = None
        self.rng = Random(plan.seed)
        rng = self.rng
        self.faults = Faults(rng, self.plan.disabled)
        self.plant = Plant(self.clock, rng, self.faults, is_apart=rng.random() < 0.3)
        self.crowd = Crowd(rng, self.clock.now(), self.plan.members or rng.randint(2, 7))
        writer = RunbookWriter(rng, is_immediate=rng.random() < 0.15)
        self.is_immediate = writer.is_immediate
        self.persons = Persons(self.plant, rng, writer)
        self.workers = ScriptedWorkers(self.plant.plain_bus(), self.clock, rng, self.faults)
        self.bus = self.plant.plain_bus()
        self.schedulers = [self._scheduler(0), self._scheduler(1)]
        self.orchestrators = [self._orchestrator(), self._orchestrator()]
        self.watch = Watch(is_apart=self.plant.is_apart)
        self.coverage = Coverage()

    def run(self) -> Outcome:
        """Play it to the end, and say what came of it."""
        violation = None
        with TroubleLog() as self.trouble:
            try:
                self.persons.begin()
                for _ in range(self.plan.events):
                    self._move()
                self._come_to_rest()
                everything_ended(self)
            except Violation as found:
                violation = str(found)
        faults = {kind: count for kind, count in self.faults.counts.items() if count > 0}
        return Outcome(self.plan, self.events, self.history, faults, self.coverage.taken, violation)

    # Who moves

    def _move(self) -> None:
        moves: list[tuple[int, str, Callable[[], str | None]]] = [
            (7, "tick", self._tick),
            (6, "sweep", self._sweep),
            (20, "events", self._handle_events),
            (20, "results", self._handle_results),
            (5, "look after", self._look_after),
            (12, "take", self._take),
            (22, "answer", self._answer),
            (3, "bus", self._sweep_bus),
            (3, "person", self._person),
            (14, "time", self._time),
            (4, "source", self._source),
            (3, "echo", self._echo),
            (4, "delay", self._delay),
            (2, "jump", self._jump),
        ]
        _, name, act = self.rng.choices(moves, [weight for weight, _, _ in moves])[0]
        self.event(name, act)

    def event(self, name: str, act: Callable[[], str | None]) -> None:
        """Let somebody move, write down what came of it, and look whether all is well."""
        said = act()
        self.events += 1
        entries = entries_after(self.plant.state, self._seen)
        self._seen = entries[-1].seq if entries else self._seen
        line = f"{self.events:>4} {self.clock.now():%d %H:%M:%S} {name}: {said or ''}"
        self.history.append("\n        ".join([line, *map(str, entries)]))
        self.coverage.see(entries, is_person=name == "person")
        self.watch.see(entries)
        self.watch.see_taken(self.workers.taken)
        self.workers.taken.clear()
        self.trouble.check()
        if entries:
            nobody_twice(self.plant.state)
            nothing_forgotten(self.plant.state, self.message_ids())

    def message_ids(self) -> list[str]:
        """Return the ids of all messages that are on their way."""
        found = self.plant.messages.look("SELECT message_id FROM bus_messages")
        found += self.plant.state.look("SELECT message_id FROM outbox") if self.plant.is_apart else []
        return [name for (name,) in found]

    def _tick(self) -> str | None:
        number = self._which(self.schedulers)
        process = self.schedulers[number]

        def tick() -> str:
            tallies = process.scheduler.tick()
            return "another one works" if tallies is None else "; ".join(filter(None, (t.error for t in tallies)))

        return self._as_process(process.store, tick, lambda: self._replace_scheduler(number), Fault.LEASE_LOST)

    def _sweep(self) -> str | None:
        number = self._which(self.schedulers)
        process = self.schedulers[number]
        sweep = lambda: f"{process.scheduler.sweep()} checks"  # noqa: E731
        return self._as_process(process.store, sweep, lambda: self._replace_scheduler(number))

    def _handle_events(self) -> str | None:
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        turn = lambda: f"{process.events.turn()} messages"  # noqa: E731
        return self._as_process(process.store, turn, lambda: self._replace_orchestrator(number))

    def _handle_results(self) -> str | None:
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        turn = lambda: f"{process.results.turn()} messages"  # noqa: E731
        return self._as_process(process.store, turn, lambda: self._replace_orchestrator(number))

    def _look_after(self) -> str | None:
        number = self._which(self.orchestrators)
        process = self.orchestrators[number]
        return self._as_process(process.store, process.orchestrator.sweep, lambda: self._replace_orchestrator(number))

    def _take(self) -> str:
        return self.workers.take()

    def _answer(self) -> str:
        return self.workers.answer()

    def _sweep_bus(self) -> str | None:
        self.bus.sweep()
        for process in self.orchestrators[:1]:
            if process.relay is not None:
                relay = process.relay
                return self._as_process(
                    process.store, lambda: f"{relay.sweep()} relayed", lambda: self._replace_orchestrator(0)
                )
        return None

    def _person(self) -> str | None:
        return self._as_process(self.persons.store, self.persons.act, lambda: None)

    def _source(self) -> str:
        crowd = self.crowd
        crowd.is_down = self.faults.strikes(Fault.SOURCE_DOWN)
        crowd.doubled = set()
        if self.faults.strikes(Fault.DUPLICATE_ROWS):
            crowd.doubled = set(self.rng.sample(sorted(crowd.rows), 1))
        if self.faults.strikes(Fault.BROKEN_VIEW):
            crowd.hidden = set(crowd.rows) if self.rng.random() < 0.5 else set(sorted(crowd.rows)[::2])
            return "the view is broken"
        if len(crowd.hidden) > 1:
            crowd.hidden = set()
            return "the view is mended"
        return crowd.change(self.clock.now())

    def _echo(self) -> str | None:
        message = self.workers.echo()
        if message is None:
            return None
        self.plant.messages.meddle(f"DELETE FROM bus_recent_ids WHERE message_id = '{message.message_id}'")
        self.bus.send([message])
        return f"{message.message_id} again"

    def _delay(self) -> str | None:
        waiting = self.plant.messages.look("SELECT id, message_id FROM bus_messages WHERE lock_token IS NULL ORDER BY id")
        if not waiting or not self.faults.strikes(Fault.DELAYED):
            return None
        number, name = self.rng.choice(waiting)
        until = self.clock.now() + timedelta(seconds=self.rng.choice([20, 400, 4000]))
        stored = until.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        self.plant.messages.meddle(f"UPDATE bus_messages SET visible_at = '{stored}' WHERE id = {number}")
        return f"{name} until {until:%H:%M:%S}"

    # Time

    def _time(self) -> str:
        dice = self.rng.random()
        if dice < 0.5:
            by = timedelta(seconds=self.rng.randint(1, 50))
            self.workers.keep()
        elif dice < 0.75:
            by = timedelta(minutes=self.rng.randint(1, 10))
        else:
            by = min(max(self._next_time() - self.clock.now(), timedelta(seconds=1)), timedelta(hours=12))
        self.clock.advance(by)
        return f"{by} pass"

    def _jump(self) -> str | None:
        if not self.faults.strikes(Fault.CLOCK_JUMP):
            return None
        by = timedelta(seconds=self.rng.choice([-300, -40, 100, 4000, 20_000]))
        self.clock.jump(self.clock.now() + by)
        return f"the clock jumps by {by.total_seconds():.0f} s"

    def _next_time(self) -> datetime:
        """Return when something will be due that is not yet."""
        now = self.clock.now().replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        times = [
            found
            for table, column, status in _TIMES
            for (found,) in self.plant.state.look(
                f"SELECT MIN({column}) FROM {table} WHERE {column} > '{now}' AND status IN ({status})"
            )
        ]
        times += [found for (found,) in self.plant.messages.look(f"SELECT MIN(visible_at) FROM bus_messages WHERE visible_at > '{now}'")]
        ahead = [datetime.fromisoformat(found).replace(tzinfo=UTC) for found in times if found]
        return min(ahead, default=self.clock.now() + timedelta(minutes=5))

    # What goes wrong around a move

    def _as_process(
        self, store: WatchedStore, act: Callable[[], object], replace: Callable[[], None], extra: Fault | None = None
    ) -> str | None:
        """Let a process move; it may die, or others may move between two of its transactions."""
        if self._is_nested:
            return str(act() or "")
        self._interrupted = store
        crash = next((kind for kind in _CRASHES if self._may(kind) and self.faults.strikes(kind)), None)
        if crash is not None:
            return self._dying(crash, act, replace)
        others = next((kind for kind in (extra, Fault.INTERLEAVED) if kind and self.faults.strikes(kind)), None)
        hits = self.rng.randint(1, 6)

        def between() -> None:
            nonlocal hits
            hits -= 1
            if hits == 0:
                self._others_move(is_lease_lost=others is Fault.LEASE_LOST)

        store.between = between if others else None
        try:
            said = act()
        except LeaseLost:
            return "the lease is lost"
        finally:
            store.between = None
        if others and hits > 0:
            self.faults.missed(others)
        return str(said or "")

    def _may(self, kind: Fault) -> bool:
        return kind is not Fault.CRASH_WHILE_SENDING or self.plant.is_apart

    def _dying(self, kind: Fault, act: Callable[[], object], replace: Callable[[], None]) -> str:
        point = self.rng.choice(_CRASHES[kind])
        arm(point, on_hit=self.rng.randint(1, 3))
        try:
            said = act()
        except SimulatedCrash:
            replace()
            return f"dies at {point}"
        except LeaseLost:
            self.faults.missed(kind)
            return "the lease is lost"
        else:
            self.faults.missed(kind)
            return str(said or "")
        finally:
            disarm(point)

    def _others_move(self, *, is_lease_lost: bool = False) -> None:
        """Let others move while somebody is in the middle of something."""
        if self._is_nested:
            return
        self._is_nested = True
        try:
            if is_lease_lost:
                self.clock.advance(timedelta(minutes=2))
                self._nested_tick(self._which(self.schedulers))
            self._handle_events()
            self._handle_results()
            if self.rng.random() < 0.3:
                self._person()
        finally:
            self._is_nested = False

    def _nested_tick(self, number: int) -> None:
        try:
            self.schedulers[number].scheduler.tick()
        except LeaseLost:
            log.info("another scheduler works")

    def _meanwhile(self) -> None:
        """Let the locks of a process that is slow run out, and others get its messages."""
        if not self._is_nested:
            self.clock.advance(timedelta(seconds=70))
        self._others_move()

    def _which(self, processes: Sequence[SchedulerProcess] | Sequence[OrchestratorProcess]) -> int:
        """Choose a process, other than the one that is in the middle of something."""
        free = [number for number, process in enumerate(processes) if process.store is not self._interrupted]
        return self.rng.choice(free)

    def _scheduler(self, number: int) -> SchedulerProcess:
        return SchedulerProcess(self.plant, f"scheduler-{number}", self.crowd)

    def _orchestrator(self) -> OrchestratorProcess:
        return OrchestratorProcess(self.plant, self._meanwhile)

    def _replace_scheduler(self, number: int) -> None:
        self.schedulers[number] = self._scheduler(number)

    def _replace_orchestrator(self, number: int) -> None:
        self.orchestrators[number] = self._orchestrator()

    # The end

    def _come_to_rest(self) -> None:
        """Let nothing go wrong any more, and everybody do what there is to do, until there is nothing."""
        self.faults.are_over = True
        self.crowd.mend()
        self.persons.switch_on()
        for _ in range(_MOST_ROUNDS):
            self._round()
            if self._is_at_rest():
                return
            self.clock.advance(max(self._next_time() - self.clock.now(), timedelta(seconds=1)))
        raise Violation("it does not come to rest")

    def _round(self) -> None:
        self.workers.keep()
        if self.is_immediate:
            self.crowd.rows.clear()
        moves: tuple[tuple[str, Callable[[], str | None]], ...] = (
            ("bus", self._sweep_bus),
            ("person", self.persons.clear_the_way),
            ("tick", self._tick_for_sure),
            ("sweep", self._sweep),
            ("look after", self._look_after),
        )
        for name, act in moves:
            self.event(name, act)
        for _ in range(_MOST_TURNS):
            if not self._has_messages():
                return
            self.event("events", self._handle_events)
            self.event("results", self._handle_results)
            self.event("take", self._take)
            while self.workers.held:
                self.event("answer", self._answer)
        raise Violation(f"messages that nobody is ever done with: {self.message_ids()}")

    def _tick_for_sure(self) -> str | None:
        """Tick until a scheduler has the lease that another one may have left."""
        for number in range(len(self.schedulers)):
            if self.schedulers[number].scheduler.tick() is not None:
                return f"scheduler-{number}"
        self.clock.advance(timedelta(seconds=91))
        return self._tick()

    def _has_messages(self) -> bool:
        now = self.clock.now().replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return bool(self.plant.messages.look(f"SELECT 1 FROM bus_messages WHERE visible_at <= '{now}' LIMIT 1"))

    def _is_at_rest(self) -> bool:
        waiting = self.plant.state.look(_UNFINISHED)
        return not waiting and not self.message_ids() and not self.workers.held


_MOST_ROUNDS = 60
_MOST_TURNS = 200
_OPEN = "'pending', 'dispatched', 'polling'"
_ANY = f"{_OPEN}, 'cancelled', 'failed', 'poll_timeout', 'succeeded'"
_TIMES = [
    ("phase_executions", "due_at", "'pending'"),
    *((table, "lost_at", _ANY) for table in ("step_executions", "init_executions", "rollback_executions")),
    *((table, "retry_after", "'pending'") for table in ("step_executions", "init_executions", "rollback_executions")),
    *((table, "poll_due_at", "'polling'") for table in ("step_executions", "init_executions", "rollback_executions")),
]
_UNFINISHED = f"""
SELECT id FROM batches WHERE status IN ('detected', 'init_dispatched', 'active')
UNION ALL SELECT id FROM step_executions WHERE lost_at IS NOT NULL
UNION ALL SELECT id FROM init_executions WHERE lost_at IS NOT NULL
UNION ALL SELECT id FROM rollback_executions WHERE lost_at IS NOT NULL OR status IN ({_OPEN})
"""
