"""Late batches and late joiners through the command line: counted before anything is decided, and let in one by one."""

from datetime import timedelta

import pytest

from matoolkit.domain.gates import GateKind
from matoolkit.domain.holds import late_key
from matoolkit.domain.states import BatchStatus
from matoolkit.store.batches import BatchRow, NewBatch, insert_batches
from matoolkit.store.holds import Hold, hold_batches
from matoolkit.store.members import NewMember, insert_members
from matoolkit.store.runbooks import active_runbook
from tests.cli.conftest import Cli
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")


def late_batch(stage: Stage, days: int) -> BatchRow:
    """A batch that was first seen so many days after its T, as the scheduler makes it."""
    start = stage.now - timedelta(days=days)
    with stage.store.transaction() as tx:
        row = active_runbook(tx, "wave")
        assert row
        (batch,) = insert_batches(tx, [NewBatch(row.id, row.name, start, BatchStatus.DETECTED)], stage.now)
        insert_members(tx, [NewMember(batch.id, f"u{number}-{days}", "{}", "h") for number in range(2)], stage.now)
        hold_batches(
            tx, [Hold(batch.id, GateKind.LATE, "it had passed", late_key(start), '{"kind":"late"}')], stage.now
        )
    return stage.reload(batch)


def test_t5_many_late_batches_are_counted_and_then_decided_about(cli: Cli, stage: Stage) -> None:
    cli.published()
    old, older, oldest = (late_batch(stage, days) for days in (10, 20, 30))
    shown = cli.json("hold", "show", str(old.id))
    assert (shown["kind"], shown["memberCount"], shown["members"]) == ("late", 2, ["u0-10", "u1-10"])
    before = f"{stage.now - timedelta(days=15):%Y-%m-%d}"
    assert cli.json("hold", "cancel", "--late", "--before", before, "--dry-run")["batchIds"] == [older.id, oldest.id]
    assert stage.reload(older).is_held
    cli("hold", "cancel", "--late", "--before", before, "--yes", "--reason", "mistyped")
    assert "2 late batches with 4 members: cancelled" in cli.err
    assert stage.reload(oldest).status is BatchStatus.CANCELLED
    cli("hold", "approve", "--late", "--before", stage.now.isoformat(), "--runbook", "wave", "--yes")
    assert "1 late batch with 2 members: approved" in cli.err
    assert stage.reload(old).approved_hold_by == "local"


def test_t5_one_held_batch_is_cancelled_by_its_number(cli: Cli, stage: Stage) -> None:
    cli.published()
    batch = late_batch(stage, 10)
    cli("hold", "cancel", str(batch.id), "--yes")
    assert f"batch {batch.id} is cancelled" in cli.err
    cli("hold", "cancel", str(batch.id), "--yes", code=5)
    assert "is not held" in cli.err


@pytest.mark.parametrize(
    "arguments", [(), ("1", "--late", "--before", "2026-01-01"), ("--late",), ("--before", "2026-01-01")]
)
def test_a3_which_holds_are_meant_has_to_be_said_in_one_way(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli("hold", "approve", *arguments, "--yes", code=2)
    assert "name a batch, or say `--late --before DATE`" in cli.err


def test_a3_a_time_without_zone_is_not_guessed(cli: Cli) -> None:
    cli("hold", "cancel", "--late", "--before", "2026-01-01T10:00", "--yes", code=2)
    assert "is neither a date" in cli.err


def test_u3_somebody_without_a_row_cannot_be_included(cli: Cli) -> None:
    cli.published()
    cli("member", "include", "wave", "ada", "--reason", "forgotten", code=3)
    assert "has no row with a time for ada" in cli.err
