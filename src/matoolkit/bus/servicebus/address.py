"""Where a Service Bus namespace is, and how this process signs in to it."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import SecretStr

from matoolkit.clouds import PUBLIC, Cloud
from matoolkit.errors import BusAddressInvalid, BusLibraryMissing
from matoolkit.records import record
from matoolkit.tokens import NoToken, authority_of, why_no_token

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken
    from azure.servicebus.aio import ServiceBusClient


@record
class Address:
    """A namespace, in which the process's Entra identity signs in, or a connection string, which has a key in it."""

    namespace: str | None = None
    connection_string: SecretStr | None = None
    cloud: Cloud = PUBLIC

    @property
    def host(self) -> str:
        """The namespace's name for people; it holds no secret."""
        if self.connection_string is None:
            return self.namespace or ""
        parts = _parts(self.connection_string.get_secret_value())
        return parts.get("endpoint", "").partition("://")[2].strip("/")

    def concealed(self, text: str) -> str:
        """Return a text of the SDK without the key, should the SDK ever repeat it."""
        if self.connection_string is None:
            return text
        secret = self.connection_string.get_secret_value()
        parts = _parts(secret)
        for hidden in (secret, parts.get("sharedaccesskey"), parts.get("sharedaccesssignature")):
            if hidden:
                text = text.replace(hidden, "***")
        return text

    def check(self) -> None:
        """Find out before anything is sent whether the library is there and the address can be read."""
        try:
            from azure.servicebus import parse_connection_string

            if self.connection_string is None:
                # Asynchronous credentials need aiohttp, which the extra installs as well.
                import aiohttp  # noqa: F401
                import azure.identity.aio  # noqa: F401
        except ImportError:
            raise BusLibraryMissing from None
        if self.connection_string is not None:
            try:
                found = parse_connection_string(self.connection_string.get_secret_value())
            except ValueError:
                # The text of the fault is not repeated: it may quote the string.
                raise BusAddressInvalid from None
            if found.entity_path:
                # The SDK would refuse every other topic, each time that one is used.
                raise BusAddressInvalid(f"is only for {found.entity_path} (EntityPath)")

    def credential(self) -> "Identity | None":
        """Return the identity of the process, to be closed in the end; a connection string needs none."""
        return Identity(self.cloud) if self.connection_string is None else None

    def client(self, credential: "Identity | None") -> "ServiceBusClient":
        """Return a client, which has not connected yet."""
        from azure.servicebus.aio import ServiceBusClient

        # We try again ourselves: the SDK's own tries would take longer than a claim or a lock lasts.
        if credential is not None:
            return ServiceBusClient(self.namespace or "", credential, retry_total=0)
        secret = self.connection_string.get_secret_value() if self.connection_string else ""
        return ServiceBusClient.from_connection_string(secret, retry_total=0)


class Identity:
    """The identity of this process, as the SDK asks for its tokens. If it gets none, a `NoToken` says why."""

    def __init__(self, cloud: Cloud) -> None:
        from azure.identity.aio import DefaultAzureCredential

        self._found = DefaultAzureCredential(authority=authority_of(cloud))

    async def get_token(self, *scopes: str, **options: Any) -> "AccessToken":
        """Return a token for the bus."""
        from azure.core.exceptions import AzureError

        try:
            return await self._found.get_token(*scopes, **options)
        except AzureError as fault:
            raise NoToken(why_no_token(str(fault), len(self._found.credentials))) from fault

    async def close(self) -> None:
        """Close its connections."""
        await self._found.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _parts(connection_string: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in connection_string.split(";"))
    return {name.strip().lower(): value.strip() for name, _, value in pairs}
