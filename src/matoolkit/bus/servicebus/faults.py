"""What the SDK's faults mean to us: which error of ours, and whether a new link may help at once."""

from matoolkit.bus.servicebus.address import Address
from matoolkit.errors import (
    BusBusy,
    BusEntityDisabled,
    BusEntityMissing,
    BusFull,
    BusSignInFailed,
    BusUnavailable,
    MatoolkitError,
)
from matoolkit.tokens import NoToken, first_line

# What AMQP and Service Bus call a message that is wrong in itself.
_REFUSALS = (
    b"com.microsoft:argument-error",
    b"com.microsoft:argument-out-of-range",
    b"amqp:not-allowed",
    b"amqp:invalid-field",
    b"amqp:link:message-size-exceeded",
)


def is_lost(fault: BaseException) -> bool:
    """Whether a message is no longer ours: its lock ran out, or it is settled already."""
    from azure.servicebus.exceptions import MessageAlreadySettled, MessageLockLostError, MessageNotFoundError

    return isinstance(fault, MessageLockLostError | MessageAlreadySettled | MessageNotFoundError)


def may_pass_with_a_new_link(fault: BaseException) -> bool:
    """Whether the link is to blame, as after ten idle minutes or a drop, and not the namespace."""
    from azure.servicebus import exceptions as sdk

    return not isinstance(
        _bared(fault),
        MatoolkitError
        | NoToken
        | sdk.MessagingEntityNotFoundError
        | sdk.MessagingEntityDisabledError
        | sdk.ServiceBusAuthorizationError
        | sdk.ServiceBusQuotaExceededError
        | sdk.ServiceBusServerBusyError,
    )


def is_refusal(fault: BaseException) -> bool:
    """Whether a send failed because of what was sent, so that every later try fails too."""
    from azure.core.exceptions import AzureError
    from azure.servicebus.exceptions import MessageSizeExceededError

    inner = fault.inner_exception if isinstance(fault, AzureError) else None
    return isinstance(fault, MessageSizeExceededError) or getattr(inner, "condition", None) in _REFUSALS


def leaves_the_link_alone(fault: BaseException) -> bool:
    """Whether a fault says nothing about the link over which it came."""
    from azure.servicebus.exceptions import ServiceBusQuotaExceededError, ServiceBusServerBusyError

    return isinstance(fault, MatoolkitError | ServiceBusQuotaExceededError | ServiceBusServerBusyError)


def told(fault: BaseException, address: Address, entity: str) -> MatoolkitError:
    """Return the error of ours for a fault of the SDK; its text never has the key in it."""
    from azure.servicebus import exceptions as sdk

    fault = _bared(fault)
    if isinstance(fault, MatoolkitError):
        return fault
    why = address.concealed(first_line(fault)) if isinstance(fault, Exception) else type(fault).__name__
    match fault:
        case sdk.MessagingEntityNotFoundError():
            return BusEntityMissing(entity, address.host)
        case sdk.MessagingEntityDisabledError():
            return BusEntityDisabled(entity, address.host)
        case NoToken():
            return BusSignInFailed(address.host, why, has_token=False)
        case sdk.ServiceBusAuthenticationError() | sdk.ServiceBusAuthorizationError():
            return BusSignInFailed(address.host, why)
        case sdk.ServiceBusServerBusyError():
            return BusBusy(entity)
        case sdk.ServiceBusQuotaExceededError():
            return BusFull(entity)
        case TimeoutError():
            return BusUnavailable(f"Service Bus {address.host} does not answer in time ({entity})")
    return BusUnavailable(f"Service Bus {address.host} cannot be used ({entity}): {why}")


def _bared(fault: BaseException) -> BaseException:
    """Take off what the SDK wraps around a token that it did not get; it wraps every fault that is not its own."""
    from azure.core.exceptions import AzureError

    inner = fault.inner_exception if isinstance(fault, AzureError) else None
    return inner if isinstance(inner, NoToken) else fault
