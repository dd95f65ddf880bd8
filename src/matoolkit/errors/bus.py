"""Errors of messages and of what carries them."""

from matoolkit.errors.root import MatoolkitError, Refused


class UnreadableMessage(MatoolkitError):
    """A message cannot be read."""

    code = "BU422"
    http_status = 422

    def __init__(self, why: str) -> None:
        super().__init__(f"the message cannot be read: {why}")


class MessageTooLarge(MatoolkitError):
    """A message is larger than any bus would carry."""

    code = "BU413"
    http_status = 413

    def __init__(self, message_id: str, size: int, largest: int) -> None:
        super().__init__(
            f"message {message_id} has {size:,} bytes; at most {largest:,} can be sent",
            hint="large data belongs where the worker can fetch it, not in parameters or results",
        )
        self.message_id = message_id


class UnwritableMessage(MatoolkitError):
    """A message cannot be written: it is nested too deep."""

    code = "BU414"
    http_status = 413

    def __init__(self, message_id: str, why: str) -> None:
        super().__init__(f"message {message_id} cannot be written: {why}", hint="use fewer levels of nesting")
        self.message_id = message_id


class MessageRefused(MatoolkitError):
    """A message is not one that the bus takes, and never will be: its id may be too long."""

    code = "BU415"
    http_status = 422

    def __init__(self, what: str, why: str) -> None:
        super().__init__(
            f"the bus does not take {what}: {why}",
            hint="messages in the outbox are tried one by one; after ten tries a refused one is a dead letter",
        )


class BusUnavailable(MatoolkitError):
    """The bus cannot be reached; messages wait until it is back."""

    code = "BU503"
    http_status = 503
    transient = True


class BusSignInFailed(BusUnavailable):
    """The identity of this process may not use the bus, or cannot sign in; messages wait until it can."""

    code = "BU401"

    def __init__(self, host: str, why: str, *, has_token: bool = True) -> None:
        rights = (
            "its identity needs the roles Azure Service Bus Data Sender and Data Receiver on the namespace;"
            " a new role takes some minutes"
        )
        identity = "it needs a managed identity, the variables AZURE_CLIENT_ID and so on, or a sign-in to the Azure CLI"
        super().__init__(
            f"Service Bus {host} does not let this process in: {why}", hint=rights if has_token else identity
        )


class BusManagingRefused(MatoolkitError):
    """The identity of this process may not look at topics and subscriptions, or may not create them."""

    code = "BU403"
    http_status = 403
    exit_code = 4

    def __init__(self, host: str, why: str) -> None:
        super().__init__(
            f"Service Bus {host} does not let this identity manage it: {why}",
            hint="it needs the role Azure Service Bus Data Owner on the namespace, or a connection string whose key has"
            " the right Manage; a new role takes some minutes",
        )


class WorkerHasNoSubscription(MatoolkitError):
    """A job is for a worker that has no subscription on the bus, so it would be lost."""

    code = "BU405"

    def __init__(self, worker_id: str) -> None:
        super().__init__(
            f"worker {worker_id} has no subscription on the bus, so a job for it would be lost:"
            f" run `matoolkit bus create --worker {worker_id}`, then retry"
        )
        self.worker_id = worker_id


class BusEntityMissing(BusUnavailable):
    """A topic or a subscription does not exist; messages wait until it is there."""

    code = "BU404"

    def __init__(self, entity: str, host: str) -> None:
        super().__init__(
            f"{entity} does not exist in Service Bus {host}",
            hint="`matoolkit bus check` says what is missing, and `matoolkit bus create` makes it",
        )
        self.entity = entity


class BusEntityDisabled(BusUnavailable):
    """A person disabled a topic or a subscription; messages wait until it is enabled."""

    code = "BU423"

    def __init__(self, entity: str, host: str) -> None:
        super().__init__(
            f"{entity} is disabled in Service Bus {host}", hint="nothing is lost; set its status to Active to go on"
        )


class BusBusy(BusUnavailable):
    """The bus asks to wait."""

    code = "BU429"

    def __init__(self, entity: str) -> None:
        super().__init__(
            f"Service Bus is busy ({entity})", hint="nothing is lost; if it lasts, the namespace needs more capacity"
        )


class BusFull(BusUnavailable):
    """A topic has no room left; messages wait until it has."""

    code = "BU507"

    def __init__(self, entity: str) -> None:
        super().__init__(
            f"{entity} is full, or the namespace has too many connections",
            hint="messages in the outbox wait; look at dead letters and at subscriptions that nobody reads",
        )


class BusLibraryMissing(Refused):
    """The library for Azure Service Bus is not installed."""

    code = "BU502"

    def __init__(self) -> None:
        super().__init__("the library for Azure Service Bus is not installed", hint="pip install 'matoolkit[azure]'")


class BusAddressInvalid(Refused):
    """The connection string of the Service Bus cannot be used."""

    code = "BU400"

    def __init__(self, why: str = "cannot be read") -> None:
        super().__init__(
            f"the connection string of the Service Bus {why}",
            hint="one of the namespace looks like"
            " Endpoint=sb://NAME.servicebus.windows.net/;SharedAccessKeyName=...;SharedAccessKey=...",
        )
