"""What `matoolkit up` runs on: the demo, a runbook of your own, what is there; and how fast (rule U5)."""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from matoolkit.clock import Clock, FastClock, Pace, SystemClock, VirtualClock
from matoolkit.errors import FastCalendar, InvalidRunbook, NotForTrying, OtherSpeed, SourceNotConfigured, UnreadableFile
from matoolkit.hosting.all_in_one import quickened
from matoolkit.hosting.folder import FOLDER, SOURCE
from matoolkit.hosting.people import People, steps_forward
from matoolkit.hosting.trial import begin, begin_pace, open_tenant, remembered_rows, trial_of
from matoolkit.hosting.trial_sources import TrialSources
from matoolkit.ports import Piece, Source
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.parse import parse_runbook
from matoolkit.settings import Settings
from matoolkit.sources.files.source import FileSource
from matoolkit.store import Store, open_store
from matoolkit.store.automation import automation_of
from matoolkit.store.runbooks import runbook_names
from matoolkit.store.upgrade import upgrade
from matoolkit.system import open_state
from matoolkit.worker.tenant import Tenant
from tests.scheduler.calendar import runbook

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
LONG = timedelta(hours=1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.chdir(tmp_path)
    FOLDER.mkdir()
    store = open_store("sqlite:///.matoolkit/matoolkit.db")
    upgrade(store)
    yield store
    store.close()


def names(store: Store) -> list[str]:
    with store.reading() as tx:
        return sorted(runbook_names(tx))


def test_a_runbook_of_your_own_is_published_and_automated_without_the_demo(store: Store) -> None:
    assert begin(store, trial_of("wave.yaml", runbook().encode()), NOW)
    assert names(store) == ["wave"]
    assert not SOURCE.exists()
    with store.reading() as tx:
        automation = automation_of(tx, "wave")
    assert automation is not None
    assert automation.automation_enabled


def test_without_a_runbook_it_goes_on_with_what_is_there(store: Store) -> None:
    begin(store, trial_of("wave.yaml", runbook().encode()), NOW)
    assert not begin(store, None, LATER)
    assert names(store) == ["wave"]


def test_another_runbook_runs_beside_what_is_there(store: Store) -> None:
    begin(store, None, NOW)
    assert not begin(store, trial_of("wave.yaml", runbook().encode()), LATER)
    assert names(store) == ["demo", "wave"]


def test_a_changed_runbook_is_not_published_by_itself_but_told(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "matoolkit.hosting.trial")
    begin(store, trial_of("wave.yaml", runbook().encode()), NOW)
    begin(store, trial_of("wave.yaml", runbook().encode()), LATER)
    assert not caplog.messages
    begin(store, trial_of("wave.yaml", runbook(description="new").encode()), LATER)
    assert caplog.messages == ["wave.yaml is not what is published: `matoolkit runbook publish wave.yaml`"]


def test_a_runbook_with_errors_begins_nothing(store: Store) -> None:
    with pytest.raises(InvalidRunbook):
        begin(store, trial_of("bad.yaml", b"name: x"), NOW)
    assert names(store) == []


def test_u5_the_first_start_decides_how_fast_time_runs_and_where_it_begins(store: Store) -> None:
    assert begin_pace(store, 1440, NOW) == Pace(1440, NOW)
    assert begin_pace(store, None, LATER) == Pace(1440, NOW)
    assert begin_pace(store, 1440, LATER) == Pace(1440, NOW)
    with pytest.raises(OtherSpeed, match="speed 1440 here, not 60") as refused:
        begin_pace(store, 60, LATER)
    assert "--fresh" in (refused.value.hint or "")


def test_u5_what_ran_at_the_pace_of_the_clock_keeps_it(store: Store) -> None:
    begin(store, None, NOW)
    with pytest.raises(OtherSpeed):
        begin_pace(store, 1440, LATER)
    assert begin_pace(store, None, LATER).speed == 1


def test_u5_no_other_process_works_on_a_fast_calendar(store: Store) -> None:
    settings = Settings(database_url=SecretStr(str(store.url)))
    begin_pace(store, 1440, NOW)
    with pytest.raises(FastCalendar, match="1440 times"):
        open_state(settings)


def test_u5_any_process_works_on_a_calendar_at_the_pace_of_the_clock(store: Store) -> None:
    begin_pace(store, None, NOW)
    open_state(Settings(database_url=SecretStr(str(store.url)))).close()


@pytest.mark.parametrize(("speed", "ticks"), [(1, 2), (60, 120), (150, 300), (1440, 360), (100_000, 25_000)])
def test_u5_ticks_scale_but_never_come_more_than_four_times_a_second(speed: int, ticks: int) -> None:
    assert quickened(Settings(), speed).tick_seconds == ticks
    assert quickened(Settings(tick_seconds=600), 1440).tick_seconds == 600


def rows_file(folder: Path, *lines: str) -> Path:
    file = folder / "people.csv"
    file.write_text("id,start,city\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def open_rows(file: Path, read_cell: Callable[[Any], Any]) -> Source:
    """Read a file an hour after it was written: one that was changed just now is not read (rule U4)."""
    return FileSource(file.parent, file.name, None, VirtualClock(SystemClock().now() + LONG), read_cell=read_cell)


def sources(store: Store, clock: Clock | None = None) -> TrialSources:
    def refused(_: DataSource) -> Source:
        raise SourceNotConfigured("SOURCE", needed_for="for nothing")

    known = clock or VirtualClock(LATER)
    return TrialSources(store, Tenant(known), refused, open_rows, remembered_rows(), known, NOW)


def all_rows(source: Source, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for piece in source.pieces(query) for row in piece.rows]


def test_a_file_of_rows_stands_for_the_source_also_after_a_start_without_it(store: Store, tmp_path: Path) -> None:
    file = rows_file(tmp_path, "u1,2027-01-01 10:00,Bern", "u2,2027-01-01 10:00,Basel")
    begin(store, trial_of("wave.yaml", runbook().encode(), file), NOW)
    begin(store, None, LATER)
    description = parse_runbook(runbook()).data_source
    rows = all_rows(sources(store).open(description), description.query)
    assert rows == [("u1", "2027-01-01 10:00", "Bern"), ("u2", "2027-01-01 10:00", "Basel")]


def test_another_runbook_still_reads_its_own_source(store: Store, tmp_path: Path) -> None:
    begin(store, trial_of("wave.yaml", runbook().encode(), rows_file(tmp_path, "u1,now,Bern")), NOW)
    other = runbook("other", data_source={"connection": "ELSEWHERE"})
    begin(store, trial_of("other.yaml", other.encode()), NOW)
    with pytest.raises(SourceNotConfigured):
        sources(store).open(parse_runbook(other).data_source)


def test_a_time_may_be_counted_from_the_first_start_and_stays_the_same(store: Store, tmp_path: Path) -> None:
    file = rows_file(tmp_path, "u1,now+3d,now", "u2, Now + 90m ,nowhere")
    begin(store, trial_of("wave.yaml", runbook().encode(), file), NOW)
    description = parse_runbook(runbook()).data_source
    assert all_rows(sources(store).open(description), description.query) == [
        ("u1", "2026-05-07 12:00:00+00:00", "2026-05-04 12:00:00+00:00"),
        ("u2", "2026-05-04 13:30:00+00:00", "nowhere"),
    ]


def test_a_query_for_another_database_is_told_the_time_of_the_calendar(store: Store, tmp_path: Path) -> None:
    query = (
        "SELECT [id], start, city FROM dbo.people AS p "
        "WHERE p.start BETWEEN GETUTCDATE() AND DATEADD(day, 6, GETUTCDATE())"
    )
    content = runbook(data_source={"query": query, "type": "dataverse"})
    file = rows_file(tmp_path, "u1,now+3d,Bern", "u2,now+20d,Bern")
    begin(store, trial_of("wave.yaml", content.encode(), file), NOW)
    description = parse_runbook(content).data_source
    fast = FastClock(VirtualClock(NOW + timedelta(minutes=15)), Pace(1440, NOW))
    assert [row[0] for row in all_rows(sources(store).open(description), query)] == ["u1"]
    assert [row[0] for row in all_rows(sources(store, fast).open(description), query)] == ["u2"]


def test_rows_that_cannot_stand_for_the_source_are_refused_before_anything_begins(tmp_path: Path) -> None:
    joined = runbook(data_source={"query": "SELECT a.id, a.start, b.city FROM a JOIN b ON a.id = b.id"})
    file = rows_file(tmp_path, "u1,now,Bern")
    with pytest.raises(NotForTrying, match="its query reads a, b, and the rows can stand for one table"):
        trial_of("wave.yaml", joined.encode(), file)
    sheet = tmp_path / "people.ods"
    sheet.touch()
    with pytest.raises(NotForTrying, match="neither CSV nor a workbook"):
        trial_of("wave.yaml", runbook().encode(), sheet)
    with pytest.raises(UnreadableFile):
        trial_of("wave.yaml", runbook().encode(), tmp_path / "nowhere.csv")


STEPS = """\
phases:
  - name: only
    offset: T-0
    steps:
      - name: make
        worker_id: worker-01
        function: New-EntraUser
        params: {DisplayName: x, UserPrincipalName: "{{nick}}@fabrikam.example", MailNickname: "{{nick}}"}
        output_params: {UserId: Id}
      - name: join
        worker_id: worker-01
        function: Add-EntraGroupMember
        params: {GroupId: "{{group}}", UserId: "{{UserId}}"}
      - name: manager
        worker_id: worker-01
        function: Set-EntraUserManager
        params: {UserId: "{{nick}}@fabrikam.example", ManagerId: "{{boss}}"}
      - {name: look, worker_id: worker-01, function: Get-MailboxInfo, params: {UserId: "{{old}}"}}
      - name: convert
        worker_id: worker-01
        function: Convert-EntraB2BToInternal
        params: {UserId: "{{guest}}", NewUserPrincipalName: "{{nick}}.2@fabrikam.example"}
"""
GROUP, GUEST = "22222222-aaaa-4bbb-8ccc-00000000000a", "22222222-aaaa-4bbb-8ccc-00000000000b"
COLUMNS = ("id", "nick", "group", "boss", "old", "guest")


def people(tenant: Tenant) -> People:
    source = runbook().partition("phases:")[0]
    return People(tenant, steps_forward(parse_runbook(source + STEPS)))


def test_the_tenant_knows_those_whom_rows_name_but_not_those_whom_steps_make() -> None:
    tenant = Tenant(VirtualClock(NOW))
    row = ("1", "ada", GROUP.upper(), "boss@fabrikam.example", "ada@contoso.example", GUEST)
    people(tenant).meet(Piece(COLUMNS, [row, row]))
    users = {user.upn: user for user in tenant.directory.users.values()}
    assert set(users) == {"boss@fabrikam.example", "ada@contoso.example", f"{GUEST}@contoso.example"}
    assert users["ada@contoso.example"].kind == "UserMailbox"
    assert tenant.directory.remote_mailboxes
    assert users[f"{GUEST}@contoso.example"].is_external
    assert set(tenant.directory.groups) == {GROUP}
    assert "fabrikam.example" in tenant.directory.domains


def test_who_is_in_the_tenant_already_stays_as_it_is() -> None:
    tenant = Tenant(VirtualClock(NOW))
    tenant.directory.add_user({"userPrincipalName": "boss@fabrikam.example", "displayName": "Her"}, is_seeded=True)
    row = ("1", "ada", GROUP, "Boss@fabrikam.example", None, "")
    people(tenant).meet(Piece(COLUMNS, [row]))
    people(tenant).meet(Piece(COLUMNS, [row]))
    (boss,) = tenant.directory.users.values()
    assert boss.properties["displayName"] == "Her"
    assert len(tenant.directory.groups) == 1


def test_what_the_tenant_was_told_is_kept(store: Store) -> None:
    people(open_tenant(VirtualClock(NOW))).meet(Piece(COLUMNS, [("1", "ada", GROUP, None, None, None)]))
    assert GROUP in open_tenant(VirtualClock(LATER)).directory.groups


def test_somebody_is_in_a_group_if_a_step_looks_there_and_no_step_adds_anybody() -> None:
    looking = "{{name: {0}, worker_id: worker-01, function: {1}, params: {{GroupId: {2}, UserId: '{3}'}}}}"
    steps = [
        looking.format("look", "Test-EntraGroupMembership", GROUP, GUEST),
        looking.format("add", "Add-EntraGroupMember", "'{{group}}'", "{{boss}}"),
        looking.format("check", "Test-EntraGroupMembership", "'{{group}}'", "{{boss}}"),
    ]
    listed = "".join(f"      - {step}\n" for step in steps)
    tenant, other = Tenant(VirtualClock(NOW)), "22222222-aaaa-4bbb-8ccc-00000000000c"
    content = runbook().partition("phases:")[0] + f"phases:\n  - name: only\n    offset: T-0\n    steps:\n{listed}"
    row = ("1", "ada", other, "boss@fabrikam.example", None, None)
    People(tenant, steps_forward(parse_runbook(content))).meet(Piece(COLUMNS, [row]))
    assert list(tenant.directory.groups[GROUP].members) == [GUEST]
    assert not tenant.directory.groups[other].members
