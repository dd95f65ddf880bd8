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


class BusUnavailable(MatoolkitError):
    """The bus cannot be reached; messages wait until it is back."""

    code = "BU503"
    http_status = 503
    transient = True


class BusNotSupported(Refused):
    """The settings name a bus that this version does not have."""

    code = "BU501"
    http_status = 501

    def __init__(self, name: str) -> None:
        super().__init__(
            f"MATOOLKIT_BUS is {name}, which this version cannot use yet",
            hint="use sql: the messages are then in tables of the state database",
        )
