"""Rules V2 to V6: batches in flight take the new version of their runbook."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import orjson
import pytest
from sqlalchemy import event

from matoolkit.bus.sql import SqlBus
from matoolkit.bus.topology import jobs_of_worker
from matoolkit.clock import VirtualClock
from matoolkit.crashpoints import SimulatedCrash, crashing
from matoolkit.domain.gates import GateKind
from matoolkit.domain.moves import batch as batch_moves
from matoolkit.domain.moves import phase as phase_moves
from matoolkit.domain.moves.step import PollLater
from matoolkit.domain.states import BatchStatus, MemberStatus, OverdueBehavior, PhaseStatus, StepStatus
from matoolkit.errors import LeaseLost
from matoolkit.ids import Kind
from matoolkit.scheduler.transitions import SLICE, TransitionCounts
from matoolkit.store import Store, Transaction
from matoolkit.store.batches import move_batches, reopen_batches, reopen_inits
from matoolkit.store.executions import polls_due
from matoolkit.store.holds import Hold, hold_batches, release_batches
from matoolkit.store.members import MemberAt, fail_members, members_by_id
from matoolkit.store.moves import move_steps
from matoolkit.store.phases import move_phases, reopen_phases, skip_phases
from tests.databases import Database
from tests.documents import document
from tests.scheduler.flight import Flight

IGNORE = OverdueBehavior.IGNORE
PENDING, DISPATCHED, SKIPPED, SUPERSEDED = (
    PhaseStatus.PENDING,
    PhaseStatus.DISPATCHED,
    PhaseStatus.SKIPPED,
    PhaseStatus.SUPERSEDED,
)
FIRST = document()
SECOND = document({"prepare": "T-5d", "stage": "T-1d", "cutover": "T-0"}, remark="second")
THIRD = document({"prepare": "T-5d", "cutover": "T-0"}, remark="third")


@pytest.fixture
def flight(store: Store, clock: VirtualClock) -> Flight:
    made = Flight(store, SqlBus(store), clock)
    made.publish(FIRST)
    return made


def test_v3_rerun_supersedes_what_is_unfinished_cancels_its_steps_and_creates_everything_anew(flight: Flight) -> None:
    batch = flight.batch()
    steps = flight.begin([batch], "prepare", members=2)
    flight.publish(SECOND)
    counts = flight.tick()
    assert flight.now(batch).runbook_id == flight.version().id
    assert flight.phases(batch) == [
        (1, "prepare", SUPERSEDED),
        (1, "cutover", SUPERSEDED),
        (1, "verify", SUPERSEDED),
        (2, "prepare", PENDING),
        (2, "stage", PENDING),
        (2, "cutover", PENDING),
    ]
    due = [one.due_at - batch.batch_start_time for one in flight.phase_rows(batch)[3:]]  # type: ignore[operator]
    assert due == [timedelta(days=-5), timedelta(days=-1), timedelta()]
    assert {step.status for step in flight.steps(steps)} == {StepStatus.CANCELLED}
    assert counts == TransitionCounts(batches=1, phases_created=3, phases_superseded=3, steps_cancelled=2)


def test_v3_what_has_ended_under_the_old_version_stays_and_runs_again_under_the_new_one(flight: Flight) -> None:
    batch = flight.batch()
    flight.begin([batch], "prepare")
    with flight.store.transaction() as tx:
        move_phases(tx, phase_moves.COMPLETE, [flight.phase_rows(batch)[0].id], flight.clock.now())
    flight.publish(SECOND)
    flight.tick()
    assert flight.phases(batch)[0] == (1, "prepare", PhaseStatus.COMPLETED)
    assert flight.phases(batch)[3] == (2, "prepare", PENDING)


def test_o5_a_job_that_no_worker_has_seen_is_taken_back_and_one_that_is_out_is_waited_for(flight: Flight) -> None:
    first, second = flight.begin([flight.batch()], "prepare", members=2)
    (out,) = flight.bus.receive(jobs_of_worker("worker-01"), 1)
    assert out.message_id == f"step-{first}-attempt-1"
    flight.publish(SECOND)
    flight.tick()
    seen, unseen = flight.steps([first, second])
    assert (seen.status, seen.is_in_flight) == (StepStatus.CANCELLED, True)
    assert (unseen.status, unseen.is_in_flight) == (StepStatus.CANCELLED, False)
    assert flight.bus.receive(jobs_of_worker("worker-01"), 1) == []


def test_v4_ignore_skips_what_is_past_due_and_lets_running_phases_finish(flight: Flight) -> None:
    batch = flight.batch()
    (step,) = flight.begin([batch], "prepare")
    flight.publish(SECOND, overdue_behavior=IGNORE)
    counts = flight.tick()
    assert flight.phases(batch) == [
        (1, "prepare", DISPATCHED),
        (1, "cutover", SUPERSEDED),
        (1, "verify", SUPERSEDED),
        (2, "prepare", SKIPPED),
        (2, "stage", PENDING),
        (2, "cutover", PENDING),
    ]
    assert flight.phase_rows(batch)[3].completed_at == flight.clock.now()
    assert flight.steps([step])[0].status is StepStatus.DISPATCHED
    assert (counts.phases_skipped, counts.steps_cancelled) == (1, 0)


def test_v6_publishing_does_not_stop_the_polls_of_phases_that_go_on(flight: Flight) -> None:
    (step,) = flight.begin([flight.batch()], "prepare")
    due = flight.clock.now() + timedelta(minutes=1)
    with flight.store.transaction() as tx:
        answer = PollLater(step, f"step-{step}-attempt-1", "{}", due)
        assert move_steps(tx, Kind.STEP, [answer], flight.clock.now()) == [step]
    before = flight.steps([step])
    flight.publish(SECOND, overdue_behavior=IGNORE)
    flight.tick()
    assert flight.steps([step]) == before
    with flight.store.reading() as tx:
        assert [one.id for one in polls_due(tx, Kind.STEP, due)] == [step]


def test_v2_a_version_that_was_never_taken_is_passed_over(flight: Flight) -> None:
    batch = flight.batch()
    flight.begin([batch], "prepare")
    flight.publish(SECOND, overdue_behavior=IGNORE)
    flight.publish(THIRD)
    flight.tick()
    assert flight.phases(batch) == [
        (1, "prepare", SUPERSEDED),
        (1, "cutover", SUPERSEDED),
        (1, "verify", SUPERSEDED),
        (3, "prepare", PENDING),
        (3, "cutover", PENDING),
    ]


def test_v3_a_phase_that_ran_on_through_one_version_is_superseded_by_the_next(flight: Flight) -> None:
    batch = flight.batch()
    (step,) = flight.begin([batch], "prepare")
    flight.publish(SECOND, overdue_behavior=IGNORE)
    flight.tick()
    flight.publish(THIRD)
    flight.tick()
    assert flight.phases(batch) == [
        (1, "prepare", SUPERSEDED),
        (1, "cutover", SUPERSEDED),
        (1, "verify", SUPERSEDED),
        (2, "prepare", SKIPPED),
        (2, "stage", SUPERSEDED),
        (2, "cutover", SUPERSEDED),
        (3, "prepare", PENDING),
        (3, "cutover", PENDING),
    ]
    assert flight.steps([step])[0].status is StepStatus.CANCELLED


@pytest.mark.parametrize(("overdue", "status"), [(OverdueBehavior.RERUN, PENDING), (IGNORE, SKIPPED)])
def test_v3_v4_after_t_what_has_begun_runs_again_or_is_skipped(
    flight: Flight, overdue: OverdueBehavior, status: PhaseStatus
) -> None:
    batch = flight.batch()
    flight.begin([batch], "prepare")
    flight.begin([batch], "cutover")
    flight.clock.advance(timedelta(days=30))
    flight.publish(SECOND, overdue_behavior=overdue)
    flight.tick()
    assert [one for version, _, one in flight.phases(batch) if version == 2] == [status] * 3


def test_v4_a_batch_that_waits_for_its_init_loses_no_phase_to_ignore(flight: Flight) -> None:
    batch = flight.batch(BatchStatus.INIT_DISPATCHED)
    flight.publish(SECOND, overdue_behavior=IGNORE)
    counts = flight.tick()
    assert counts.phases_skipped == 0
    assert [one for one in flight.phases(batch) if one[0] == 2] == [
        (2, "prepare", PENDING),
        (2, "stage", PENDING),
        (2, "cutover", PENDING),
    ]
    assert flight.phase_rows(batch)[3].completed_at is None


def test_v4_a_phase_that_was_opened_for_a_late_joiner_has_begun(flight: Flight) -> None:
    batch = flight.batch()
    prepare = [flight.phase_rows(batch)[0].id]
    with flight.store.transaction() as tx:
        assert skip_phases(tx, prepare, flight.clock.now()) == prepare
        assert reopen_phases(tx, prepare, flight.clock.now()) == prepare
    flight.publish(SECOND)
    flight.tick()
    assert flight.phases(batch)[0] == (1, "prepare", SUPERSEDED)
    flight.publish(THIRD, overdue_behavior=IGNORE)
    flight.tick()
    assert [one for one in flight.phases(batch) if one[0] == 3] == [(3, "prepare", SKIPPED), (3, "cutover", PENDING)]


def test_t6_a_held_batch_takes_the_version_after_its_release(flight: Flight) -> None:
    held, free = flight.batches(2)
    flight.begin([held], "prepare")
    with flight.store.transaction() as tx:
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "too many left", "k", "{}")], flight.clock.now())
    flight.publish(SECOND, overdue_behavior=IGNORE)
    counts = flight.tick()
    assert (counts.batches, counts.batches_waiting) == (1, 1)
    assert flight.now(free).runbook_id == flight.version().id != flight.now(held).runbook_id
    assert [one for _, _, one in flight.phases(held)] == [DISPATCHED, PENDING, PENDING]
    assert not flight.version().ignore_overdue_applied
    with flight.store.transaction() as tx:
        release_batches(tx, [held.id], flight.clock.now())
    assert flight.tick().batches == 1
    assert flight.phases(held)[3] == (2, "prepare", SKIPPED)
    assert flight.version().ignore_overdue_applied


def test_t6_a_batch_that_is_held_at_the_last_moment_waits_too(flight: Flight) -> None:
    batch = flight.batch()
    flight.publish(SECOND, overdue_behavior=IGNORE)

    def hold(tx: Transaction) -> None:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "too many left", "k", "{}")], flight.clock.now())

    assert flight.tick(hold) == TransitionCounts(batches_waiting=1)
    assert flight.now(batch).runbook_id == batch.runbook_id
    assert not flight.version().ignore_overdue_applied


def test_t6_a_held_batch_costs_no_transaction(flight: Flight) -> None:
    batch = flight.batch()
    with flight.store.transaction() as tx:
        hold_batches(tx, [Hold(batch.id, GateKind.REMOVALS, "too many left", "k", "{}")], flight.clock.now())
    flight.publish(SECOND)

    def refuse(tx: Transaction) -> None:
        raise LeaseLost("scheduler", "me")

    assert flight.tick(refuse) == TransitionCounts(batches_waiting=1)


def test_m5_batches_are_locked_before_anything_about_them_is_read(
    flight: Flight, database: Database, statements: Callable[[], list[str]]
) -> None:
    flight.batch()
    flight.publish(SECOND)
    row = flight.version()
    statements()
    sent: list[str] = []
    flight.tick(lambda _: sent.extend(statements()), row)
    about = [one for one in sent if "FROM batches" in one or "FROM phase_executions" in one]
    # SQLite has one writer at a time, so that its rows need no lock.
    assert ("FOR UPDATE" in about[1]) == (database.kind == "postgresql")
    assert "FROM batches" in about[1]
    assert "FROM phase_executions" in about[3]


def test_v1_a_phase_that_was_interrupted_counts_as_begun(flight: Flight) -> None:
    batch = flight.batch()
    flight.begin([batch], "prepare")
    flight.publish(SECOND)
    flight.tick()
    planned = flight.publish(THIRD, dry_run=True)
    assert [one.name for one in planned.impacts[0].transition.repeated] == ["prepare"]


def test_v2_v6_manual_reopened_and_ended_batches_keep_their_version(flight: Flight) -> None:
    manual = flight.batch(manual=True)
    reopened, ended = flight.batches(2)
    with flight.store.transaction() as tx:
        move_batches(tx, batch_moves.FAIL, [reopened.id, ended.id], flight.clock.now())
        reopen_batches(tx, [reopened.id], flight.clock.now())
    before = flight.state()
    flight.publish(SECOND, rerun_init=True)
    assert flight.tick() == TransitionCounts()
    assert flight.state()[:5] == before[:5]
    assert flight.version().ignore_overdue_applied
    assert flight.now(manual).runbook_id != flight.version().id


def test_v3_failed_members_stay_failed(flight: Flight) -> None:
    (step,) = flight.begin([flight.batch()], "prepare")
    (row,) = flight.steps([step])
    with flight.store.transaction() as tx:
        fail_members(tx, [MemberAt(row.batch_member_id, 1)], flight.clock.now())
    flight.publish(SECOND, rerun_init=True)
    flight.tick()
    with flight.store.reading() as tx:
        (member,) = members_by_id(tx, [row.batch_member_id])
    assert (member.status, member.epoch) == (MemberStatus.FAILED, 1)


def test_v5_init_runs_again_under_the_new_version_and_what_is_open_of_the_old_one_is_cancelled(flight: Flight) -> None:
    flight.publish(document(init=True))
    starting = flight.batch(BatchStatus.INIT_DISPATCHED)
    running = flight.batch(days=4)
    flight.begin_init(starting, version=2)
    flight.publish(document(init=True, remark="third"), rerun_init=True)
    assert flight.tick().inits_requested == 2
    (old,) = flight.inits(starting)
    assert (old.status, old.is_in_flight) == (StepStatus.CANCELLED, False)
    assert flight.bus.receive(jobs_of_worker("worker-01"), 1) == []
    for batch, count in ((starting, 2), (running, 1)):
        now = flight.now(batch)
        assert (now.status, now.init_count, now.init_dispatched_at) == (
            BatchStatus.INIT_DISPATCHED,
            count,
            flight.clock.now(),
        )
    told = flight.events()
    assert [message_id for message_id, _ in told] == [
        f"batch-init-{starting.id}-v3-2",
        f"batch-init-{running.id}-v3-1",
    ]
    assert orjson.loads(told[0][1])["RunbookVersion"] == 3


def test_v5_a_version_without_init_lets_a_batch_begin_that_waited_for_the_old_one(flight: Flight) -> None:
    flight.publish(document(init=True))
    starting = flight.batch(BatchStatus.INIT_DISPATCHED)
    flight.begin_init(starting, version=2)
    flight.publish(SECOND, rerun_init=True)
    assert flight.tick().inits_requested == 0
    assert flight.now(starting).status is BatchStatus.ACTIVE
    assert flight.inits(starting)[0].status is StepStatus.CANCELLED
    assert flight.events() == []


@pytest.mark.parametrize("content", [SECOND, document(init=True, remark="third")])
def test_v5_unless_asked_for_init_counts_as_done_and_an_unfinished_one_goes_on(flight: Flight, content: str) -> None:
    flight.publish(document(init=True))
    starting = flight.batch(BatchStatus.INIT_DISPATCHED)
    running = flight.batch(days=4)
    flight.begin_init(starting, version=2)
    before = flight.inits(starting)
    flight.publish(content)
    flight.tick()
    assert flight.inits(starting) == before
    assert flight.now(starting).status is BatchStatus.INIT_DISPATCHED
    assert flight.now(running).status is BatchStatus.ACTIVE
    assert flight.events() == []


def test_v4_ignore_is_for_the_transition_after_its_publication_only(flight: Flight) -> None:
    late = flight.batch()
    with flight.store.transaction() as tx:
        move_batches(tx, batch_moves.FAIL, [late.id], flight.clock.now())
    flight.publish(SECOND, overdue_behavior=IGNORE)
    flight.tick()
    assert flight.version().ignore_overdue_applied
    # A batch that failed in init, and that a person retries after that, begins from the start.
    with flight.store.transaction() as tx:
        reopen_inits(tx, [late.id])
    flight.tick()
    assert flight.phases(late)[3] == (2, "prepare", PENDING)


def test_t10_doing_it_twice_changes_nothing(flight: Flight, statements: Callable[[], list[str]]) -> None:
    flight.publish(document(init=True))
    flight.begin(flight.batches(3), "prepare")
    flight.publish(document(init=True, remark="third"), rerun_init=True)
    flight.tick()
    before = flight.state()
    statements()
    assert flight.tick() == TransitionCounts()
    assert len([one for one in statements() if not one.startswith("SELECT")]) == 0
    assert flight.state() == before


def test_t10_the_lease_is_confirmed_first_in_every_transaction(
    flight: Flight, statements: Callable[[], list[str]]
) -> None:
    flight.batches(SLICE + 1)
    flight.publish(SECOND)
    row = flight.version()
    said_before: list[list[str]] = []
    event.listen(flight.store.engine, "begin", lambda _: statements())

    def confirm(tx: Transaction) -> None:
        said_before.append(statements())

    flight.tick(confirm, row)
    assert said_before == [[], [], []]  # two slices, and the note that all is done

    def refuse(tx: Transaction) -> None:
        raise LeaseLost("scheduler", "me")

    flight.publish(THIRD)
    before = flight.state()
    with pytest.raises(LeaseLost):
        flight.tick(refuse)
    assert flight.state() == before


def test_v2_a_version_that_is_no_longer_the_active_one_is_not_taken(flight: Flight) -> None:
    flight.batch()
    flight.publish(SECOND)
    stale = flight.version()
    flight.publish(THIRD)
    before = flight.state()
    assert flight.tick(row=stale) == TransitionCounts()
    assert flight.state() == before


@pytest.mark.parametrize("point", ["store.before_commit", "store.after_commit"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_v2_after_a_crash_at_any_commit_the_next_tick_comes_to_the_same_end(
    flight: Flight, monkeypatch: pytest.MonkeyPatch, point: str, nth: int
) -> None:
    monkeypatch.setattr("matoolkit.scheduler.transitions.SLICE", 2)
    flight.publish(document(init=True))
    batches = flight.batches(4)
    flight.begin(batches, "prepare", members=2)
    flight.publish(document(init=True, remark="third"), rerun_init=True)
    with pytest.raises(SimulatedCrash), crashing(point, on_hit=nth):
        flight.tick()
    flight.tick()
    versions = [(one.runbook_id, one.status, one.init_count) for one in map(flight.now, batches)]
    assert versions == [(flight.version().id, BatchStatus.INIT_DISPATCHED, 1)] * 4
    for batch in batches:
        assert [one for _, _, one in flight.phases(batch)] == [SUPERSEDED] * 3 + [PENDING] * 3
    told = [message_id for message_id, _ in flight.events()]
    assert told == [f"batch-init-{batch.id}-v3-1" for batch in batches]
    assert flight.version().ignore_overdue_applied
    assert flight.bus.receive(jobs_of_worker("worker-01"), 100) == []


def test_m4_a_slice_costs_the_same_number_of_statements_whatever_is_in_it(
    flight: Flight, statements: Callable[[], list[str]]
) -> None:
    counts: list[int] = []
    flight.publish(document(init=True))
    for number, (batches, members) in enumerate([(1, 1), (SLICE, 20)]):
        made = flight.batches(batches, days=3 + number)
        flight.begin(made, "prepare", members)
        for batch in made[:2]:
            flight.begin_init(batch, version=flight.version().version)
        flight.publish(document(init=True, remark=f"again {number}"), rerun_init=True)
        row = flight.version()
        statements()
        assert flight.tick(row=row).batches == batches
        counts.append(len(statements()))
        with flight.store.transaction() as tx:
            move_batches(tx, batch_moves.FAIL, [batch.id for batch in made], flight.clock.now())
    assert counts[0] == counts[1] < 40


def test_every_decision_is_logged_with_its_reason(flight: Flight, caplog: pytest.LogCaptureFixture) -> None:
    taking, held = flight.batches(2)
    flight.begin([taking], "prepare")
    with flight.store.transaction() as tx:
        hold_batches(tx, [Hold(held.id, GateKind.REMOVALS, "too many left", "k", "{}")], flight.clock.now())
    flight.publish(SECOND)
    with caplog.at_level(logging.INFO, "matoolkit.scheduler"):
        flight.tick()
    records: list[Any] = caplog.records
    assert [(one.runbook, one.batch, one.getMessage()) for one in records] == [
        ("wave", held.id, f"batch does not take version 2: {_HELD}"),
        ("wave", taking.id, f"batch takes version 2: {_TAKES}"),
    ]


_HELD = "it is held, and takes the version once the hold has ended"
_TAKES = (
    "run again: prepare; run: stage, cutover; interrupted: prepare; superseded: cutover, verify; "
    "init counts as done, or goes on under the version that began it"
)
