"""What people may not sign off, and what becomes of those who are not approved."""

from collections.abc import Sequence
from datetime import datetime

from matoolkit.errors.root import MatoolkitError, Refused, did_you_mean


class UnknownBatchPhase(Refused):
    """A batch has no phase of this number."""

    code = "SO404"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int, phase_id: int) -> None:
        super().__init__(f"batch {batch_id} has no phase {phase_id}", hint="look at the approvals of the batch")


class UnknownApproval(Refused):
    """Nothing of this name in a batch asks for a sign-off."""

    code = "SO416"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int, name: str, known: Sequence[str]) -> None:
        listed = f"in this batch: {', '.join(known)}"
        super().__init__(
            f"nothing called '{name}' in batch {batch_id} asks for a sign-off", hint=did_you_mean(name, known) or listed
        )


class NotAmongSigners(Refused):
    """The approval names who may sign off, and the caller is not among them."""

    code = "SO403"
    http_status = 403
    exit_code = 4

    def __init__(self, name: str, what: str, by: Sequence[str]) -> None:
        super().__init__(
            f"{name} may not sign off {what}", hint=f"the runbook names {', '.join(by)} under 'by'; ask one of them"
        )


class PublisherCannotSign(Refused):
    """The approval does not take the sign-off of the person who published the version."""

    code = "SO405"
    http_status = 403
    exit_code = 4

    def __init__(self, name: str, version: int) -> None:
        super().__init__(
            f"{name} published version {version} and cannot approve it",
            hint="ask somebody else; 'not_publisher' is set",
        )


class NobodySigned(Refused):
    """An application signed in, and not a person."""

    code = "SO406"
    http_status = 403
    exit_code = 4

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is an application; only people sign off", hint="sign in as a person")


class UnnamedSigner(Refused):
    """The token does not say with which name the person signs in, so that one person could count as two."""

    code = "SO417"
    http_status = 403
    exit_code = 4

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the token of {name} does not say with which name this person signs in",
            hint="ask for the token with the scope `profile`, as `matoolkit auth login` does",
        )


class NotAsShown(Refused):
    """What would be signed off is not what was shown."""

    code = "SO409"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, changed: str) -> None:
        super().__init__(
            f"{what} is not what was shown: {changed}", hint="look at it again, and sign off what it is now"
        )


class AlreadySigned(Refused):
    """The same person has signed exactly this already."""

    code = "SO410"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str, what: str, said: str, withdraw: str) -> None:
        hint = f"take that back first: `{withdraw}`; or ask somebody else"
        super().__init__(f"{name} {said} {what} already", hint=hint)


class AlreadyBegun(Refused):
    """What is to be signed off has begun, and nobody waits for it."""

    code = "SO411"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} has begun", hint="a pause stops what has begun")


class NothingToSign(Refused):
    """Nothing asks for a sign-off here."""

    code = "SO412"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} needs no sign-off: {why}", hint="look at the approvals of the batch")


class TooEarlyToSign(Refused):
    """Sign-offs are not taken yet."""

    code = "SO413"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, opens_at: datetime) -> None:
        super().__init__(
            f"{what} can be signed off from {opens_at:%Y-%m-%d %H:%M} UTC on",
            hint="come back then, or publish a version with an earlier 'from'",
        )


class TooLateToSign(Refused):
    """Sign-offs are not taken any more."""

    code = "SO414"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, ends_at: datetime) -> None:
        super().__init__(
            f"{what} could be signed off until {ends_at:%Y-%m-%d %H:%M} UTC",
            hint="open its gate 'late' to allow it still, or let the source give another T",
        )


class NothingToWithdraw(Refused):
    """The caller has given no sign-off that could be taken back."""

    code = "SO415"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str, what: str) -> None:
        super().__init__(
            f"{name} has signed nothing of {what} that could be taken back", hint="only who signed takes it back"
        )


class NotApproved(MatoolkitError):
    """A member joined a phase that had begun, and was not approved for it."""

    code = "SO420"

    def __init__(self, key: str, by: str, reason: str | None) -> None:
        super().__init__(f"{by} did not approve {key}, who joined later" + (f": {reason}" if reason else ""))
