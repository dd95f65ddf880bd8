"""What a case of the contract is, and the situations in which functions are called."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from tests.worker.functions.office import JANE, LIST, OMAR, STAFF, Office

Params = dict[str, Any]


def nothing(_: Office) -> None:
    """Jane, Omar and the staff are enough."""


@dataclass(frozen=True)
class Case:
    """A function as it is called. `prepare` makes the state, `is_done` looks at it, `main` is a part of its main call.

    `absent` are the parameters when what it is about is missing, and `when_absent` what it does then. `conflict` makes
    a state in which it cannot succeed, `make_new` one in which what it is about was made a moment ago.
    """

    function: str
    params: Params
    returns: Any
    is_done: Callable[[Office], bool]
    main: str
    absent: Params = field(default_factory=dict)
    when_absent: Literal["fails", "succeeds", "is incomplete"] = "fails"
    prepare: Callable[[Office], None] = nothing
    conflict: Callable[[Office], None] | None = None
    make_new: Callable[[Office], None] = nothing

    @property
    def makes_accounts(self) -> bool:
        """Whether it says who made what it is about."""
        return isinstance(self.returns, dict) and "Created" in self.returns

    def __str__(self) -> str:
        return self.function


def jane_is_new(office: Office) -> None:
    """Jane was made this moment: nobody sees her for twelve seconds."""
    jane = office.user()
    jane.created_at = office.clock.now()
    office.tenant.directory.lags.graph = office.tenant.directory.lags.exchange = 12


def omar_has(address: str) -> Callable[[Office], None]:
    def take(office: Office) -> None:
        omar = office.user(OMAR)
        office.tenant.directory.change_addresses(omar, (*omar.addresses[-1][1], f"smtp:{address}"))

    return take


def omar_is_called(upn: str) -> Callable[[Office], None]:
    def rename(office: Office) -> None:
        office.tenant.directory.rename(office.user(OMAR), upn)

    return rename


def jane_is_in_staff(office: Office) -> None:
    office.tenant.directory.groups[STAFF].members[JANE] = office.clock.now() - timedelta(days=1)


def jane_is_on_the_list(office: Office) -> None:
    office.tenant.directory.groups[LIST].members[JANE] = office.clock.now() - timedelta(days=1)


def jane_is_a_guest(office: Office) -> None:
    office.tenant.directory.rename(office.user(), "jane_old.example#EXT#@contoso.example")
    office.user().properties |= {"externalUserState": "Accepted", "userType": "Guest"}
    office.user().is_external = True


def jane_has_an_account_elsewhere(office: Office) -> None:
    """Her mail is an address elsewhere, as an invitation needs it."""
    office.tenant.directory.change_addresses(office.user(), ("SMTP:jane@elsewhere.example",))


def new_user(office: Office) -> Any:
    return office.tenant.directory.owner_of_upn("new.person@contoso.example")


def somebody_made_the_new_user(office: Office) -> None:
    """Another delivery of the same job was quicker, and the account is not seen yet."""
    office.tenant.directory.add_user({**NEW_USER_AS_GRAPH_KNOWS_IT})
    office.tenant.directory.lags.graph = 12


def the_new_mail_user_is_not_seen(office: Office) -> None:
    """What Exchange makes it does not show at once."""
    office.tenant.directory.lags.exchange = 12


NEW_USER = {
    "DisplayName": "New Person",
    "UserPrincipalName": "new.person@contoso.example",
    "MailNickname": "new.person",
}
NEW_USER_AS_GRAPH_KNOWS_IT = {
    "displayName": "New Person",
    "userPrincipalName": "new.person@contoso.example",
    "mailNickname": "new.person",
}
