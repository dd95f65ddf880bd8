"""Rule R4: a runbook's data_source becomes a source, with what the environment holds."""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from matoolkit.clock import VirtualClock
from matoolkit.errors import SourceFailed, SourceNotConfigured
from matoolkit.runbook.model import DataSource
from matoolkit.sources.choice import open_source
from matoolkit.sources.databricks import DatabricksSource
from matoolkit.sources.dataverse import DataverseSource
from matoolkit.sources.files.source import FileSource
from matoolkit.sources.sql import SqlSource
from tests.databases import NOON
from tests.servers.databricks import Workspace
from tests.servers.entra import ManagedIdentity
from tests.servers.http import served

AZURE = "https://adb-1.2.azuredatabricks.net"
ELSEWHERE = "https://x.cloud.databricks.com"


def data_source(kind: str, **more: Any) -> DataSource:
    given = {"type": kind, "connection": "PLACE", "query": "SELECT 1", "primary_key": "id", "batch_time": "immediate"}
    return DataSource.model_validate(given | more)


def databricks() -> DataSource:
    return data_source("databricks", warehouse_id="WAREHOUSE")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.mark.parametrize(
    ("source", "environ", "kind"),
    [
        (data_source("sql"), {"PLACE": "sqlite://"}, SqlSource),
        (data_source("file", file="people.csv"), {"MATOOLKIT_FILES": "lists"}, FileSource),
        (data_source("dataverse"), {"PLACE": "https://org.crm4.dynamics.com"}, DataverseSource),
        (databricks(), {"PLACE": AZURE, "WAREHOUSE": "w"}, DatabricksSource),
        (
            databricks(),
            {"PLACE": ELSEWHERE, "WAREHOUSE": "w", "PLACE_TOKEN": "t"},
            DatabricksSource,
        ),
    ],
)
def test_r4_each_type_has_its_source(source: DataSource, environ: dict[str, str], kind: type) -> None:
    assert isinstance(open_source(source, environ), kind)


@pytest.mark.parametrize(
    ("source", "environ", "missing"),
    [
        (data_source("sql"), {}, "PLACE"),
        (data_source("dataverse"), {"PLACE": " "}, "PLACE"),
        (data_source("file", file="people.csv"), {"MATOOLKIT_FILES": ""}, "MATOOLKIT_FILES"),
        (databricks(), {"WAREHOUSE": "w"}, "PLACE"),
        (databricks(), {"PLACE": AZURE}, "WAREHOUSE"),
        (databricks(), {"PLACE": AZURE, "WAREHOUSE": ""}, "WAREHOUSE"),
        (databricks(), {"PLACE": ELSEWHERE, "WAREHOUSE": "w"}, "PLACE_TOKEN"),
    ],
)
def test_r4_a_variable_that_is_not_set_is_named(source: DataSource, environ: dict[str, str], missing: str) -> None:
    with pytest.raises(SourceNotConfigured) as refused:
        open_source(source, environ)
    assert refused.value.variable == missing
    assert f"set {missing} " in str(refused.value.hint)


@pytest.mark.parametrize("source", [data_source("sql"), data_source("dataverse"), databricks()])
def test_r4_an_address_that_cannot_be_used_is_refused_and_not_repeated(source: DataSource) -> None:
    with pytest.raises(SourceFailed) as failed:
        open_source(source, {"PLACE": "https://me:hunter2@host/x", "WAREHOUSE": "w"})
    assert "hunter2" not in f"{failed.value} {failed.value.hint}"


def test_a_sql_source_is_read(tmp_path: Path) -> None:
    file = tmp_path / "people.db"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE people AS SELECT 'ada' AS id")
    (piece,) = open_source(data_source("sql"), {"PLACE": f"sqlite:///{file}"}).pieces("SELECT id FROM people")
    assert [tuple(row) for row in piece.rows] == [("ada",)]


@pytest.fixture
def workspace(clock: VirtualClock) -> Iterator[Workspace]:
    workspace = Workspace(clock)
    with served(workspace) as workspace.address:
        yield workspace


def test_a_databricks_source_uses_the_token_beside_its_address(workspace: Workspace, clock: VirtualClock) -> None:
    environ = {"PLACE": workspace.address, "WAREHOUSE": "warehouse-1", "PLACE_TOKEN": " dapi-secret\n"}
    (piece,) = open_source(databricks(), environ, clock).pieces("SELECT id FROM people")
    assert [tuple(row) for row in piece.rows] == [("a",)]
    assert workspace.requests[0].body["warehouse_id"] == "warehouse-1"


def test_a_dataverse_source_asks_entra_for_its_organisation(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = ManagedIdentity(expires_on=0)
    source = open_source(data_source("dataverse"), {"PLACE": "https://localhost:1"}, clock)
    with served(identity) as address:
        monkeypatch.setenv("IDENTITY_ENDPOINT", f"{address}/msi/token")
        monkeypatch.setenv("IDENTITY_HEADER", "x")
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
        monkeypatch.setitem(sys.modules, "mssql_python", _DriverThatRefuses())
        with pytest.raises(SourceFailed, match="not today"):
            list(source.pieces("SELECT 1"))
    assert identity.resources == ["https://localhost"]


class _DriverThatRefuses:
    Error = OSError

    def pooling(self, *, enabled: bool) -> None:
        assert not enabled

    def connect(self, *_: Any, **__: Any) -> None:
        raise OSError("not today")


def test_choosing_imports_no_driver_that_the_runbook_does_not_need() -> None:
    program = (
        "import sys\nfrom matoolkit.sources import choice\n"
        "assert not {'httpx', 'azure.identity', 'mssql_python', 'sqlalchemy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
