"""Mailboxes that move here from another tenant: a mail user goes in, a mailbox comes out.

A move that is begun copies for a while, waits until it may complete, and completes; one whose mail user is not what the
other tenant's mailbox needs fails while it copies.
"""

from datetime import datetime, timedelta
from typing import Any

from matoolkit.worker.tenant.directory import (
    MAIL_USER,
    MAILBOX,
    NO_GUID,
    Directory,
    MailboxMove,
    User,
    is_smtp,
    primary_of,
)
from matoolkit.worker.tenant.refusals import Cmdlet, Rows, check_names, missing, wrong

ENDPOINT = "source"
_EXISTS = "Microsoft.Exchange.Management.RecipientTasks.ManagementObjectAlreadyExistsException"
_NEW = ("Identity", "Remote", "SourceEndpoint", "TargetDeliveryDomain", "CompleteAfter", "BatchName")


class Moves:
    """Cmdlets for moves."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.cmdlets: dict[str, Cmdlet] = {
            "New-MoveRequest": self._new,
            "Get-MoveRequest": lambda given: [self._shown(self._one(given))],
            "Get-MoveRequestStatistics": lambda given: [self._told(self._one(given))],
            "Set-MoveRequest": self._set,
            "Remove-MoveRequest": self._remove,
        }

    def go_on(self) -> None:
        """Let every move come as far as time allows."""
        for move in self._directory.moves.values():
            user = self._directory.users.get(move.user)
            if user is None or move.is_completed:
                continue
            if move.failure is None and self._is_copied(move):
                move.failure = self._problem(user)
            if move.failure is None and self._is_copied(move) and move.complete_after <= self._directory.clock.now():
                move.is_completed = True
                user.mail |= {"RecipientTypeDetails": MAILBOX, "ExternalEmailAddress": None}

    def _new(self, given: dict[str, Any]) -> Rows:
        check_names(given, _NEW)
        user = self._user(given)
        if user.id in self._directory.moves:
            raise wrong(f"The mailbox of '{user.upn}' already has a move request.", _EXISTS)
        if given.get("SourceEndpoint") != ENDPOINT or not given.get("Remote"):
            raise wrong(f"The migration endpoint '{given.get('SourceEndpoint')}' couldn't be found.")
        if user.kind != MAIL_USER or user.mail.get("ExchangeGuid", NO_GUID) == NO_GUID:
            raise wrong(f"The target mail user '{user.upn}' doesn't have an ExchangeGuid.")
        domain = str(given.get("TargetDeliveryDomain")).casefold()
        if not any(is_smtp(one) and one.casefold().endswith(f"@{domain}") for one in user.current):
            raise wrong(f"The target mail user '{user.upn}' has no address in the domain '{domain}'.")
        now = self._directory.clock.now()
        move = MailboxMove(user.id, now, _moment(given.get("CompleteAfter"), now), given.get("BatchName"))
        self._directory.moves[user.id] = move
        return [self._shown(move)]

    def _one(self, given: dict[str, Any]) -> MailboxMove:
        check_names(given, ("Identity",))
        return self._move(given)

    def _set(self, given: dict[str, Any]) -> None:
        check_names(given, ("Identity", "CompleteAfter"))
        move = self._move(given)
        if move.is_completed:
            raise wrong("The move request has completed and can't be changed.")
        move.complete_after = _moment(given.get("CompleteAfter"), self._directory.clock.now())
        self.go_on()

    def _remove(self, given: dict[str, Any]) -> None:
        check_names(given, ("Identity", "Confirm"))
        if given.get("Confirm") is not False:
            raise wrong("A command that prompts the user failed because the host does not support interaction.")
        del self._directory.moves[self._move(given).user]

    def _user(self, given: dict[str, Any]) -> User:
        identity = str(given.get("Identity", ""))
        user = self._directory.user_for_exchange(identity)
        if user is None:
            raise missing(identity)
        return user

    def _move(self, given: dict[str, Any]) -> MailboxMove:
        move = self._directory.moves.get(self._user(given).id)
        if move is None:
            raise missing(str(given.get("Identity", "")))
        return move

    def _is_copied(self, move: MailboxMove) -> bool:
        return move.started_at + timedelta(seconds=self._directory.lags.move) <= self._directory.clock.now()

    def _problem(self, user: User) -> str | None:
        """Say why the mailbox cannot come to this mail user, if it cannot."""
        guid = user.mail.get("ExchangeGuid")
        source = self._directory.remote_mailboxes.get(str(guid))
        if source is None:
            return f"SourceMailboxNotFoundPermanentException: there is no mailbox '{guid}' in the other tenant."
        present = {one.casefold() for one in user.current}
        if f"x500:{source['LegacyExchangeDN']}".casefold() not in present:
            return "TargetUserMissingX500Exception: the source's LegacyExchangeDN is no proxy address of the target."
        if source.get("ArchiveGuid", NO_GUID) != user.mail.get("ArchiveGuid", NO_GUID):
            return "ArchiveGuidMismatchException: the archive of the source isn't that of the target."
        foreign = [one for one in user.current if is_smtp(one) and not self._directory.is_verified(one)]
        if foreign:
            return f"TargetAddressNotAcceptedException: {foreign[0]} isn't of an accepted domain."
        if not user.mail.get("ExternalEmailAddress") or primary_of(user.current) is None:
            return "TargetMailUserInvalidException: the target has no external address."
        return None

    def _state(self, move: MailboxMove) -> tuple[str, int]:
        if move.is_completed:
            return "Completed", 100
        if move.failure:
            return "Failed", 20
        return ("Synced", 95) if self._is_copied(move) else ("InProgress", 20)

    def _told(self, move: MailboxMove) -> dict[str, Any]:
        return {**self._shown(move), "PercentComplete": self._state(move)[1], "Message": move.failure or ""}

    def _shown(self, move: MailboxMove) -> dict[str, Any]:
        user = self._directory.users[move.user]
        return {
            "Identity": user.properties["displayName"],
            "DisplayName": user.properties["displayName"],
            "ExchangeGuid": user.mail.get("ExchangeGuid", NO_GUID),
            "Status": self._state(move)[0],
            "BatchName": move.batch,
        }


def _moment(value: Any, now: datetime) -> datetime:
    return now if value is None else datetime.fromisoformat(str(value).replace(" ", "T"))
