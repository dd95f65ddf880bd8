"""`matoolkit config`: the settings of the command line, and where they come from."""

from typing import Annotated

import typer

from matoolkit.cli.config import KEYS, config_path, everything_told, tell
from matoolkit.cli.output import stderr
from matoolkit.cli.session import ApiUrl, Json, Output
from matoolkit.cli.tables import Column, Form, print_items

app = typer.Typer(no_args_is_help=True)

_SETTINGS = (Column("SETTING", "key"), Column("VALUE", "value"), Column("SOURCE", "source"))


@app.command()
def show(output: Output = Form.TABLE, *, json: Json = False, api_url: ApiUrl = None) -> None:
    """Show every setting of the command line, and where its value comes from."""
    told = [{"key": one.key, "value": one.value, "source": one.source} for one in everything_told(api_url)]
    print_items(told, _SETTINGS, Form.JSON if json else output)


@app.command("set")
def set_(
    key: Annotated[str, typer.Argument(help=f"One of {', '.join(KEYS)}.", autocompletion=lambda: list(KEYS))],
    value: Annotated[str, typer.Argument(help="Its value; an empty value removes it.")],
) -> None:
    """Write a setting into the configuration file."""
    path = tell(key, value)
    stderr().print(f"{key} is {'set' if value else 'removed'} in {path}")


@app.command()
def path() -> None:
    """Print where the configuration file is, or would be."""
    typer.echo(config_path())
