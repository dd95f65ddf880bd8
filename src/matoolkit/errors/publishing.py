"""What can be wrong with publishing a runbook, or with switching it on and off."""

from collections.abc import Iterable

from matoolkit.errors.root import Refused, did_you_mean


class UnknownRunbook(Refused):
    """No runbook has this name."""

    code = "PB404"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"no runbook is called '{name}'", hint=did_you_mean(name, known) or "publish it first")
        self.name = name


class UnknownVersion(Refused):
    """A runbook has no version of this number."""

    code = "PB405"
    http_status = 404
    exit_code = 3

    def __init__(self, name: str, version: int, latest: int) -> None:
        super().__init__(f"'{name}' has no version {version}", hint=f"its versions are 1 to {latest}")
        self.name = name
        self.version = version


class OtherName(Refused):
    """A document has another name than the one it is published under."""

    code = "PB422"
    http_status = 422

    def __init__(self, asked: str, written: str) -> None:
        super().__init__(
            f"the document's name is '{written}', not '{asked}'",
            hint="a runbook is published under the name in its document: change one of the two",
        )
        self.asked = asked
        self.written = written


class PrimaryKeyChanged(Refused):
    """A new version names another primary_key while batches are in flight, whose members are known by the old one."""

    code = "PB409"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str, before: str, after: str, batches: int) -> None:
        count = "1 batch" if batches == 1 else f"{batches} batches"
        super().__init__(
            f"primary_key of '{name}' cannot change from '{before}' to '{after}' while {count} in flight:"
            " their members are known by the old one",
            hint="wait until they have ended, or cancel them, or publish under another name",
        )
        self.name = name
        self.before = before
        self.after = after


class PublishedMeanwhile(Refused):
    """Other people published the same runbook at the same moment, several times in a row."""

    code = "PB410"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str) -> None:
        super().__init__(f"others are publishing '{name}' right now; nothing was changed", hint="look, and try again")
        self.name = name


class VersionNotActive(Refused):
    """Only the active version can be deactivated."""

    code = "PB411"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str, version: int, active: int | None) -> None:
        hint = "no version of it is active" if active is None else f"version {active} is the active one"
        super().__init__(f"version {version} of '{name}' is not active", hint=hint)
        self.name = name
        self.version = version
        self.active = active


class NoActiveVersion(Refused):
    """Something needs the active version of a runbook, and no version of it is active."""

    code = "PB412"
    http_status = 409
    exit_code = 5

    def __init__(self, name: str) -> None:
        super().__init__(f"no version of '{name}' is active", hint="publish a version first")
        self.name = name
