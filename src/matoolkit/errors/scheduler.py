"""Errors of the scheduler."""

from matoolkit.errors.root import Refused


class AnotherSchedulerWorks(Refused):
    """Another scheduler holds the lease; two never work at once (rule T10)."""

    code = "SH409"
    http_status = 409
    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "another scheduler works on this database",
            hint="it ticks by itself; stop it first if this one should tick",
        )
