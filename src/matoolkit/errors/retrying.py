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
    """The version that is to run has no phase of this name."""

    code = "AD421"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str, version: int, known: Sequence[str]) -> None:
        super().__init__(f"version {version} has no phase '{name}'", hint=f"its phases are {shown(known)}")
        self.name = name
