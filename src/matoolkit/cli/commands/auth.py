"""`matoolkit auth`: sign in, see who is signed in, and forget it."""

import typer

from matoolkit.cli.config import client_settings
from matoolkit.cli.output import stderr
from matoolkit.cli.session import Json, Output
from matoolkit.cli.signing_in import STORE, SignIn, Standing, Way
from matoolkit.cli.tables import Column, Form, print_item, when
from matoolkit.clock import SystemClock

app = typer.Typer(no_args_is_help=True)

NOT_SIGNED_IN = 1

_STANDING = (
    Column("SIGNED IN", "way"),
    Column("ACCOUNT", "account"),
    when("UNTIL", "until"),
    Column("KEPT IN", "keptIn"),
    Column("MEANS", "means"),
)
_MEANINGS = {
    Way.GIVEN: "the token in MATOOLKIT_ACCESS_TOKEN is used as it is",
    Way.PERSON: "signed in on this machine; the sign-in renews itself",
    Way.NOBODY: "nobody is signed in here; the identity of this machine is used if it has one",
    Way.NOT_NEEDED: "no tenant is configured; an admin API on this machine needs no sign-in",
}


@app.command()
def login(context: typer.Context) -> None:
    """Sign in with a code that is typed into a browser, on this machine or any other."""
    standing = _sign_in(context).log_in(lambda sentence: stderr().print(f"to sign in, {sentence}"))
    stderr().print(f"signed in as {standing.account}" if standing.account else "signed in")
    if standing.kept_in != STORE:
        stderr().print(
            "this machine has no credential store that can be used, so the sign-in is kept in"
            f" {standing.kept_in}, which only you may read"
        )


@app.command()
def status(context: typer.Context, output: Output = Form.TABLE, *, json: Json = False) -> None:
    """Say who is signed in, and until when. Exit code 1: a sign-in is needed and there is none."""
    standing = _sign_in(context).standing()
    print_item(_described(standing), _STANDING, Form.JSON if json else output)
    if standing.way is Way.NOBODY:
        raise typer.Exit(NOT_SIGNED_IN)


@app.command()
def logout(context: typer.Context) -> None:
    """Forget the sign-in of this machine."""
    was_there = _sign_in(context).log_out()
    stderr().print("signed out" if was_there else "nobody was signed in here")


def _sign_in(context: typer.Context) -> SignIn:
    return SignIn(client_settings(), context.obj or SystemClock())


def _described(standing: Standing) -> dict[str, str | None]:
    from datetime import UTC, datetime

    until = None if standing.until is None else datetime.fromtimestamp(standing.until, UTC).isoformat()
    return {
        "way": standing.way.value,
        "account": standing.account,
        "until": until,
        "keptIn": standing.kept_in,
        "means": _MEANINGS[standing.way],
    }
