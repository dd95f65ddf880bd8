"""Errors of starting parts of the system as processes."""

from matoolkit.errors.root import Refused


class AlreadyUp(Refused):
    """`matoolkit up` already runs in this folder."""

    code = "HO409"
    http_status = 409
    exit_code = 5

    def __init__(self, folder: str) -> None:
        super().__init__(
            f"matoolkit up already runs with the state in {folder}",
            hint="stop the other one with Ctrl-C, or start this one in another folder",
        )


class PortTaken(Refused):
    """Another program listens on the port."""

    code = "HO410"
    http_status = 409
    exit_code = 5

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"another program listens on {host}, port {port}", hint="name another port with --port; 0 is any free one"
        )


class TelemetryLibraryMissing(Refused):
    """The libraries that send telemetry are not installed."""

    code = "HO502"

    def __init__(self) -> None:
        super().__init__(
            "the libraries that send telemetry are not installed", hint="pip install 'matoolkit[telemetry]'"
        )


class UnsafeFolder(Refused):
    """Other people can put files into a folder whose files a worker executes."""

    code = "HO403"
    http_status = 409
    exit_code = 5

    def __init__(self, folder: str, why: str) -> None:
        super().__init__(
            f"the functions in {folder} are not executed: {why}",
            hint=f'make the folder your own, `chown "$USER" {folder}` and `chmod go-w {folder}`',
        )


class OtherSpeed(Refused):
    """The calendar of this database runs at another speed, and keeps it."""

    code = "HO411"
    http_status = 409
    exit_code = 5

    def __init__(self, speed: int, asked: int) -> None:
        super().__init__(
            f"time runs at speed {speed} here, not {asked}, and the times of all batches are of that calendar",
            hint="leave --speed out to go on, start in another folder, or forget all this with --fresh",
        )


class FastCalendar(Refused):
    """A database whose calendar runs faster than the clock is for `matoolkit up` alone."""

    code = "HO412"
    http_status = 409
    exit_code = 5

    def __init__(self, speed: int) -> None:
        super().__init__(
            f"the calendar of this database runs {speed} times as fast as the clock",
            hint="`matoolkit up` goes on with it; every other process needs a database of its own",
        )


class NotForTrying(Refused):
    """A runbook cannot be tried on a file of rows."""

    code = "HO422"
    http_status = 422

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"the runbook cannot be tried on these rows: {why}", hint=hint)
