"""What a seed declares in a runbook that keeps work back: windows, sign-offs, pilots, budgets, places (C, K and S)."""

from collections.abc import Collection
from random import Random
from typing import Any

# Their clocks are changed at other times than that of UTC: in plays around such a day an hour comes twice, or never.
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
_DAYS = (["mon", "wed", "fri", "sun"], ["tue", "thu", "sat"], ["sat", "sun", "mon"])
# Everybody who may sign off, and in which way it can be said; the first publishes most versions.
SIGNERS = ("ann", "bob", "cleo")
_BY = (None, None, ["role:Approver"], ["bob", "cleo"])
_UNITS = {"d": 1440, "h": 60, "m": 1}
# Steps of phases in which only so many may fail call this, and those that windows interrupt.
FRAGILE, SLOW = "Try-It", "Test-Slowly"
_FOR_GOOD = 0.6
# A version makes use of some kinds of gates, and then in most phases; with all of them little would ever begin.
_KINDS = ("limit", "window", "rollout", "approval")
_HAS_WINDOW, _HAS_ROLLOUT, _HAS_APPROVAL, _HAS_PILOTS = 0.4, 0.8, 0.6, 0.6
_HOLDS_ARE_SIGNED, _INITS_ARE_SIGNED = 0.5, 0.7


class Declared:
    """Writes the keys of gates into a version of a runbook."""

    def __init__(self, rng: Random, zone: str = "UTC") -> None:
        self._rng = rng
        # Mostly that whose clock is about to be changed.
        self._zones = (*_ZONES, zone, zone, zone, zone)

    def into(self, document: dict[str, Any]) -> None:
        """Add some of them to a document."""
        rng = self._rng
        kinds = set(rng.sample(_KINDS, rng.choice([1, 1, 2, 2, 3])))
        if "limit" in kinds:
            document.setdefault("safeguards", {})["max_delay"] = rng.choice(["1h", "6h", "2d"])
        if "approval" in kinds and rng.random() < _HOLDS_ARE_SIGNED:
            document.setdefault("safeguards", {})["approval"] = self._approval()
        if "approval" in kinds and "init" in document and rng.random() < _INITS_ARE_SIGNED:
            document["init_approval"] = self._approval() | self._times_of_init()
        has_pilots = rng.random() < _HAS_PILOTS
        for phase in document["phases"]:
            self._into_phase(phase, kinds, has_pilots=has_pilots)
        if any(phase.get("rollout", {}).get("pilot_first") for phase in document["phases"]):
            document["pilot"] = rng.choice([{"column": "pilot"}, {"count": 1}, {"count": 2}, {"percent": 40}])

    def _into_phase(self, phase: dict[str, Any], kinds: Collection[str], *, has_pilots: bool) -> None:
        rng = self._rng
        if "window" in kinds and rng.random() < _HAS_WINDOW:
            phase["window"] = self.window()
            if phase["window"].get("binds") == "every_job":
                self._make_slow(phase["steps"])
        if "rollout" in kinds and rng.random() < _HAS_ROLLOUT:
            phase["rollout"] = self._rollout(has_pilots=has_pilots)
            self._make_fragile(phase["steps"])
        if "approval" in kinds and rng.random() < _HAS_APPROVAL:
            phase["approval"] = self._approval() | self._times_of(phase["offset"])

    def window(self) -> dict[str, Any]:
        """Write a window, in many cases one at whose ends some clocks are changed."""
        rng = self._rng
        opens = rng.choice([0, 60, 60, 90, 90, 120, 120, 150, 480, 1200, 1410])
        closes = (opens + rng.choice([20, 60, 90, 240, 600, 1200])) % 1440
        window: dict[str, Any] = {"from": _clock(opens), "to": _clock(closes), "zone": rng.choice(self._zones)}
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
        if rng.random() < 0.5 or not rollout:
            rollout["at_once"] = rng.choice([1, 1, 1, 2, 3])
        return rollout

    def _make_slow(self, steps: list[dict[str, Any]]) -> None:
        """Let steps last, so that the window shuts meanwhile."""
        for step in steps:
            if "poll" in step:
                step["function"] = SLOW
            else:
                step["function"] = FRAGILE
                step["retry"] = {"max_retries": 3, "interval": self._rng.choice(["5m", "1h"])}

    def _make_fragile(self, steps: list[dict[str, Any]]) -> None:
        """Let steps fail more often, and for good: otherwise too many would fail in few plays only."""
        for step in steps:
            if "poll" not in step:
                step["function"] = FRAGILE
            if self._rng.random() < _FOR_GOOD:
                step["retry"] = {"max_retries": 0, "interval": "5m"}

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
