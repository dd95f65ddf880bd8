"""A terminal in a folder that looks like a fresh clone after `make setup`, for following a page."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest.mock import patch

from matoolkit.cli.program import run
from tests.docs.pages import Command, Deed, File, Interrupt, is_shown
from tests.waiting import until

ROOT = Path(__file__).parents[2]
CLONED = ("Makefile", "README.md", "docs", "examples", "pyproject.toml", "requirements", "runbooks", "src")
API_PORT = "8080"
TENANT_PORT = "8765"
# Somebody who reads needs more time than somebody who does not.
_QUICKER = {"minutes=2": "seconds=40", "--speed 480": "--speed 1440", "make test": "make --dry-run test"}
# These go on until somebody stops them.
_LASTING = ("make up", "matoolkit up", "matoolkit api serve", "matoolkit tenant serve", "matoolkit worker run",
            "matoolkit orchestrator run", "matoolkit scheduler run")  # fmt: skip
# A reader looks again if it is not there yet.
_LOOKING = re.compile(
    r"curl|matoolkit report"
    r"|matoolkit (?:explain|inbox|now)"
    r"|matoolkit [a-z-]+ (?:failures|find|get|history|list|members|phases|preview|show|status|steps)"
)
_ASKING = re.compile(
    r"matoolkit (?:audit|automation|batch|dead-letter|explain|hold|member|query|report|runbook|template) [^|&;<>*$`]+"
)
_PATIENCE_SECONDS = 80


class Terminal:
    """Types what a page says and compares what is printed with what it shows."""

    def __init__(self, folder: Path, meant: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._meant = {**_QUICKER, **(meant or {})}
        self._ports = {API_PORT: _free_port(), TENANT_PORT: _free_port()}
        self._running: list[tuple[Command, subprocess.Popen[str], Path]] = []
        self._last_code = 0
        _clone(folder, self._ports[API_PORT])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MATOOLKIT_")}
        home = folder / "home"
        home.mkdir()
        path = f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}"
        self._environ = {
            **kept,
            "HOME": str(home),
            "PATH": path,
            "NO_COLOR": "1",
            "PYTHONUTF8": "1",
            "PYTHONFAULTHANDLER": "1",
        }
        self._environ["MATOOLKIT_API_URL"] = f"http://127.0.0.1:{self._ports[API_PORT]}"

    def follow(self, deed: Deed) -> None:
        """Do what a page says."""
        match deed:
            case File(name, content):
                (self._folder / name).write_text(self._here(content), encoding="utf-8")
            case Interrupt():
                self.stop_last()
            case Command(typed) if typed.startswith(_LASTING):
                self._start(deed)
            case Command():
                self._run(deed)

    def stop_last(self) -> None:
        """Press Ctrl-C where something runs."""
        command, process, output = self._running.pop()
        try:
            with suppress(ProcessLookupError):  # it may have ended by itself, and its code says how
                os.killpg(process.pid, signal.SIGINT)
            code = process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)  # then Python says what every thread is doing
            process.wait(60)
            raise AssertionError(f"{command.typed} does not stop\n{_text(output)}") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        # Make says in its own way that it was interrupted.
        assert code == 0 or command.typed.startswith("make"), f"{command.typed}: {code}\n{_text(output)}"

    def close(self) -> None:
        """End what a page leaves running, as its reader would."""
        with ExitStack() as stack:
            for _ in self._running:
                stack.callback(self.stop_last)

    def _run(self, command: Command) -> None:
        done = self._typed(command)

        def is_as_shown() -> bool:
            nonlocal done
            done = self._typed(command)
            return self._is_shown(command.shown, done.stdout)

        looks = _LOOKING.match(command.typed) is not None
        is_there = self._is_shown(command.shown, done.stdout) or (looks and _comes(is_as_shown, pause=2))
        assert is_there, _difference(command, done.stdout)
        assert command.may_fail or not done.returncode, (
            f"exit code {done.returncode}{_difference(command, done.stdout)}"
        )

    def _typed(self, command: Command) -> "subprocess.CompletedProcess[str]":
        typed = self._here(command.typed)
        done = self._asked(typed) if _ASKING.fullmatch(typed) else self._in_shell(typed)
        self._last_code = done.returncode
        return done

    def _asked(self, typed: str) -> "subprocess.CompletedProcess[str]":
        """Run what asks the admin API here: the same program, without the half second in which it starts."""
        with (
            patch.dict(os.environ, self._environ, clear=True),
            chdir(self._folder),
            TextIOWrapper(BytesIO(), encoding="utf-8") as screen,
            redirect_stdout(screen),
            redirect_stderr(screen),
        ):
            code = run(shlex.split(typed)[1:])
            screen.seek(0)
            return subprocess.CompletedProcess(typed, code, screen.read())

    def _in_shell(self, typed: str) -> "subprocess.CompletedProcess[str]":
        state = self._folder / "home" / "exported"
        script = (
            f"[ -e {state} ] && . {state}\n(exit {self._last_code})\n{typed}\n"
            f"__code=$?; unset OLDPWD; export -p > {state}; exit $__code"
        )
        return subprocess.run(
            ["bash", "-c", script], **self._place(), stdout=subprocess.PIPE, timeout=_PATIENCE_SECONDS
        )

    def _start(self, command: Command) -> None:
        output = self._folder / "home" / f"output-{len(list((self._folder / 'home').iterdir()))}"
        state = self._folder / "home" / "exported"
        script = f"[ -e {state} ] && . {state}\nexec {self._here(command.typed)}"
        with output.open("w", encoding="utf-8") as file:
            process = subprocess.Popen(["bash", "-c", script], **self._place(), stdout=file, start_new_session=True)
        self._running.append((command, process, output))
        shown = command.shown.strip() and f"…\n{command.shown.strip()}\n…"
        _comes(lambda: self._is_shown(shown, _text(output)) or process.poll() is not None)
        assert self._is_shown(shown, _text(output)), _difference(command, _text(output))
        assert process.poll() is None, _text(output)
        # The whole system finds a port for its tenant by itself, and says which.
        if found := re.search(r"tenant +http://127.0.0.1:(\d+)", _text(output)):
            self._ports[TENANT_PORT] = int(found[1])

    def _is_shown(self, shown: str, printed: str) -> bool:
        return is_shown(self._here(shown), printed)

    def _place(self) -> dict[str, Any]:
        return {
            "cwd": self._folder,
            "env": self._environ,
            "stdin": subprocess.DEVNULL,
            "stderr": subprocess.STDOUT,
            "text": True,
        }

    def _here(self, text: str) -> str:
        """Let pages that are followed at the same time not get in each other's way, and nobody wait for long."""
        for written, meant in {**self._meant, **self._ports}.items():
            text = text.replace(written, str(meant))
        return text


