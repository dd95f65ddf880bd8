"""The whole system under faults: seeds hold, the same seed is the same history, and a failing one is made short."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from matoolkit.cli.program import run
from matoolkit.clock import VirtualClock
from matoolkit.errors import StoreReadOnly
from matoolkit.simulate.database import memory_database
from matoolkit.simulate.faults import Fault
from matoolkit.simulate.many_seeds import play, played, summed_up
from matoolkit.simulate.plans import Plan
from matoolkit.simulate.shrinking import replay_command, shortest
from matoolkit.simulate.story import Story
from matoolkit.simulate.world import BEGINNING

from .planted import rollback_steps_are_sent_all_at_once

RUNBOOKS = Path(__file__).resolve().parents[2] / "runbooks"
# How many seeds every run of the tests plays, and how many of them one test takes: tests spread over processes.
SEEDS = 128
SEEDS_AT_ONCE = 8
# Every fourth of them is played with a bus that is apart and delivers most messages again.
APART = 4
EVENTFUL = (
    "u99 join",
    "is rescheduled to",
    "is held: the source no longer returns 5 of its 10 members",
    "the hold has ended",
    "the tenant is busy",
    "superseded by the new version",
    "u05 is back",
)


@pytest.mark.parametrize("first", range(1, SEEDS + 1, SEEDS_AT_ONCE))
def test_seeds_hold(first: int) -> None:
    seeds = range(first, first + SEEDS_AT_ONCE)
    summary = summed_up(played([Plan(seed, is_apart=seed % APART == 0) for seed in seeds]))
    assert [(outcome.plan.seed, outcome.violation) for outcome in summary.failures] == []
    assert len(summary.faults) > len(Fault) / 2


def test_m8_a_bus_that_is_apart_repeats_nearly_half_of_what_it_delivers() -> None:
    summary = summed_up(played([Plan(seed, is_apart=True) for seed in (1, 2)]))
    plain = summed_up(played([Plan(seed) for seed in (1, 2)]))
    assert summary.failures == []
    assert summary.faults[Fault.DUPLICATE] > 5 * plain.faults[Fault.DUPLICATE]
    assert summary.faults[Fault.CRASH_AFTER_COMMIT] > 0
    assert summary.faults[Fault.CRASH_WHILE_SENDING] > 0
    assert summary.faults[Fault.DONE_TWICE] > 0 == plain.faults[Fault.DONE_TWICE]


@pytest.mark.parametrize("seed", [1056, 1200, 2064, 2810, 5456, 5755, 6814])
def test_seeds_that_the_oracle_once_blamed_hold(seed: int) -> None:
    """A phase opened for a late joiner has begun (rule V4); an empty batch that waits ends after T (rule T5).

    Who comes back brings what it had when it left (rule T5), though a job of its own was answered once more since. Who
    was undone after others had left was there when they were counted (rule T6). An init is signed off under its own
    version, whichever its batch has taken since (rule V5). A window that shuts takes jobs back as a gate does (K2).
    """
    assert play(Plan(seed, events=160)).violation is None


def test_a_reader_that_writes_is_refused() -> None:
    store = memory_database("of a reader that writes").open(VirtualClock(BEGINNING))
    with store.reading() as tx, pytest.raises(StoreReadOnly):
        tx.execute(text("DELETE FROM batches"))
    with store.transaction() as tx:
        tx.execute(text("DELETE FROM batches"))


def test_the_same_seed_is_the_same_history_in_every_process() -> None:
    command = [sys.executable, "-c", _FINGERPRINT]
    printed = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {play(Plan(7, events=60)).fingerprint}


_FINGERPRINT = """
from matoolkit.simulate.plans import Plan
from matoolkit.simulate.many_seeds import play
print(play(Plan(7, events=60)).fingerprint)
"""


def test_a_failing_seed_is_made_short_and_can_be_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    rollback_steps_are_sent_all_at_once(monkeypatch)
    failing = next(outcome for seed in range(1, 20) if (outcome := play(Plan(seed))).violation)
    found = shortest(failing, tries=8)
    assert found.violation is not None
    assert found.events <= failing.events
    assert play(found.plan).fingerprint == found.fingerprint
    assert f"--seeds {failing.plan.seed}" in replay_command(found.plan)
    assert replay_command(Plan(7, is_apart=True)) == "matoolkit simulate --seeds 7 --events 160 --apart"


def test_the_command_says_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--seeds", "3..4", "--events", "30", "--without", "clock-jump", "--apart"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 seeds, 0 failed")
    assert "      0  clock jump" in printed
    assert "Moves made and situations met:" in printed


@pytest.mark.parametrize("arguments", [["--seeds", "many"], ["--without", "luck"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    assert run(["simulate", *arguments]) == 2


def test_the_story_of_the_user_migration_ends_well() -> None:
    story = Story((RUNBOOKS / "user-migration.yaml").read_text(encoding="utf-8"))
    told = "\n".join(story.run())
    look = story.plant.state.look
    assert look("SELECT status, hold_count FROM batches ORDER BY id") == [("completed", 1), ("completed", 1)]
    members = look("SELECT member_key, status, epoch FROM batch_members ORDER BY member_key")
    assert [key for key, status, _ in members if status != "active"] == ["u03"]
    assert [key for key, _, epoch in members if epoch > 1] == [], "u05 goes on where it failed: nothing was undone"
    undone = look(
        "SELECT m.member_key, r.step_name, r.status FROM rollback_executions r "
        "JOIN batch_members m ON m.id = r.batch_member_id ORDER BY r.id"
    )
    assert undone == [("u03", "call-off-move", "succeeded"), ("u03", "remove-account", "succeeded")]
    assert look("SELECT COUNT(*) FROM dead_letters") == [(0,)]
    for line in EVENTFUL:
        assert line in told


@pytest.mark.parametrize("name", ["demo", "group-membership", "guest-to-member"])
def test_the_other_samples_come_to_their_end(name: str) -> None:
    story = Story((RUNBOOKS / f"{name}.yaml").read_text(encoding="utf-8"))
    story.run()
    assert {status for (status,) in story.plant.state.look("SELECT status FROM batches")} == {"completed"}


def test_the_command_tells_a_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["simulate", "--story", str(RUNBOOKS / "group-membership.yaml")]) == 0
    assert "14 people join" in capsys.readouterr().out
