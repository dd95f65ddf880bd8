"""How Exchange says no: a tag, the exception's name and its text, in one line."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

from matoolkit.worker.tenant.calls import Answer, Refusal

_NOT_FOUND = "Microsoft.Exchange.Configuration.Tasks.ManagementObjectNotFoundException"
WRONG = "Microsoft.Exchange.Configuration.Tasks.ParameterBindingException"
TAKEN = "Microsoft.Exchange.Management.RecipientTasks.ProxyAddressExistsException"
_BUDGET = "Microsoft.Exchange.Data.Directory.SystemConfiguration.OverBudgetException"
_DIRECTORY = "Microsoft.Exchange.Data.Directory.UnableToWriteToAadException"

Rows = list[dict[str, Any]]
# A cmdlet that changes something returns nothing.
Cmdlet = Callable[[dict[str, Any]], Rows | None]

_TOO_MANY = b"The maximum number of concurrent requests per tenant has been exceeded. Please try again later."


def failure(status: int, exception: str, message: str) -> Refusal:
    """Return a refusal in the words of Exchange."""
    return Refusal(status, HTTPStatus(status).phrase.replace(" ", ""), f"Ex000000|{exception}|{message}")


def wrong(message: str, exception: str = WRONG) -> Refusal:
    """Return a refusal of what was asked for."""
    return failure(HTTPStatus.BAD_REQUEST, exception, message)


def missing(identity: str, *, is_read: bool = False) -> Refusal:
    """Return what is said of an object that is not there: 404 to who reads it, a server's error to who changes it."""
    text = f"The operation couldn't be performed because object '{identity}' couldn't be found on 'DC.example'."
    return failure(HTTPStatus.NOT_FOUND if is_read else HTTPStatus.INTERNAL_SERVER_ERROR, _NOT_FOUND, text)


def busy(form: str) -> Refusal | Answer:
    """Return one of the forms in which Exchange says that it is busy."""
    match form:
        case "requests":
            return Answer(HTTPStatus.BAD_REQUEST, _TOO_MANY)
        case "directory":
            text = "An error occurred while trying to write to the directory. Please try again."
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, _DIRECTORY, text)
        case "timeout":
            return Answer(HTTPStatus.REQUEST_TIMEOUT)
        case _:
            text = "The server is busy: the budget of the tenant is used up."
            return failure(HTTPStatus.INTERNAL_SERVER_ERROR, _BUDGET, text)


def check_names(parameters: dict[str, Any], known: Iterable[str]) -> None:
    """Refuse a parameter that a cmdlet does not have."""
    for name in parameters:
        if name not in known:
            raise wrong(f"A parameter cannot be found that matches parameter name '{name}'.")
