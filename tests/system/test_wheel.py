"""The wheel, installed into an empty place: `matoolkit up` works there, and so does what errors refer to."""

import os
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.system.test_up import Running

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel, install it without a network, and return where the command is."""
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    venv.create(place / "venv")
    python = place / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    # The libraries are those of the tests. Its own package comes first, and a path file of theirs is not read.
    (found,) = (place / "venv").glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (found / "libraries.pth").write_text("\n".join(libraries or [sysconfig.get_path("purelib")]), encoding="utf-8")
    return python.parent / "matoolkit"


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("MATOOLKIT_", "PYTHON"))}


@pytest.mark.waits
def test_up_runs_the_demo_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [installed, "up", "--port", "0"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    running = Running(process)
    try:
        running.says("the whole system in one process, on the demo")
        running.says("★ migrated ada@contoso.com")
        running.says("■ ended the batch is completed: 2 migrated, 1 failed")
        assert running.stops(signal.SIGTERM) == 0
    finally:
        if process.poll() is None:
            process.kill()
            running.ends()
    assert [path.name for path in tmp_path.iterdir()] == [".matoolkit"]


def test_what_an_error_refers_to_can_be_read_there(installed: Path, tmp_path: Path) -> None:
    def said(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([installed, *command], cwd=tmp_path, env=environment(), capture_output=True, text=True)

    refused = said("runbook", "lint", "nowhere.yaml")
    *_, reference = refused.stderr.strip().splitlines()
    code, _, command = reference.strip().partition(": matoolkit ")
    explained = said(*command.split())
    assert explained.returncode == 0
    assert explained.stdout.startswith(f"{code} (exit code 3")
    assert "A file cannot be read." in explained.stdout


def test_the_package_that_runs_is_the_installed_one(installed: Path, tmp_path: Path) -> None:
    script = "import matoolkit; print(matoolkit.__file__)"
    python = installed.with_name("python")
    where = subprocess.run([python, "-c", script], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert where.stdout.startswith(str(installed.parents[1]))
