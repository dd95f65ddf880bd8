"""W1: a platform can ask how a worker is."""

from dataclasses import dataclass

import httpx
import pytest

from matoolkit.worker.health import health_served


@dataclass
class Patient:
    is_alive: bool
    is_ready: bool


@pytest.mark.parametrize(
    ("patient", "path", "status"),
    [
        (Patient(is_alive=True, is_ready=False), "/healthz", 200),
        (Patient(is_alive=False, is_ready=False), "/healthz", 503),
        (Patient(is_alive=True, is_ready=True), "/readyz?verbose=1", 200),
        (Patient(is_alive=True, is_ready=False), "/readyz", 503),
        (Patient(is_alive=True, is_ready=True), "/", 404),
    ],
)
def test_w1_health_is_told(patient: Patient, path: str, status: int) -> None:
    with health_served(patient, 0, "127.0.0.1") as port:
        assert httpx.get(f"http://127.0.0.1:{port}{path}").status_code == status
