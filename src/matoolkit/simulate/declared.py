"""What a seed declares in a runbook that keeps work back: windows, a longest delay (rules K2 and K5)."""

from random import Random
from typing import Any

# Their clocks are changed at other times than that of UTC: in plays around such a day an hour comes twice, or never.
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
_DAYS = (["mon", "wed", "fri", "sun"], ["tue", "thu", "sat"], ["sat", "sun", "mon"])


class Declared:
    """Writes the keys of gates into a version of a runbook."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def into(self, document: dict[str, Any]) -> None:
        """Add some of them to a document."""
        if self._rng.random() < 0.3:
            document.setdefault("safeguards", {})["max_delay"] = self._rng.choice(["1h", "6h", "2d"])
        for phase in document["phases"]:
            self._into_phase(phase)

    def _into_phase(self, phase: dict[str, Any]) -> None:
        if self._rng.random() < 0.35:
            phase["window"] = self.window()

    def window(self) -> dict[str, Any]:
        """Write a window, in many cases one at whose ends some clocks are changed."""
        rng = self._rng
        opens = rng.choice([0, 60, 90, 120, 150, 480, 1200, 1410])
        closes = (opens + rng.choice([60, 90, 240, 600, 1200])) % 1440
        window: dict[str, Any] = {"from": _clock(opens), "to": _clock(closes), "zone": rng.choice(_ZONES)}
        if rng.random() < 0.3:
            window["days"] = rng.choice(_DAYS)
        if rng.random() < 0.5:
            window["binds"] = "every_job"
        return window


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
