"""Why a person's undo or exclusion cannot be made as it was asked for (rules U2 and U3)."""

from matoolkit.errors.root import Refused


class NothingToUndo(Refused):
    """Nobody who was asked for can be undone now."""

    code = "AD430"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, why: str) -> None:
        super().__init__(
            f"nobody in batch {batch_id} can be undone: {why}", hint=f"look at `matoolkit batch members {batch_id}`"
        )
        self.batch_id = batch_id


class ExcludedAlready(Refused):
    """A person has excluded this member already."""

    code = "AD431"
    http_status = 409
    exit_code = 5

    def __init__(self, key: str, by: str, reason: str) -> None:
        super().__init__(
            f"{key} was excluded already by {by}: {reason}", hint="say `--undo` to undo what was done for it"
        )
        self.key = key


class MemberChanged(Refused):
    """A member joined another batch at the very moment in which a person decided about it."""

    code = "AD432"
    http_status = 409
    exit_code = 5

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key} joined another batch at this moment; nothing was changed", hint="look at it, and decide again"
        )
        self.key = key
