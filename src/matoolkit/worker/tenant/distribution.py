"""Groups whose members Exchange keeps: distribution lists and mail-enabled security groups."""

from typing import Any

from matoolkit.worker.tenant.directory import Directory, Group, User
from matoolkit.worker.tenant.recipients import shown
from matoolkit.worker.tenant.refusals import Cmdlet, Rows, check_names, missing, wrong

_EXISTS = "Microsoft.Exchange.Data.Directory.ADObjectAlreadyExistsException"
_PRESENT = "Microsoft.Exchange.Management.Tasks.MemberAlreadyExistsException"
_ABSENT = "Microsoft.Exchange.Management.Tasks.MemberNotFoundException"
_MANAGER = "Microsoft.Exchange.Management.Tasks.OperationRequiresGroupManagerException"
_MEMBER = ("Identity", "Member", "BypassSecurityGroupManagerCheck", "Confirm")
_NEW = ("Name", "DisplayName", "Alias", "PrimarySmtpAddress", "Type", "Notes")


class DistributionGroups:
    """Cmdlets for groups that have an address."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.cmdlets: dict[str, Cmdlet] = {
            "Get-DistributionGroup": lambda given: [_shown(self._group(given, is_read=True))],
            "Get-DistributionGroupMember": self._members,
            "New-DistributionGroup": self._new,
            "Add-DistributionGroupMember": self._add,
            "Remove-DistributionGroupMember": self._remove,
        }

    def _members(self, given: dict[str, Any]) -> Rows:
        check_names(given, ("Identity", "ResultSize"))
        users = self._directory.users
        return [shown(users[member]) for member in self._group(given).members if member in users]

    def _new(self, given: dict[str, Any]) -> Rows:
        check_names(given, _NEW)
        name = str(given.get("Name") or "")
        if any(name.casefold() == group.display_name.casefold() for group in self._directory.groups.values()):
            raise wrong(f'The name "{name}" is already being used. Please try another name.', _EXISTS)
        kind = "mail-enabled security" if given.get("Type") == "Security" else "distribution"
        group = self._directory.add_group(name, kind=kind, is_seeded=False)  # type: ignore[arg-type]
        group.mail = str(given.get("PrimarySmtpAddress") or group.mail)
        return [_shown(group)]

    def _add(self, given: dict[str, Any]) -> None:
        group, user = self._both(given)
        if user.id in group.members:
            text = f'The recipient "{user.upn}" is already a member of the group "{group.display_name}".'
            raise wrong(text, _PRESENT)
        group.members[user.id] = self._directory.clock.now()

    def _remove(self, given: dict[str, Any]) -> None:
        if given.get("Confirm") is not False:
            raise wrong("A command that prompts the user failed because the host does not support interaction.")
        group, user = self._both(given)
        if user.id not in group.members:
            raise wrong(f'The recipient "{user.upn}" isn\'t a member of the group "{group.display_name}".', _ABSENT)
        del group.members[user.id]

    def _both(self, given: dict[str, Any]) -> tuple[Group, User]:
        check_names(given, _MEMBER)
        group = self._group(given)
        if not given.get("BypassSecurityGroupManagerCheck"):
            text = (
                "You don't have sufficient permissions. This operation can only be performed by a manager of the group."
            )
            raise wrong(text, _MANAGER)
        member = str(given.get("Member", ""))
        user = self._directory.user_for_exchange(member)
        if user is None or user.kind == "User":
            raise missing(member)
        return group, user

    def _group(self, given: dict[str, Any], *, is_read: bool = False) -> Group:
        identity = str(given.get("Identity", ""))
        folded = identity.casefold()
        for group in self._directory.groups.values():
            names = {group.id, group.mail.casefold(), group.display_name.casefold()}
            if group.is_in_exchange and folded in names:
                return group
        raise missing(identity, is_read=is_read)


def _shown(group: Group) -> dict[str, Any]:
    return {
        "Identity": group.display_name,
        "Name": group.display_name,
        "DisplayName": group.display_name,
        "PrimarySmtpAddress": group.mail,
        "ExternalDirectoryObjectId": group.id,
        "Guid": group.id,
        "RecipientTypeDetails": "MailUniversalSecurityGroup"
        if group.kind == "mail-enabled security"
        else "MailUniversalDistributionGroup",
    }
