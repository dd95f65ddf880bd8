"""Which source a runbook reads from, with what the environment holds for it (rule R4)."""

from collections.abc import Mapping
from pathlib import Path
from typing import assert_never

from matoolkit.clock import Clock, SystemClock
from matoolkit.clouds import CLOUDS, PUBLIC, Cloud
from matoolkit.errors import SourceFailed, SourceNotConfigured
from matoolkit.ports import Source
from matoolkit.runbook.model import DataSource
from matoolkit.settings import Settings, variable_names
from matoolkit.sources.addresses import Address, read_address
from matoolkit.sources.environment import required_variable
from matoolkit.tokens import Tokens

# Only these workspaces accept Entra tokens; those of other clouds need a token of their own.
_AZURE_WORKSPACES = tuple(f".{cloud.databricks}" for cloud in CLOUDS.values())


def open_source(
    data_source: DataSource, environ: Mapping[str, str], clock: Clock | None = None, cloud: Cloud = PUBLIC
) -> Source:
    """Return the source of a runbook. It holds nothing open between queries, so there is nothing to close.

    A library that a source needs is imported here, when the first runbook wants it.
    """
    clock = clock or SystemClock()
    if data_source.type == "file":
        return _file(data_source, environ)
    address = required_variable(environ, data_source.connection or "connection")
    match data_source.type:
        case "sql":
            from matoolkit.sources.sql import SqlSource

            return SqlSource(address)
        case "dataverse":
            return _dataverse(address, clock, cloud)
        case "databricks":
            return _databricks(data_source, address, environ, clock, cloud)
        case unknown:
            assert_never(unknown)


def _file(data_source: DataSource, environ: Mapping[str, str]) -> Source:
    from matoolkit.sources.files.source import FileSource

    folder = required_variable(environ, variable_names(Settings)["files"], needed_for="the folder of lists")
    # A file has times of the machine, whatever clock the rest follows.
    return FileSource(Path(folder), data_source.file or "", data_source.sheet, SystemClock())


def _dataverse(address: str, clock: Clock, cloud: Cloud) -> Source:
    from matoolkit.sources.dataverse import DataverseSource, entra_scope, read_dataverse_address
    from matoolkit.sources.tokens import entra_tokens

    place = read_dataverse_address(address)
    _require_in(cloud, place)
    return DataverseSource(address, entra_tokens(entra_scope(place), clock, cloud))


def _databricks(
    data_source: DataSource, address: str, environ: Mapping[str, str], clock: Clock, cloud: Cloud
) -> Source:
    from matoolkit.sources.databricks import ADDRESS_EXAMPLE, ENTRA_SCOPE, DatabricksSource
    from matoolkit.sources.tokens import GivenToken, entra_tokens

    warehouse = required_variable(environ, data_source.warehouse_id or "warehouse_id")
    variable = f"{data_source.connection}_TOKEN"
    tokens: Tokens
    if given := environ.get(variable, "").strip():
        tokens = GivenToken(given)
    elif (place := read_address(address, ADDRESS_EXAMPLE)).host.endswith(_AZURE_WORKSPACES):
        _require_in(cloud, place)
        tokens = entra_tokens(ENTRA_SCOPE, clock, cloud)
    else:
        raise SourceNotConfigured(variable, needed_for="which a workspace outside Azure needs")
    return DatabricksSource(address, warehouse, tokens, clock)


def _require_in(cloud: Cloud, place: Address) -> None:
    """Refuse a server of another cloud: no identity of ours gets a token for it."""
    if wrong := cloud.elsewhere(place.host):
        raise SourceFailed(f"the source {wrong}", hint="set MATOOLKIT_CLOUD to the cloud of the process's identity")
