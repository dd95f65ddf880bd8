"""Which source a runbook reads from, with what the environment holds for it (rule R4)."""

from collections.abc import Mapping
from typing import assert_never

from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import SourceNotConfigured
from matoolkit.ports import Source
from matoolkit.runbook.model import DataSource
from matoolkit.sources.addresses import read_address
from matoolkit.sources.environment import required_variable
from matoolkit.tokens import Tokens

# Only these workspaces accept Entra tokens; those of other clouds need a token of their own.
_AZURE_WORKSPACES = (".azuredatabricks.net", ".databricks.azure.us", ".databricks.azure.cn")


def open_source(data_source: DataSource, environ: Mapping[str, str], clock: Clock | None = None) -> Source:
    """Return the source of a runbook. It holds nothing open between queries, so there is nothing to close.

    A library that a source needs is imported here, when the first runbook wants it.
    """
    clock = clock or SystemClock()
    address = required_variable(environ, data_source.connection)
    match data_source.type:
        case "sql":
            from matoolkit.sources.sql import SqlSource

            return SqlSource(address)
        case "dataverse":
            return _dataverse(address, clock)
        case "databricks":
            return _databricks(data_source, address, environ, clock)
        case unknown:
            assert_never(unknown)


def _dataverse(address: str, clock: Clock) -> Source:
    from matoolkit.sources.dataverse import DataverseSource, entra_scope, read_dataverse_address
    from matoolkit.sources.tokens import entra_tokens

    return DataverseSource(address, entra_tokens(entra_scope(read_dataverse_address(address)), clock))


def _databricks(data_source: DataSource, address: str, environ: Mapping[str, str], clock: Clock) -> Source:
    from matoolkit.sources.databricks import ADDRESS_EXAMPLE, ENTRA_SCOPE, DatabricksSource
    from matoolkit.sources.tokens import GivenToken, entra_tokens

    warehouse = required_variable(environ, data_source.warehouse_id or "warehouse_id")
    variable = f"{data_source.connection}_TOKEN"
    tokens: Tokens
    if given := environ.get(variable, "").strip():
        tokens = GivenToken(given)
    elif read_address(address, ADDRESS_EXAMPLE).host.endswith(_AZURE_WORKSPACES):
        tokens = entra_tokens(ENTRA_SCOPE, clock)
    else:
        raise SourceNotConfigured(variable, needed_for="which a workspace outside Azure needs")
    return DatabricksSource(address, warehouse, tokens, clock)
