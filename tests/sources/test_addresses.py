"""Rule R4: the forms in which addresses of sources may be written."""

import pytest

from matoolkit.errors import SourceFailed
from matoolkit.sources.addresses import Address, read_address
from matoolkit.sources.dataverse import entra_scope, read_dataverse_address

EXAMPLE = "https://host.example"


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("https://adb-1.2.azuredatabricks.net", "https://adb-1.2.azuredatabricks.net"),
        ("https://adb-1.2.azuredatabricks.net/", "https://adb-1.2.azuredatabricks.net"),
        (" HTTPS://ADB-1.2.AzureDatabricks.net:443 ", "https://adb-1.2.azuredatabricks.net:443"),
        ("adb-1.2.azuredatabricks.net", "https://adb-1.2.azuredatabricks.net"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_r4_an_address_is_a_host_with_or_without_scheme_and_port(text: str, origin: str) -> None:
    assert read_address(text, EXAMPLE).origin == origin


@pytest.mark.parametrize(
    "text",
    [
        "https://",
        "hunter2 with spaces",
        "https://host.example/hunter2",
        "https://host.example?key=hunter2",
        "https://host.example#hunter2",
        "https://me:hunter2@host.example",
        "https://host.example:hunter2",
        "https://[hunter2",
        "http://hunter2.example",
        "ftp://hunter2.example",
        "https://host;Password=hunter2",
    ],
)
def test_r4_an_address_that_cannot_be_used_is_refused_with_an_example_and_not_repeated(text: str) -> None:
    with pytest.raises(SourceFailed) as failed:
        read_address(text, EXAMPLE)
    assert EXAMPLE in str(failed.value.hint)
    assert "hunter2" not in f"{failed.value} {failed.value.hint}"


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("https://org.crm4.dynamics.com", None),
        ("https://org.crm4.dynamics.com/", None),
        ("https://org.crm4.dynamics.com:5558", 5558),
        ("org.crm4.dynamics.com", None),
        ("org.crm4.dynamics.com,5558", 5558),
        ("Server=org.crm4.dynamics.com,5558;Authentication=Active Directory Default", 5558),
        ("Encrypt=True; Data Source = tcp:org.crm4.dynamics.com ;", None),
    ],
)
def test_r4_a_dataverse_address_may_also_be_written_as_sql_server_writes_it(text: str, port: int | None) -> None:
    address = read_dataverse_address(text)
    assert address == Address("org.crm4.dynamics.com", port)
    assert entra_scope(address) == "https://org.crm4.dynamics.com/.default"


@pytest.mark.parametrize("text", ["Database=hunter2", "Server=;Password=hunter2", "https://org/api/data"])
def test_r4_a_dataverse_address_without_a_server_is_refused(text: str) -> None:
    with pytest.raises(SourceFailed, match="cannot be read") as failed:
        read_dataverse_address(text)
    assert "hunter2" not in f"{failed.value} {failed.value.hint}"
