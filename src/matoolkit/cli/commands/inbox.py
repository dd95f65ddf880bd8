"""`matoolkit inbox`: all that waits for a person's decision."""

from matoolkit.cli.client import path_of
from matoolkit.cli.options import Watch
from matoolkit.cli.session import Session, asks_the_api
from matoolkit.cli.tables import Column, number, status, when
from matoolkit.cli.watching import watch_items

_MATTERS = (
    status("KIND", "kind"),
    when("DEADLINE", "deadline"),
    Column("WAITS FOR A PERSON", "sentence"),
    Column("MORE", "detail"),
    when("SINCE", "since"),
    number("BATCH", "batchId"),
    when("T", "batchStartTime"),
    Column("COMMAND", "command"),
)


@asks_the_api
def inbox(session: Session, *, watch: Watch = False) -> None:
    """List all that waits for a person's decision, the oldest deadline first."""
    path = path_of("inbox")
    if watch:
        watch_items(session, lambda: session.client.get(path)["items"], _MATTERS)
    else:
        session.show_all(session.client.get(path)["items"], _MATTERS, nothing="nothing waits for a decision")
