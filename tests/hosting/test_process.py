"""How signals stop a process: in a process of its own, because it is the one that would die."""

import subprocess
import sys

import pytest

STOPPING = """
import atexit, signal
from matoolkit.hosting.process import stopped_by_signals

with stopped_by_signals() as stop:
    signal.raise_signal(signal.SIGTERM)
    assert stop.is_set()
    {during}
{after}
{at_the_end}
print("let go")
"""
AGAIN = "signal.raise_signal(signal.SIGTERM)"
AT_THE_END = "atexit.register(signal.raise_signal, signal.SIGTERM)"


def stopping(during: str = "pass", after: str = "pass", at_the_end: str = "pass") -> "subprocess.CompletedProcess[str]":
    script = STOPPING.format(during=during, after=after, at_the_end=at_the_end)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "moment",
    [{"during": AGAIN}, {"after": AGAIN}, {"at_the_end": AT_THE_END}],
    ids=["while its parts stop", "while it lets go", "at its very end"],
)
def test_t10_a_second_signal_does_not_keep_a_process_from_letting_go(moment: dict[str, str]) -> None:
    done = stopping(**moment)
    assert (done.returncode, done.stdout) == (0, "let go\n"), done.stderr


@pytest.mark.parametrize("when", ["during", "after"])
def test_a_second_ctrl_c_ends_a_process_that_takes_too_long(when: str) -> None:
    done = stopping(**{when: "signal.raise_signal(signal.SIGINT)"})
    assert done.returncode != 0
    assert done.stdout == ""
    assert "KeyboardInterrupt" in done.stderr


def test_a_process_that_no_signal_stopped_has_its_handlers_back() -> None:
    script = "\n".join(
        [
            "import signal",
            "from matoolkit.hosting.process import stopped_by_signals",
            "before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)",
            "with stopped_by_signals(): pass",
            "print((signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