def _clone(folder: Path, api_port: int) -> None:
    for name in CLONED:
        (folder / name).symlink_to(ROOT / name)
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    _program(programs / "python", f'exec {sys.executable} "$@"')
    matoolkit = f"exec {sys.executable} -c 'from matoolkit.cli.main import main; main()'"
    everything = f'[ "$1" = up ] && {matoolkit} "$@" --port {api_port}'
    # What is logged is text where somebody looks on.
    _program(programs / "matoolkit", f'{everything}\nexport MATOOLKIT_LOG_FORMAT=text\n{matoolkit} "$@"')
    (programs / "activate").write_text(f"PATH={programs}:$PATH\n", encoding="utf-8")
    if shutil.which("curl") is None:
        _program(programs / "curl", f'exec {sys.executable} {Path(__file__).with_name("curl.py")} "$@"')
    # As new as anything that they are made from.
    for made in (".runs", ".ready"):
        (folder / ".venv" / made).touch()


def _program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port: int = place.getsockname()[1]
        return port


def _comes(happened: Callable[[], bool], pause: float = 0.2) -> bool:
    try:
        until(happened, _PATIENCE_SECONDS, pause)
    except AssertionError:
        return False
    return True


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _difference(command: Command, printed: str) -> str:
    return f"$ {command.typed}\n--- the page shows\n{command.shown}\n--- it printed\n{printed}"
