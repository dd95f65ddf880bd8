"""What a seed declares in a runbook that keeps work back: windows, sign-offs, pilots, budgets, places (C, K and S)."""

from random import Random
from typing import Any

# Their clocks are changed at other times than that of UTC: in plays around such a day an hour comes twice, or never.
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
_DAYS = (["mon", "wed", "fri", "sun"], ["tue", "thu", "sat"], ["sat", "sun", "mon"])
# Everybody who may sign off, and in which way it can be said; the first publishes most versions.
SIGNERS = ("ann", "bob", "cleo")
_BY = (None, None, ["role:Approver"], ["bob", "cleo"])
_UNITS = {"d": 1440, "h": 60, "m": 1}
# How often a version has each.
_HAS_LIMIT, _HAS_WINDOW, _HAS_ROLLOUT, _HAS_APPROVAL, _HAS_PILOTS = 0.3, 0.25, 0.5, 0.35, 0.6
_HOLDS_ARE_SIGNED, _INITS_ARE_SIGNED = 0.3, 0.5


class Declared:
    """Writes the keys of gates into a version of a runbook."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def into(self, document: dict[str, Any]) -> None:
        """Add some of them to a document."""
        rng = self._rng
        if rng.random() < _HAS_LIMIT:
            document.setdefault("safeguards", {})["max_delay"] = rng.choice(["1h", "6h", "2d"])
        if rng.random() < _HOLDS_ARE_SIGNED:
            document.setdefault("safeguards", {})["approval"] = self._approval()
        if "init" in document and rng.random() < _INITS_ARE_SIGNED:
            document["init_approval"] = self._approval() | self._times_of_init()
        has_pilots = rng.random() < _HAS_PILOTS
        for phase in document["phases"]:
            self._into_phase(phase, has_pilots=has_pilots)
        if any(phase.get("rollout", {}).get("pilot_first") for phase in document["phases"]):
            document["pilot"] = rng.choice([{"column": "pilot"}, {"count": 1}, {"count": 2}, {"percent": 40}])

    def _into_phase(self, phase: dict[str, Any], *, has_pilots: bool) -> None:
        rng = self._rng
        if rng.random() < _HAS_WINDOW:
            phase["window"] = self.window()
        if rng.random() < _HAS_ROLLOUT:
            phase["rollout"] = self._rollout(has_pilots=has_pilots)
        if rng.random() < _HAS_APPROVAL:
            phase["approval"] = self._approval() | self._times_of(phase["offset"])

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

    def _rollout(self, *, has_pilots: bool) -> dict[str, Any]:
        rng = self._rng
        rollout: dict[str, Any] = {}
        if has_pilots and rng.random() < 0.7:
            rollout["pilot_first"] = True
            if rng.random() < 0.5:
                rollout["soak"] = rng.choice(["10m", "2h", "9h"])
        if rng.random() < 0.5:
            rollout["max_failures"] = rng.choice([0, 0, 1, "30%", "50%"])
        if rng.random() < 0.4 and ("max_failures" in rollout or "pilot_first" in rollout):
            rollout["on_exceeded"] = "stop"
        if rng.random() < 0.4 or not rollout:
            rollout["at_once"] = rng.choice([1, 1, 2, 3])
        return rollout

    def _approval(self) -> dict[str, Any]:
        rng = self._rng
        rule: dict[str, Any] = {"count": rng.choice([1, 1, 2])}
        if (by := rng.choice(_BY)) is not None:
            rule["by"] = by
        # Otherwise nobody could approve what one of two publishes whom it needs both.
        is_possible = by is None or by[0] == "role:Approver" or rule["count"] == 1
        if is_possible and rng.random() < 0.3:
            rule["not_publisher"] = True
        if rng.random() < 0.3:
            rule["valid"] = rng.choice(["1h", "6h", "2d"])
        return rule

    def _times_of(self, due: str) -> dict[str, str]:
        """Write when a phase that is due at an offset can be signed off."""
        rng, minutes = self._rng, minutes_after(due)
        times = {"from": offset_of(minutes - rng.choice([30, 240, 1440]))} if rng.random() < 0.3 else {}
        if rng.random() < 0.3:
            times["until"] = offset_of(minutes + rng.choice([20, 120, 600]))
        return times

    def _times_of_init(self) -> dict[str, str]:
        rng = self._rng
        times = {"from": offset_of(-rng.choice([240, 1440]))} if rng.random() < 0.2 else {}
        if rng.random() < 0.2:
            times["until"] = offset_of(-rng.choice([0, 120]))
        return times


def minutes_after(offset: str) -> int:
    """Return how many minutes after T an offset is: `T-4h` is 240 before."""
    rest = offset.removeprefix("T")
    return int(rest[:-1]) * _UNITS[rest[-1]] if rest[-1] in _UNITS else int(rest)


def offset_of(minutes: int) -> str:
    """Write so many minutes after T as an offset."""
    return f"T{'+' if minutes > 0 else '-'}{abs(minutes)}{'m' if minutes else ''}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
