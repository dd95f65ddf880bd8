"""Why work waits: the answer of whatever decides that it does (rules X1 and X2).

What decides whether work goes on gives its reasons as these. So what people read cannot differ from what was decided.
"""

from datetime import datetime
from enum import StrEnum

from matoolkit.records import record


class WhyKind(StrEnum):
    """What work waits for. The kinds of gates come first and have the names that they have there."""

    REMOVALS = "removals"
    CALLED_OFF = "called_off"
    RESCHEDULE = "reschedule"
    INIT_FAILED = "init"
    LATE = "late"
    REPEAT = "repeat"
    BUDGET = "budget"
    PAUSE = "pause"
    FREEZE = "freeze"
    WINDOW = "window"
    APPROVAL = "approval"
    PILOT = "pilot"
    AT_ONCE = "at_once"
    NOT_DUE = "not_due"
    ADVANCE = "advance"
    TICK = "tick"
    AUTOMATION_OFF = "automation_off"
    INIT = "init_running"
    EARLIER_PHASE = "earlier_phase"
    MEMBERS = "members"
    JOB_OUT = "job_out"
    RETRY = "retry"
    POLL = "poll"
    COMPENSATION = "compensation"
    CATCHING_UP = "catching_up"
    UNDO = "undo"
    OUTBOX = "outbox"
    ENDED = "ended"


class EndedBy(StrEnum):
    """What ends the waiting."""

    PERSON = "person"
    TIME = "time"
    FACT = "fact"


@record
class Why:
    """One reason to wait: since when, until when if that is known, what ends it, who may end it and with which command.

    `gate_id` is the number of a stored gate, and `work_id` that of the execution that it is about: a compensating step
    if it `undoes` something, else a step. `detail` is more about one member; those who wait alike differ in it.
    """

    kind: WhyKind
    sentence: str
    since: datetime | None = None
    until: datetime | None = None
    ended_by: EndedBy = EndedBy.FACT
    who: str | None = None
    command: str | None = None
    gate_id: int | None = None
    work_id: int | None = None
    undoes: bool = False
    detail: str | None = None
