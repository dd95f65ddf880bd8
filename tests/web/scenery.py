"""A migration weekend to look at: a wave in the middle of its cutover, others before and after it, and what went wrong.

Pictures for the documentation are taken of it, and tests look at all pages of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from matoolkit.domain.messages import WorkerJob
from matoolkit.domain.states import OverdueBehavior
from matoolkit.store.batches import BatchRow
from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from matoolkit.store.runbooks import NewVersion, RunbookRow, publish_version
from tests.stage import Failing, Stage

SATURDAY = datetime(2026, 11, 21, 22, tzinfo=UTC)
_FIRST = (
    "ada", "alan", "ana", "barbara", "ben", "chloe", "claude", "david", "dorothy", "edsger", "emmy", "frances", "grace",
    "hedy", "ivan", "joan", "karen", "katherine", "leslie", "luisa", "mateo", "nora", "orson", "petra", "radia",
    "silke", "timo", "ulla", "vito", "wiebke", "yvonne", "zdenka",
)  # fmt: skip
_LAST = (
    "allen", "bartik", "cerf", "dijkstra", "engelbart", "floyd", "goldberg", "hamilton", "hopper", "iverson", "johnson",
    "knuth", "lamport", "liskov", "lovelace", "marin", "meyer", "noether", "perlman", "ritchie", "shannon", "thompson",
    "turing", "vaughan", "wirth",
)  # fmt: skip
HOSTILE = (
    "<b>bold</b>@contoso.com",
    "\u202egnp.exe@contoso.com",
    "red\x1b[31m@contoso.com",
    f"{'long' * 60}@contoso.com",
)

MIGRATION = """\
name: user-migration
data_source:
  type: sql
  connection: SOURCE_DB
  query: SELECT Email, Name, Start FROM people WHERE approved = 1
  primary_key: Email
  batch_time_column: Start
phases:
  - name: prepare
    offset: T-5d
    steps:
      - {name: create-account, worker_id: worker-01, function: New-MailUser, on_failure: undo-account}
      - {name: assign-licence, worker_id: worker-01, function: Custom-AssignLicence, on_failure: undo-account}
      - {name: join-groups, worker_id: worker-01, function: Add-EntraGroupMember}
  - name: stage-mail
    offset: T-1d
    steps:
      - {name: set-addresses, worker_id: worker-01, function: Set-ExchangeMailUserEmailAddresses}
      - name: wait-for-addresses
        worker_id: worker-01
        function: Test-ExchangeAttributeMatch
        poll: {interval: 5m, timeout: 4h}
      - {name: copy-mailbox, worker_id: worker-02, function: Custom-CopyMailbox}
  - name: cutover
    offset: T-0
    steps:
      - {name: enable-account, worker_id: worker-01, function: Set-EntraUserEnabled}
      - {name: set-primary-address, worker_id: worker-01, function: Set-ExchangePrimaryAddress}
      - {name: finish-copy, worker_id: worker-02, function: Custom-FinishCopy}
      - {name: move-devices, worker_id: worker-02, function: Custom-MoveDevices}
  - name: verify
    offset: T+1d
    steps:
      - {name: check-address, worker_id: worker-01, function: Test-ExchangeAttributeMatch}
      - {name: check-groups, worker_id: worker-01, function: Test-EntraGroupMembership}
  - name: clean-up
    offset: T+7d
    steps:
      - {name: close-source, worker_id: worker-03, function: Custom-CloseSource}
rollbacks:
  undo-account:
    - {name: remove-account, worker_id: worker-01, function: Remove-EntraUser}
on_member_removed:
  - {name: disable-account, worker_id: worker-01, function: Custom-Disable}
"""
GROUPS = (
    MIGRATION.replace("name: user-migration", "name: group-membership").partition("phases:")[0]
    + """\
phases:
  - name: check
    offset: T-2d
    steps:
      - {name: check-groups, worker_id: worker-01, function: Test-EntraGroupMembership}
  - name: move
    offset: T-0
    steps:
      - {name: add-member, worker_id: worker-01, function: Add-EntraGroupMember}
