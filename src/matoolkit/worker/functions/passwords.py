"""Random passwords for accounts that need one. They are never shown: people set their own."""

import secrets
import string

from matoolkit.worker.context import Context

_LENGTH = 32
_KINDS = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "!#%+-=?@_")


def chosen_password(context: Context, given: str | None) -> str:
    """Return the given password, or a random one that is never shown."""
    chosen = make_password() if given is None else given
    context.secrets.conceal(chosen)
    return chosen


def make_password() -> str:
    """Make up a password that has letters of every kind."""
    letters = [secrets.choice(kind) for kind in _KINDS]
    letters += [secrets.choice("".join(_KINDS)) for _ in range(_LENGTH - len(letters))]
    secrets.SystemRandom().shuffle(letters)
    return "".join(letters)
