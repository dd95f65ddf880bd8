"""What can be wrong with what a page sends."""

from matoolkit.errors.root import Refused


class FormTooOld(Refused):
    """A form does not carry the mark of a page that this browser was sent."""

    code = "WB403"
    http_status = 403
    exit_code = 4

    def __init__(self) -> None:
        super().__init__(
            "this form is too old, or it was not sent by one of these pages; nothing was changed",
            hint="load the page again and repeat what you did",
        )


class PreviewChanged(Refused):
    """What would happen is no longer what was shown."""

    code = "WB409"
    http_status = 409
    exit_code = 5

    def __init__(self) -> None:
        super().__init__(
            "what would happen has changed since it was shown; nothing was changed",
            hint="the page shows it as it is now: look at it again, and decide again",
        )


class MissingAnswer(Refused):
    """A form leaves out something that is needed."""

    code = "WB422"
    http_status = 422

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; nothing was changed", hint="fill it in and send the form again")
