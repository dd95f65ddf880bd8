"""What a case of the contract is, and the situations in which functions are called."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from tests.worker.functions.stage import JANE, LIST, OMAR, STAFF, World

Params = dict[str, Any]


def nothing(_: World) -> None:
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
    is_done: Callable[[World], bool]
    main: str
    absent: Params = field(default_factory=dict)
    when_absent: Literal["fails", "succeeds", "is incomplete"] = "fails"
    prepare: Callable[[World], None] = nothing
    conflict: Callable[[World], None] | None = None
    make_new: Callable[[World], None] = nothing

    @property
    def makes_accounts(self) -> bool:
        """Whether it says who made what it is about."""
        return isinstance(self.returns, dict) and "Created" in self.returns

    def __str__(self) -> str:
        return self.function


def jane_is_new(world: World) -> None:
    """Jane was made this moment: nobody sees her for twelve seconds."""
    jane = world.user()
    jane.created_at = world.clock.now()
    world.tenant.directory.lags.graph = world.tenant.directory.lags.exchange = 12


def omar_has(address: str) -> Callable[[World], None]:
    def take(world: World) -> None:
        omar = world.user(OMAR)
        world.tenant.directory.change_addresses(omar, (*omar.addresses[-1][1], f"smtp:{address}"))

    return take


def omar_is_called(upn: str) -> Callable[[World], None]:
    def rename(world: World) -> None:
        world.tenant.directory.rename(world.user(OMAR), upn)

    return rename


def jane_is_in_staff(world: World) -> None:
    world.tenant.directory.groups[STAFF].members[JANE] = world.clock.now() - timedelta(days=1)


def jane_is_on_the_list(world: World) -> None:
    world.tenant.directory.groups[LIST].members[JANE] = world.clock.now() - timedelta(days=1)


def jane_is_a_guest(world: World) -> None:
    world.tenant.directory.rename(world.user(), "jane_old.example#EXT#@contoso.example")
    world.user().properties |= {"externalUserState": "Accepted", "userType": "Guest"}
    world.user().is_external = True


def jane_has_an_account_elsewhere(world: World) -> None:
    """Her mail is an address elsewhere, as an invitation needs it."""
    world.tenant.directory.change_addresses(world.user(), ("SMTP:jane@elsewhere.example",))


def new_user(world: World) -> Any:
    return world.tenant.directory.owner_of_upn("new.person@contoso.example")


def somebody_made_the_new_user(world: World) -> None:
    """Another delivery of the same job was quicker, and the account is not seen yet."""
    world.tenant.directory.add_user({**NEW_USER_AS_GRAPH_KNOWS_IT})
    world.tenant.directory.lags.graph = 12


def the_new_mail_user_is_not_seen(world: World) -> None:
    """What Exchange makes it does not show at once."""
    world.tenant.directory.lags.exchange = 12


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
