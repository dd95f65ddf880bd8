"""A tenant's state in a file, so that an account which was made is there after a crash, too.

Every change writes a new file that replaces the old one as a whole, before the change is answered: an answered change
is never lost. That suits the handful of people of a demo. Faults, tokens and the list of calls are not kept.
"""

import os
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from matoolkit.errors import UnreadableFile
from matoolkit.privacy import private_file
from matoolkit.worker.tenant.directory import Directory, Group, Lags, MailboxMove, User


class StateFile:
    """A file that holds a directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written = b""

    def load(self, directory: Directory) -> bool:
        """Fill a directory with what the file holds; says whether there is a file."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return False
        except OSError as fault:
            raise UnreadableFile(str(self.path), (fault.strerror or str(fault)).lower()) from fault
        try:
            _put(directory, orjson.loads(content))
        except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as fault:
            raise UnreadableFile(str(self.path), f"it is not the state of a tenant: {fault}") from fault
        self._written = content
        return True

    def keep(self, directory: Directory) -> None:
        """Write what has changed; it is on the disk when this returns."""
        content = orjson.dumps(_taken(directory))
        if content == self._written:
            return
        unfinished = self.path.with_name(f"{self.path.name}.new")
        private_file(unfinished)
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.path)
        _settle_folder(self.path.parent)
        self._written = content


def _taken(directory: Directory) -> dict[str, Any]:
    return {
        "lags": asdict(directory.lags),
        "users": [asdict(user) for user in directory.users.values()],
        "deleted": [asdict(user) for user in directory.deleted.values()],
        "groups": [asdict(group) for group in directory.groups.values()],
        "invitations": directory.invitations,
        "applications": directory.applications,
        "domains": sorted(directory.domains),
        "moves": [asdict(move) for move in directory.moves.values()],
        "remote_mailboxes": directory.remote_mailboxes,
    }


def _put(directory: Directory, content: dict[str, Any]) -> None:
    directory.lags = Lags(**content["lags"])
    for given in content["users"]:
        directory.put_user(_user(given))
    directory.deleted = {user.id: user for user in map(_user, content["deleted"])}
    directory.groups = {group.id: group for group in map(_group, content["groups"])}
    directory.invitations[:] = content["invitations"]
    directory.applications |= content["applications"]
    directory.domains |= set(content["domains"])
    directory.moves |= {move.user: move for move in map(_move, content["moves"])}
    directory.remote_mailboxes |= content["remote_mailboxes"]


def _user(given: dict[str, Any]) -> User:
    addresses = [(_instant(since), tuple(names)) for since, names in given["addresses"]]
    return User(**{**given, "created_at": _instant(given["created_at"]), "addresses": addresses})


def _group(given: dict[str, Any]) -> Group:
    members = {member: _instant(since) for member, since in given["members"].items()}
    return Group(**{**given, "created_at": _instant(given["created_at"]), "members": members})


def _move(given: dict[str, Any]) -> MailboxMove:
    moments = {name: _instant(given[name]) for name in ("started_at", "complete_after")}
    return MailboxMove(**{**given, **moments})


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _settle_folder(folder: Path) -> None:
    # Not every system lets a folder be opened; where it does, this makes the new name last.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
