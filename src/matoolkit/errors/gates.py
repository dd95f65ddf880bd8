"""What people may not do to gates, and what a shut gate refuses."""

from collections.abc import Sequence
from datetime import datetime

from matoolkit.errors.root import Refused, did_you_mean


class UnknownGate(Refused):
    """No gate has this number."""

    code = "GT404"
    http_status = 404
    exit_code = 3

    def __init__(self, gate_id: int) -> None:
        super().__init__(f"there is no gate {gate_id}", hint="look at the list of gates, with those that were opened")
        self.gate_id = gate_id


class NobodyToPause(Refused):
    """Nobody of this key is or was a member of a batch of the runbook."""

    code = "GT405"
    http_status = 404
    exit_code = 3

    def __init__(self, runbook_name: str, key: str) -> None:
        super().__init__(f"no batch of {runbook_name} has or had a member {key}", hint="look for the key")
        self.key = key


class UnknownWorker(Refused):
    """No worker of this id has announced itself, no runbook in use names one, and none ever had work."""

    code = "GT406"
    http_status = 404
    exit_code = 3

    def __init__(self, worker_id: str, known: Sequence[str]) -> None:
        listed = f"known are {', '.join(known[:10])}" if known else "publish a runbook that names it first"
        super().__init__(f"no worker has the id '{worker_id}'", hint=did_you_mean(worker_id, known) or listed)
        self.worker_id = worker_id


class InvalidPause(Refused):
    """What is to be paused, or until when, makes no sense."""

    code = "GT400"
    http_status = 400
    exit_code = 2

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why, hint=hint)


class InvalidFreeze(Refused):
    """The times of a freeze make no sense: past, in the wrong order, or without a zone."""

    code = "GT414"
    http_status = 400
    exit_code = 2

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why, hint=hint)


class NotAFreeze(Refused):
    """The gate is no freeze."""

    code = "GT415"
    http_status = 409
    exit_code = 5

    def __init__(self, gate_id: int, kind: str) -> None:
        super().__init__(f"gate {gate_id} is no freeze but of kind {kind}", hint="look at the list of freezes")
        self.gate_id = gate_id


class NothingPaused(Refused):
    """No pause of exactly this subject is shut."""

    code = "GT409"
    http_status = 409
    exit_code = 5

    def __init__(
        self, subject: str, others: Sequence[int], ended: tuple[str | None, datetime | None] | None = None
    ) -> None:
        by, at = ended or (None, None)
        named = "everything" if subject == "all" else subject
        told = f"; {by or 'somebody'} ended the last one at {at:%Y-%m-%d %H:%M} UTC" if at is not None else ""
        still = f"; it waits at gate {', '.join(map(str, others))}" if others else ""
        super().__init__(
            f"no pause of {named} stands{told}{still}",
            hint="look at the list of gates: each pause is ended for what it covers",
        )


class GateOpened(Refused):
    """The gate was opened before."""

    code = "GT410"
    http_status = 409
    exit_code = 5

    def __init__(self, gate_id: int, by: str | None) -> None:
        hint = f"`matoolkit gate show {gate_id}` says when and why; `matoolkit gate list` shows what is still shut"
        super().__init__(f"gate {gate_id} was opened already, by {by or 'somebody'}", hint=hint)
        self.gate_id = gate_id


class GateIsHold(Refused):
    """A hold ends when a person approves exactly what it stands for, and in no other way."""

    code = "GT411"
    http_status = 409
    exit_code = 5

    def __init__(self, gate_id: int, batch_id: int | None) -> None:
        super().__init__(
            f"gate {gate_id} is the hold of batch {batch_id}",
            hint=f"look at it and approve it: `matoolkit hold show {batch_id}`",
        )
        self.gate_id = gate_id


class NoBudget(Refused):
    """Only the gate of a phase in which too many failed can be opened for some more failures."""

    code = "GT413"
    http_status = 409
    exit_code = 5

    def __init__(self, gate_id: int, kind: str) -> None:
        super().__init__(
            f"gate {gate_id} ({kind}) is not about failures, so it cannot allow any", hint="open it without `allow`"
        )
        self.gate_id = gate_id


class GateShut(Refused):
    """A gate keeps this from beginning."""

    code = "GT412"
    http_status = 409
    exit_code = 5

    def __init__(self, batch_id: int, what: str, sentences: Sequence[str]) -> None:
        super().__init__(
            f"{what} of batch {batch_id} cannot begin: {'; '.join(sentences)}",
            hint=f"what ends each: `matoolkit explain batch {batch_id}`",
        )
        self.sentences = tuple(sentences)
