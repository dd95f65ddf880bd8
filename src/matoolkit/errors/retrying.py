"""Why a person's retry of failed members cannot be made as it was asked for (rule O14)."""

from collections.abc import Sequence

from matoolkit.errors.admin import shown
from matoolkit.errors.root import Refused


class NewerVersionWaits(Refused):
    """A batch is about to take a newer version; a retry before that would run the old one."""

    code = "AD420"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, current: int, newer: int, *, is_held: bool) -> None:
        until = "the end of its hold" if is_held else "the next tick"
        super().__init__(
            f"batch {batch_id} follows version {current}, and version {newer} waits for {until}",
            hint=f"try again after {until}, or say `--version current` to run version {current} once more",
        )
        self.batch_id = batch_id


class UnknownPhase(Refused):
    """The version to run has no phase of this name."""

    code = "AD421"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str, version: int, known: Sequence[str]) -> None:
        super().__init__(f"version {version} has no phase '{name}'", hint=f"its phases are {shown(known)}")
        self.name = name


class DoneWithOldData(Refused):
    """Members would take a changed row, but finished steps of theirs used the old values."""

    code = "AD422"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, steps: Sequence[str], columns: Sequence[str]) -> None:
        super().__init__(
            f"batch {batch_id} was not retried: {shown(steps)} used old values of {shown(columns)}",
            hint="say `--from PHASE` to run them again, `--keep-done` to leave them as they are, "
            "or `--data kept` to go on with the old row",
        )
        self.batch_id = batch_id


class NotReadYet(Refused):
    """The source has not been read yet, so members cannot take rows from it."""

    code = "AD423"
    http_status = 409
    exit_code = 5

    def __init__(self, runbook_name: str) -> None:
        super().__init__(
            f"the source of '{runbook_name}' has not been read by this version of matoolkit yet",
            hint="wait for the next tick, say `--refresh` to read it now, or `--data kept` to go on with the old row",
        )


class WrongDataChoice(Refused):
    """Members of a manual batch take rows of a file, the others rows of their source."""

    code = "AD424"
    http_status = 400
    exit_code = 2

    def __init__(self, batch_id: int, *, is_manual: bool) -> None:
        super().__init__(
            f"batch {batch_id} is manual, its members take no rows of a source"
            if is_manual
            else f"batch {batch_id} is not manual, its members take no rows of a file",
            hint="give rows with `--rows FILE`" if is_manual else "change the row in the source",
        )
        self.batch_id = batch_id