"""
)
# How many in a thousand fail at a function, and how.
_FAULTS = {
    "Custom-AssignLicence": (9, Failing("no licence is left in group EMEA-E5", "LicenceMissing")),
    "Custom-CopyMailbox": (9, Failing("the mailbox is over its quota", "QuotaExceeded")),
    "Set-ExchangePrimaryAddress": (6, Failing("the address is in use by another object", "ObjectConflict")),
    "Remove-EntraUser": (400, Failing("the service answered 503 for 30 minutes", "Unavailable")),
}
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Weekend:
    """What there is to look at."""

    migration: RunbookRow
    running: BatchRow
    held: BatchRow
    failed_member: int


def people(count: int, first: int = 0) -> list[str]:
    """Return the addresses of people, all different."""
    return list(islice(_everybody(), first, first + count))


def _everybody() -> Iterator[str]:
    number = 0
    while True:
        for last in _LAST:
            for first in _FIRST:
                yield f"{first}.{last}{number or ''}@contoso.com"
        number += 1


def weekend(stage: Stage, members: int = 200) -> Weekend:
    """Play until an hour after T of a wave; the clock of the stage must be at T-5d of it."""
    migration, groups = _published(stage, MIGRATION), _published(stage, GROUPS)
    stage.answers = {name: _sometimes(*fault) for name, fault in _FAULTS.items()}
    stage.answers |= {name: {"complete": True, "data": {}} for name in _checks()}
    pace = max(members // 40, 5)
    before = stage.batch_at(groups, people(members // 8, members * 2), days=0)
    running = stage.batch_at(migration, [*HOSTILE, *people(members)], days=5)
    held = stage.batch_at(migration, people(members // 3, members), days=12)
    stage.batch_at(migration, people(members // 2, members * 3), days=19)
    stage.batch_at(groups, people(members // 20, members * 4), days=9)
    _play(stage, running, ["prepare"], pace)
    _play(stage, before, ["check", "move"], pace)
    _until(stage, SATURDAY - _DAY)
    _play(stage, running, ["stage-mail"], pace)
    stage.leave(running, *people(3, 40), reason="the source no longer returns it")
    stage.run()
    stage.hold(held)
    _keep_dead_letter(stage)
    _until(stage, SATURDAY)
    stage.due(running, "cutover")
    _some(stage, rounds=95, most=pace)
    member = next(one for one in stage.members(running) if one.status == "failed")
    return Weekend(migration, running, held, member.id)


def _published(stage: Stage, text: str) -> RunbookRow:
    name = text.partition("name: ")[2].partition("\n")[0]
    with stage.store.transaction() as tx:
        return publish_version(
            tx, NewVersion(name, text, f"hash-{name}", OverdueBehavior.RERUN, False, "anna"), stage.now
        )


def _checks() -> Sequence[str]:
    return ("Test-ExchangeAttributeMatch", "Test-EntraGroupMembership")


def _sometimes(of_thousand: int, fault: Failing) -> Any:
    def answer(job: WorkerJob) -> Any:
        return fault if _lot(job) < of_thousand else {"done": True}

    return answer


def _lot(job: WorkerJob) -> int:
    """Draw a number below a thousand, always the same for the same job."""
    return int(job.job_id.split("-")[1]) * 7919 % 1000


def _play(stage: Stage, batch: BatchRow, phases: Sequence[str], pace: int) -> None:
    """Let phases be due, and take a minute for each pile of answers."""
    stage.due(batch, *phases)
    _some(stage, rounds=10_000, most=pace * 4)


def _some(stage: Stage, *, rounds: int, most: int) -> None:
    for _ in range(rounds):
        stage.handle()
        outcomes: list[Any] = []
        for worker in ("worker-01", "worker-02", "worker-03"):
            for job in stage.take_jobs(worker, most):
                scripted = stage.answers.get(job.function_name)
                outcomes.append((job, scripted(job) if callable(scripted) else scripted))
        if not outcomes:
            return
        stage.clock.advance(timedelta(seconds=40))
        stage.bus.send(stage._results(outcomes))  # noqa: SLF001 - as `work` does, for several workers
        stage.handle()


def _keep_dead_letter(stage: Stage) -> None:
    letter = NewDeadLetter(
        topic="worker-results",
        subscription="orchestrator",
        message_id="result-step-1-1",
        message_type="WorkerResult",
        body='{"JobId": "step-1-1", "Status": "Perhaps"}',
        properties_json="{}",
        reason="MaxDeliveryCountExceeded",
        description="'Perhaps' is not a status of a result",
        delivery_count=10,
        enqueued_at=stage.now,
    )
    with stage.store.transaction() as tx:
        keep_dead_letters(tx, [letter], stage.now)


def _until(stage: Stage, at: datetime) -> None:
    if stage.now < at:
        stage.clock.advance(at - stage.now)
