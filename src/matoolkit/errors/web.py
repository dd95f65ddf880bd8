"""What can be wrong with what a page sends."""

from matoolkit.errors.api import NotSignedIn
from matoolkit.errors.root import MatoolkitError, Refused


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
            hint="look at it as it is now, and decide again",
        )


class MissingAnswer(Refused):
    """A form leaves out something that is needed."""

    code = "WB422"
    http_status = 422

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; nothing was changed", hint="fill it in and send the form again")


class SessionOver(NotSignedIn):
    """Nobody is signed in to the pages in this browser, or the session has ended."""

    code = "WB401"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"{why}; nothing was changed",
            hint="sign in on a second page, then go back to the form, which keeps what you typed, and send it again",
        )


class EntryRefused(Refused):
    """Entra did not let a person in, or what came back from there cannot be accepted."""

    code = "WB411"
    http_status = 403
    exit_code = 4

    def __init__(self, why: str) -> None:
        super().__init__(
            f"not signed in: {why}", hint="sign in again, perhaps with another account; who sets up Entra knows more"
        )


class EntryTooOld(Refused):
    """A person came back from Entra without having been sent there by this browser a moment ago."""

    code = "WB412"
    http_status = 400

    def __init__(self, address: str) -> None:
        super().__init__(
            "this sign-in took too long, was already used, or began in another browser",
            hint=f"sign in again at {address}, in a browser that keeps cookies",
        )


class PagesClosed(Refused):
    """People sign in with Entra here, but nothing says how they come to the pages."""

    code = "WB404"
    http_status = 404
    exit_code = 3

    def __init__(self) -> None:
        super().__init__(
            "the pages are not open here: nothing says at which address people sign in to them",
            hint="set MATOOLKIT_WEB_ADDRESS for the admin API, and what belongs to it; the command line needs no pages",
        )


class EntryBroken(MatoolkitError):
    """Entra does not accept how the pages prove which application they are."""

    code = "WB500"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the pages cannot sign anybody in: {why}",
            hint="an administrator finds more in the log of the API; the sign-in of the command line still works",
        )


class EntryUnavailable(MatoolkitError):
    """Entra does not answer those who want to sign in to the pages."""

    code = "WB503"
    http_status = 503
    transient = True
    is_outage = True

    def __init__(self, why: str) -> None:
        super().__init__(f"nobody can sign in now: {why}", hint="try again in a moment")
