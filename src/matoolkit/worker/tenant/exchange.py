"""Exchange Online's InvokeCommand, as far as the functions call it: which cmdlet, and the forms in which it answers.

Its answers are as various as the real ones: a change is answered with an empty list, with nothing, with null; what is
missing with 404 or with 500 and a text; what the application may not do with bytes that are no text at all.
"""

from collections.abc import Mapping
from http import HTTPStatus
from itertools import count
from typing import Any

from matoolkit.worker.tenant.calls import Answer, Refusal, Request
from matoolkit.worker.tenant.directory import INITIAL_DOMAIN, Directory
from matoolkit.worker.tenant.distribution import DistributionGroups
from matoolkit.worker.tenant.mailbox_moves import Moves
from matoolkit.worker.tenant.recipients import Recipients
from matoolkit.worker.tenant.refusals import WRONG, Cmdlet, Rows, failure

_DEFAULT_PAGE = 1000
# What a change is answered with, one after the other.
_SUCCESSES = (
    Answer(HTTPStatus.OK, {"value": []}),
    Answer(HTTPStatus.NO_CONTENT),
    Answer(HTTPStatus.OK),
    Answer(HTTPStatus.OK, {"value": None}),
)
# Half of the time it is said to be compressed, which it is not.
_FORBIDDEN = (
    Answer(HTTPStatus.FORBIDDEN, b"\x00" * 64, {"Content-Encoding": "gzip"}),
    Answer(HTTPStatus.FORBIDDEN, b"\x00\x00\x00\x00Forbidden\x00\x00"),
)


class Exchange:
    """Runs cmdlets on a directory."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._moves = Moves(directory)
        parts = (Recipients(directory), DistributionGroups(directory), self._moves)
        self._cmdlets: dict[str, Cmdlet] = {name: cmdlet for part in parts for name, cmdlet in part.cmdlets.items()}
        self._changes = count()
        self._refusals = count()

    def answer(self, request: Request) -> Answer:
        """Run the cmdlet that a call names, and return a page of what it finds."""
        match request.segments:
            case ("adminapi", "beta", str(organization), "InvokeCommand") if request.method == "POST":
                if organization.casefold() not in {INITIAL_DOMAIN, *self._directory.domains}:
                    return Answer(HTTPStatus.NOT_FOUND)
            case _:
                return Answer(HTTPStatus.NOT_FOUND)
        match request.body:
            case {"CmdletInput": {"CmdletName": str(name), "Parameters": Mapping() as parameters}}:
                pass
            case _:
                raise failure(HTTPStatus.BAD_REQUEST, WRONG, "The request is not a command.")
        if not request.header("X-AnchorMailbox") or request.header("X-CmdletName") != name:
            raise failure(HTTPStatus.BAD_REQUEST, WRONG, "The request lacks X-AnchorMailbox or X-CmdletName.")
        cmdlet = self._cmdlets.get(name)
        if cmdlet is None:
            return self.forbidden()
        self._moves.go_on()
        rows = cmdlet(dict(parameters))
        return self._changed() if rows is None else _page(request, rows)

    def forbidden(self) -> Answer:
        """Return the error for an application without the role for a cmdlet, or for an unknown cmdlet."""
        return _FORBIDDEN[next(self._refusals) % len(_FORBIDDEN)]

    def error(self, refusal: Refusal) -> Answer:
        """Return the body in which Exchange tells an error: what happened is in the details."""
        error = {
            "code": refusal.code,
            "message": "Error executing cmdlet",
            "details": [{"code": "Context", "target": "", "message": refusal.message}],
            "innererror": {
                "message": "Error executing cmdlet",
                "type": "Microsoft.Exchange.Admin.OData.Core.ODataServiceException",
            },
        }
        return Answer(refusal.status, {"error": error})

    def _changed(self) -> Answer:
        return _SUCCESSES[next(self._changes) % len(_SUCCESSES)]


def _page(request: Request, rows: Rows) -> Answer:
    _, _, wanted = request.header("Prefer").partition("odata.maxpagesize=")
    size = int(wanted) if wanted.isdigit() and int(wanted) else _DEFAULT_PAGE
    first = int(request.query.get("$skiptoken", "0"))
    body: dict[str, Any] = {"value": rows[first : first + size]}
    if len(rows) > first + size:
        path = request.target.partition("?")[0]
        body["@odata.nextLink"] = f"http://{request.header('Host')}{path}?$skiptoken={first + size}"
    return Answer(HTTPStatus.OK, body)
