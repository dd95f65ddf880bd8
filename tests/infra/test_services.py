"""The examples that make a service of a worker: systemd and Windows can read them, and the worker their settings."""

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from configparser import ConfigParser
from pathlib import Path

import pytest

from matoolkit.settings import WorkerSettings, load_settings, variable_names

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "examples" / "systemd" / "matoolkit-worker@.service"
SETTINGS = UNIT.with_name("worker.env")
SERVICE = ROOT / "examples" / "windows" / "matoolkit-worker.xml"
# Read by azure-identity, and by every process.
OF_OTHERS = {"HOME", "MATOOLKIT_LOG_FORMAT", "AZURE_TOKEN_CREDENTIALS", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"}


def unit() -> ConfigParser:
    read = ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]
    read.read(UNIT)
    return read


def variables(text: str) -> dict[str, str]:
    """Read lines `NAME=value`, also those that are comments because they are a choice."""
    return dict(re.findall(r"^#?(?:Environment=)?([A-Z][A-Z_]+)=(.+)$", text, re.MULTILINE))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_reads_the_unit_without_a_word(tmp_path: Path) -> None:
    # Where the command is installed is up to the machine; that it exists is all that differs here.
    text = UNIT.read_text(encoding="utf-8").replace("/opt/matoolkit/bin/matoolkit", sys.executable)
    made = tmp_path / UNIT.name.replace("@", "@worker-02")
    made.write_text(text, encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(made)], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    made.write_text(text.replace("KillMode=mixed", "KillMode=gently"), encoding="utf-8")
    found = subprocess.run(["systemd-analyze", "verify", str(made)], capture_output=True, text=True)
    assert "gently" in found.stderr, "a mistake is found"


def test_w1_systemd_waits_longer_than_running_jobs_may_take() -> None:
    service = unit()["Service"]
    assert service["ExecStart"] == "/opt/matoolkit/bin/matoolkit worker run --id %i"
    assert int(service["TimeoutStopSec"]) > load_settings(WorkerSettings, {}).shutdown_grace_seconds


@pytest.mark.parametrize("path", [UNIT, SETTINGS], ids=lambda path: path.name)
def test_settings_of_the_unit_are_known(path: Path) -> None:
    given = variables(path.read_text(encoding="utf-8"))
    allowed = set(variable_names(WorkerSettings).values()) | OF_OTHERS | {"AZURE_CLIENT_CERTIFICATE_PATH"}
    assert given
    assert set(given) <= allowed


def test_the_worker_takes_the_settings_of_the_example() -> None:
    loaded = load_settings(WorkerSettings, variables(SETTINGS.read_text(encoding="utf-8")))
    assert (loaded.cert_name, loaded.max_parallelism) == ("worker-02", 4)


def test_the_windows_service_runs_a_worker_with_settings_that_it_knows() -> None:
    service = ET.parse(SERVICE).getroot()
    assert service.findtext("arguments") == "worker run --id worker-02"
    given = {str(one.get("name")): str(one.get("value")) for one in service.findall("env")}
    assert set(given) <= set(variable_names(WorkerSettings).values()) | OF_OTHERS
    load_settings(WorkerSettings, {name: value for name, value in given.items() if name != "MATOOLKIT_LOG_FORMAT"})
    seconds = int(str(service.findtext("stoptimeout")).removesuffix(" sec"))
    assert seconds > load_settings(WorkerSettings, {}).shutdown_grace_seconds
