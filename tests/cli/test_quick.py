"""Commands begin quickly, because they import only what they need; and Ctrl-C ends them, however early it comes."""

import os
import subprocess
import sys

import pytest

from matoolkit.cli.program import program, run
from tests.cli.conftest import Cli
from tests.interrupting import HEEDING_CTRL_C, interrupted_at

pytestmark = pytest.mark.on("sqlite")

# Each takes a tenth of a second or more of a processor, or brings others that do.
SLOW = {
    "aiohttp", "alembic", "azure", "click", "cryptography", "fastapi", "httpx", "jwt", "msal", "opentelemetry",
    "psycopg", "pydantic", "pygments", "rich", "sqlalchemy", "sqlglot", "starlette", "uvicorn", "yaml",
}  # fmt: skip
SCRIPT = """
import sys
from matoolkit.cli.program import run
try:
    code = run(sys.argv[1:])
finally:
    print("imported:", *{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
sys.exit(code)
"""


def imported(*arguments: str, **environment: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return SLOW & set(done.stderr.partition("imported:")[2].split())


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("--version", set()),
        ("--help", {"pygments", "rich"}),
        ("batch --help", {"pygments", "rich"}),
        ("config path", {"rich"}),
        ("batch list", {"httpx", "rich"}),
        ("batch list --limit 5 --status active --held", {"httpx", "rich"}),
        ("batch list --json", {"httpx", "rich"}),
        ("runbook list -o yaml", {"httpx", "rich", "yaml"}),
        ("runbook status wave", {"httpx", "rich"}),
        ("automation enable wave", {"httpx", "rich"}),
        ("member find ann@x", {"httpx", "rich"}),
        ("hold list", {"httpx", "rich"}),
        ("dead-letter list", {"httpx", "rich"}),
        ("audit list", {"httpx", "rich"}),
    ],
)
def test_a_command_imports_only_what_it_needs(cli: Cli, command: str, needed: set[str]) -> None:
    cli.published()
    assert imported(*command.split()) <= needed


@pytest.mark.parametrize(
    ("typed", "needed"), [("ba", set()), ("batch ge", {"rich"}), ("batch get ", {"httpx", "rich"})]
)
def test_completion_imports_only_what_it_needs(cli: Cli, typed: str, needed: set[str]) -> None:
    words = f"matoolkit {typed}"
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    assert imported(_MATOOLKIT_COMPLETE="complete_bash", **asked) <= needed


def test_every_command_is_what_the_list_of_commands_says_of_it() -> None:
    for name, listed in program().commands.items():
        assert (listed.real.name, listed.real.help.partition("\n")[0]) == (name, listed.help)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("batch get 0", "Invalid value for 'ID'"),
        ("batch get x", "Invalid value for 'ID'"),
        ("batch get ²", "Invalid value for 'ID'"),
        ("batch list --limit 100001", "Invalid value for '--limit'"),
        ("batch list -o tables", "Invalid value for '--output'"),
        ("batch list --status asleep", "Invalid value for '--status'"),
    ],
)
def test_a_value_that_cannot_be_read_quickly_is_refused_as_ever(
    capsys: pytest.CaptureFixture[str], arguments: str, said: str
) -> None:
    assert run(arguments.split()) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("matoolkit.cli.program", "--version"),
        ("typer", "--version"),
        ("rich.console", "--help"),
        ("matoolkit.cli.commands.batch", "batch list"),
        ("httpx", "batch list"),
        ("pydantic", "runbook lint nowhere.yaml"),
        ("matoolkit.telemetry", "batch list"),
        ("sqlalchemy", "db status"),
    ],
)
def test_ctrl_c_before_a_command_has_begun_ends_it_without_a_word(module: str, command: str) -> None:
    script = HEEDING_CTRL_C + interrupted_at(module)
    done = subprocess.run([sys.executable, "-c", script, *command.split()], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_ctrl_c_while_the_process_ends_is_no_traceback() -> None:
    script = HEEDING_CTRL_C + "import atexit; atexit.register(signal.raise_signal, signal.SIGINT)\n"
    script += "from matoolkit.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_process_that_was_started_to_ignore_ctrl_c_ignores_it() -> None:
    script = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    script += interrupted_at("typer")
    done = subprocess.run([sys.executable, "-c", script, "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_is_the_command_too() -> None:
    done = subprocess.run([sys.executable, "-m", "matoolkit", "--version"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.startswith("matoolkit "), done.stderr) == (0, True, "")


@pytest.mark.parametrize("command", ["runbook schema", "explain RB204", "--help", "batch members 1 --all"])
def test_a_reader_who_has_enough_is_no_error(cli: Cli, command: str) -> None:
    """Like `head`: it reads a line, or nothing, and closes the pipe."""
    cli.published()
    cli.created(*(f"u{number:04}@x" for number in range(2000)))
    for lines in (0, 1):
        started = subprocess.Popen(
            [sys.executable, "-m", "matoolkit", *command.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert started.stdout
        assert started.stderr
        for _ in range(lines):
            started.stdout.readline()
        started.stdout.close()
        assert (started.wait(60), started.stderr.read()) == (0, b"")
        started.stderr.close()
