"""Rules S2 and S4 at the command line: two people who signed in approve a cutover, one after the other."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.domain.holds import HoldKind
from matoolkit.doors.entra import Entra
from matoolkit.doors.services import Services
from matoolkit.scheduler.due_phases import dispatch_due_phases
from tests.api.test_auth import APP, TENANT, Keys, signed
from tests.cli.conftest import Cli, Moving
from tests.servers.api import serving
from tests.servers.http import served
from tests.stage import Stage

pytestmark = pytest.mark.on("sqlite")

CUTOVER = """\
phases:
  - name: cutover
    offset: T-5d
    approval: {count: 2}
    steps:
      - {name: move, worker_id: worker-01, function: Move}
"""

As = Callable[..., None]


@pytest.fixture
def signed_in(
    services: Services,
    clock: VirtualClock,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Cli, As]]:
    """The command line of the person whose token the environment has."""
    with served(Keys()) as keys:
        entra = Entra(TENANT, APP, clock, keys_url=f"{keys}/keys")
        with serving(replace(services, sign_in=entra)) as address:
            monkeypatch.setenv("HOME", str(tmp_path))
            monkeypatch.setenv("MATOOLKIT_API_URL", address)

            def become(name: str, *roles: str) -> None:
                token = signed(preferred_username=f"{name}@contoso.example", roles=list(roles or ("Approver",)))
                monkeypatch.setenv("MATOOLKIT_ACCESS_TOKEN", token)

            yield Cli(capsys, Moving(clock), tmp_path, set()), become


def test_s4_two_people_approve_a_cutover_and_it_begins(signed_in: tuple[Cli, As], stage: Stage) -> None:
    cli, become = signed_in
    batch = str(stage.batch(stage.publish(CUTOVER), 2).id)
    become("jmarin")
    cli("approval", "approve", batch, "--yes", "--reason", "change 4711")
    told = f"cutover of batch {batch}: approved; waits for approval: 1 of 2 given (jmarin@contoso.example "
    assert told in cli.err
    cli("approval", "approve", batch, "--yes", code=5)
    assert "jmarin@contoso.example approved phase 'cutover'" in cli.err
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now) == 0
    become("zoe", "Operator")
    cli("approval", "approve", batch, "--yes", code=4)
    assert "this needs the role 'Approver'" in cli.err
    become("kwu")
    cli("approval", "approve", batch, "--yes")
    assert cli.err.rstrip().endswith(f"cutover of batch {batch}: approved")
    shown = cli("approval", "show", batch)
    assert "jmarin@contoso.example approved" in shown
    assert "nobody signed in" not in shown
    assert dispatch_due_phases(stage.store, stage.bus, lambda _: None, stage.now) == 1


def test_s4_who_may_not_sign_off_late_batches_is_told_why_and_nothing_is_approved(
    signed_in: tuple[Cli, As], stage: Stage
) -> None:
    cli, become = signed_in
    document = CUTOVER + "safeguards: {approval: {by: [kwu@contoso.example]}}\n"
    batch = stage.batch_at(stage.publish(document), ["ada"], days=-3)
    stage.hold_for(batch, HoldKind.LATE, "late-3", "T had passed")
    become("jmarin", "Admin")
    cli("hold", "approve", "--late", "--before", stage.now.isoformat(), "--yes", code=5)
    assert f"batch {batch.id}: jmarin@contoso.example may not sign off the hold of batch {batch.id} [SO403]" in cli.err
    assert stage.reload(batch).approved_hold_at is None
