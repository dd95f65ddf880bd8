"""What people may not do to batches, members, holds and dead letters as they are now."""

from collections.abc import Sequence

from matoolkit.errors.root import Refused

_MOST_SHOWN = 10


def shown(names: Sequence[str]) -> str:
    """List some names, and say how many more there are."""
    rest = len(names) - _MOST_SHOWN
    listed = ", ".join(names[:_MOST_SHOWN])
    return f"{listed} and {rest} more" if rest > 0 else listed


class UnknownBatch(Refused):
    """No batch has this number."""

    code = "AD404"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int) -> None:
        super().__init__(f"there is no batch {batch_id}", hint="look at the list of batches")
        self.batch_id = batch_id


class UnknownDeadLetter(Refused):
    """No dead letter has this number."""

    code = "AD405"
    http_status = 404
    exit_code = 3

    def __init__(self, letter_id: int) -> None:
        super().__init__(f"there is no dead letter {letter_id}", hint="look at the list of dead letters")
        self.letter_id = letter_id


class UnknownMember(Refused):
    """The batch has no member of this number."""

    code = "AD407"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int, member_id: int) -> None:
        super().__init__(f"batch {batch_id} has no member {member_id}", hint="look at the list of its members")
        self.member_id = member_id


class NoSuchPhase(Refused):
    """A batch has no phase of this name."""

    code = "AD418"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int, name: str) -> None:
        hint = f"look at its phases with `matoolkit batch get {batch_id}`"
        super().__init__(f"batch {batch_id} has no phase '{name}'", hint=hint)
        self.batch_id = batch_id
        self.name = name


class UnknownMembers(Refused):
    """Some of the members that were named are not in the batch, or not in the state that was asked for."""

    code = "AD406"
    http_status = 404
    exit_code = 3

    def __init__(self, batch_id: int, keys: Sequence[str], state: str) -> None:
        super().__init__(f"batch {batch_id} has no {state} member {shown(keys)}; nothing was changed")
        self.batch_id = batch_id
        self.keys = tuple(keys)


class UnknownRow(Refused):
    """The last reading of the source has no usable row of this key."""

    code = "AD408"
    http_status = 404
    exit_code = 3

    def __init__(self, runbook_name: str, key: str) -> None:
        super().__init__(
            f"the last reading of the source of {runbook_name} has no row with a time for {key}",
            hint="look at what the source returns now, and at the rows that were set aside",
        )
        self.key = key


class InvalidMembers(Refused):
    """Rows for a manual batch cannot be used; the error lists all problems at once."""

    code = "AD400"
    http_status = 400

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems[:_MOST_SHOWN]), hint="fix the rows and send them again")
        self.problems = tuple(problems)


class WrongBatchStatus(Refused):
    """A batch is not in a state in which this can be done."""

    code = "AD409"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, status: str, needed: str) -> None:
        super().__init__(f"batch {batch_id} is {status}; {needed}")
        self.batch_id = batch_id


class NotManual(Refused):
    """The scheduler looks after this batch; people advance and change manual ones only."""

    code = "AD410"
    http_status = 400
    exit_code = 5

    def __init__(self, batch_id: int) -> None:
        super().__init__(
            f"batch {batch_id} was not made by a person",
            hint="the calendar starts its phases, and the source decides its members",
        )
        self.batch_id = batch_id


class CannotAdvance(Refused):
    """The batch cannot go on to another phase now."""

    code = "AD411"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, why: str) -> None:
        super().__init__(f"batch {batch_id} cannot be advanced: {why}")
        self.batch_id = batch_id


class NothingToRetry(Refused):
    """There is no failure that could be retried."""

    code = "AD412"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"nothing to retry in {what}: {why}")


class StillRunning(Refused):
    """The work to retry is not at rest: a compensation is open, or a job is out."""

    code = "AD413"
    http_status = 409
    exit_code = 5

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} cannot be retried yet: {why}", hint="try again when that has ended")


class HoldChanged(Refused):
    """The batch is not held, or is now held for something else."""

    code = "AD414"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, held_for: str | None) -> None:
        now = "is not held" if held_for is None else f"is now held for something else: {held_for}"
        super().__init__(
            f"batch {batch_id} {now}; nothing was approved", hint="look at the hold and approve what it is now"
        )
        self.batch_id = batch_id


class HoldApproved(Refused):
    """What the batch is held for is already approved."""

    code = "AD416"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, by: str | None) -> None:
        super().__init__(
            f"the hold of batch {batch_id} was already approved by {by or 'somebody'}",
            hint="the next tick does what was approved",
        )
        self.batch_id = batch_id


class NotIncluded(Refused):
    """A member cannot be included in the batch of its time, not even by a person."""

    code = "AD417"
    http_status = 409
    exit_code = 5

    def __init__(self, key: str, why: str, hint: str) -> None:
        super().__init__(f"{key} cannot be included: {why}", hint=hint)
        self.key = key


class DeadLetterResolved(Refused):
    """The dead letter was already resent or discarded."""

    code = "AD415"
    http_status = 409
    exit_code = 5

    def __init__(self, letter_id: int, status: str) -> None:
        super().__init__(f"dead letter {letter_id} was {status} already")
        self.letter_id = letter_id
