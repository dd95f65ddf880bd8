"""What every command has that asks the admin API: a client, a clock, and the form in which to answer."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from matoolkit.cli import wording
from matoolkit.cli.answers import printable
from matoolkit.cli.client import Pages
from matoolkit.cli.config import client_settings
from matoolkit.cli.interrupts import raise_as_usual
from matoolkit.cli.output import stderr
from matoolkit.cli.signing_in import SignIn
from matoolkit.cli.tables import Column, Form, Item, print_item, print_items
from matoolkit.clock import Clock, SystemClock
from matoolkit.errors import ConfirmationNeeded, UnreadableAnswer

if TYPE_CHECKING:
    from matoolkit.cli.http import Client

ApiUrl = Annotated[
    str | None, typer.Option("--api-url", help="Address of the admin API.", metavar="URL", show_default=False)
]
Output = Annotated[Form, typer.Option("--output", "-o", help="How data is written.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]
Local = Annotated[bool, typer.Option("--local", help="Tell times in the zone of this machine, not in UTC.")]


# Errors of reading an answer that is JSON, but not the expected one.
_OF_NONSENSE = (AttributeError, KeyError, TypeError, ValueError)


@dataclass(frozen=True, slots=True)
class Session:
    """One command's talk with the admin API."""

    client: "Client"
    clock: Clock
    form: Form

    def show(self, item: Item, columns: Sequence[Column]) -> None:
        """Print one thing."""
        print_item(item, columns, self.form)

    def show_all(self, items: Iterable[Item], columns: Sequence[Column], *, nothing: str) -> int:
        """Print a list; only people are told that it is empty."""
        count = print_items(items, columns, self.form)
        if not count:
            self.say(nothing)
        return count

    def show_pages(self, pages: Pages, columns: Sequence[Column], *, nothing: str) -> None:
        """Print a list that may be long, and say how much of it that is."""
        items: Iterable[Item] = pages
        if pages.is_long and self.form is not Form.JSONL:
            with self.busy("reading"):
                items = list(pages)
        count = self.show_all(items, columns, nothing=nothing)
        if pages.has_more:
            total = "" if pages.total is None else f" of {_in_all(pages)}"
            self.say(f"the first {count:,}{total}; --all lists all")
        elif count and pages.total != pages.of:
            self.say(_in_all(pages))

    def say(self, sentence: str) -> None:
        """Say something that is not data."""
        stderr().print(printable(sentence))

    def now(self) -> datetime:
        """Return what time it is where the answers come from; its calendar may run faster than the clock (rule U5)."""
        return self.client.time_there or self.clock.now()

    @property
    def is_for_people(self) -> bool:
        """Whether people read what is printed."""
        return self.form in (Form.TABLE, Form.WIDE)

    @contextmanager
    def busy(self, with_what: str) -> Iterator[None]:
        """Show on a terminal that something takes its time."""
        console = stderr()
        if not console.is_terminal:
            yield
            return
        with console.status(with_what):
            yield


def _in_all(pages: Pages) -> str:
    if pages.total == pages.of or pages.total is None or pages.of is None:
        return f"{pages.total:,}"
    return f"{pages.total:,} that match, {pages.of:,} in all"


def confirm(question: str, *, yes: bool) -> None:
    """Ask before a change that cannot be undone; without a terminal `--yes` is the only answer."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise ConfirmationNeeded(question)
    # Typer's own question writes a blank to standard output, which is for data.
    stderr().print(f"{printable(question)} [y/N]: ", end="")
    if sys.stdin.readline().strip().casefold() not in ("y", "yes"):
        raise typer.Abort


@contextmanager
def session(
    clock: Clock | None,
    api_url: str | None = None,
    form: Form = Form.TABLE,
    seconds: float | None = None,
    *,
    local: bool = False,
) -> Iterator[Session]:
    """Begin to talk with the admin API that the settings name."""
    from matoolkit.cli.http import Client

    raise_as_usual()
    settings = client_settings(api_url)
    known = clock or SystemClock()
    client = Client(
        settings.api_url, seconds or settings.api_timeout.total_seconds(), SignIn(settings, known).token, known
    )
    opened = Session(client, known, form)
    client.on_speed = lambda speed, now: opened.say(
        f"time {wording.speed_text(speed)}; there it is {wording.zoned(now):%a %d %b %Y %H:%M %Z}"
    )
    try:
        with wording.local_times(wanted=local or settings.times == "local"):
            yield opened
    finally:
        client.close()


def asks_the_api(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command its session, and the options that all of them have."""
    forms = [_option("output", Output, Form.TABLE), _option("json", Json, default=False)]
    return _command(function, [*forms, _option("local", Local, default=False), _option("api_url", ApiUrl, None)])


def asks_for_text(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command its session that prints a text as it is, whatever form others have."""
    return _command(function, [_option("api_url", ApiUrl, None)])


def _command(function: Callable[..., None], common: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Make what Typer sees: the function's own parameters and the common ones, in place of the session."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

    @wraps(function)
    def command(context: typer.Context, **given: Any) -> None:
        form, is_json = given.pop("output", Form.TABLE), given.pop("json", False)
        local, api_url = given.pop("local", False), given.pop("api_url")
        with session(context.obj, api_url, Form.JSON if is_json else form, local=local) as opened:
            try:
                function(opened, **given)
            except _OF_NONSENSE as nonsense:
                why = f"it does not have the expected form ({type(nonsense).__name__})"
                raise UnreadableAnswer(opened.client.address, why) from nonsense

    context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    parameters = [context, *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), *common]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
