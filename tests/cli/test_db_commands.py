import json
from pathlib import Path

import pytest

from matoolkit.cli.program import run
from matoolkit.store import open_store
from matoolkit.store.upgrade import revisions
from tests.golden.tsql import MIGRATIONS

NEWEST = revisions()[-1]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"sqlite:///{tmp_path}/folder/state.db"
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", url)
    return url


def test_a_database_is_created_and_then_up_to_date(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["db", "status"]) == 1
    assert capsys.readouterr().out == f"schema none, needed {NEWEST}: no tables yet: run `matoolkit db upgrade`\n"
    assert run(["db", "check"]) == 1
    assert "there is no database yet" in capsys.readouterr().out
    assert run(["db", "upgrade"]) == 0
    assert capsys.readouterr().err == f"applied {len(revisions())} revisions: {', '.join(revisions())}\n"
    assert run(["db", "upgrade"]) == 0
    assert capsys.readouterr().err == "nothing to do\n"
    assert run(["db", "status"]) == 0
    assert capsys.readouterr().out == f"schema {NEWEST}, needed {NEWEST}: up to date\n"


def test_what_differs_is_listed(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["db", "upgrade"])
    store = open_store(url)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_outbox_unclaimed")
    store.close()
    capsys.readouterr()
    assert run(["db", "check"]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split("  ")[0] == "CHECK"
    assert "schema index outbox ix_outbox_unclaimed: missing; `matoolkit db upgrade --sql` prints" in printed.err
    assert printed.err.splitlines()[-1] == f"{len(printed.out.splitlines()) - 1} checks, 1 failed"


def test_a_database_that_will_do_passes_the_check(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["db", "upgrade"])
    capsys.readouterr()
    assert run(["db", "check", "-o", "json"]) == 0
    found = {(one["kind"], one["name"]): one for one in json.loads(capsys.readouterr().out)}
    assert found["schema", "version"]["said"] == f"schema {NEWEST}, needed {NEWEST}: up to date"
    assert found["statement", "all"]["said"].endswith("statements were understood")
    assert {one["outcome"] for one in found.values()} == {"ok", "unknown"}


def test_a_newer_schema_is_refused_with_its_code(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(["db", "upgrade"])
    store = open_store(url)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    store.close()
    capsys.readouterr()
    assert run(["db", "upgrade"]) == 5
    assert "DB513" in capsys.readouterr().err
    assert run(["db", "status"]) == 1


def test_the_statements_can_be_printed_without_a_database(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["db", "upgrade", "--sql"]) == 0
    assert "CREATE TABLE batches" in capsys.readouterr().out
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_the_statements_for_sql_server_are_those_that_were_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "mssql://server/state")
    assert run(["db", "upgrade", "--sql"]) == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
    assert printed == MIGRATIONS.read_text(encoding="utf-8").rstrip().splitlines()


def test_the_roles_can_be_printed_without_a_database(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "mssql://server/state")
    assert run(["db", "roles", "--scheduler", "id-scheduler"]) == 0
    printed = capsys.readouterr().out
    assert "CREATE USER [id-scheduler] FROM EXTERNAL PROVIDER;" in printed
    assert printed.count("CREATE USER") == 1
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "postgresql://server/state")
    assert run(["db", "roles", "--api", "web"]) == 0
    printed = capsys.readouterr().out
    assert 'CREATE ROLE "web" LOGIN' in printed
    assert 'CREATE ROLE "matoolkit_scheduler" LOGIN' in printed


def test_sqlite_has_no_roles_to_print(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["db", "roles"]) == 2
    assert "DB405" in capsys.readouterr().err
    assert not Path(url.removeprefix("sqlite:///")).exists()


@pytest.mark.parametrize("command", ["status", "check"])
def test_a_server_that_is_down_is_an_error_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setenv("MATOOLKIT_DATABASE_URL", "postgresql://anna:hunter2@127.0.0.1:1/state")
    assert run(["db", command]) == 6
    said = capsys.readouterr().err
    assert "DB503" in said
    assert "hint: " in said
    assert "hunter2" not in said
