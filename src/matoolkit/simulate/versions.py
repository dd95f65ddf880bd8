"""What a version does to members that failed under another one, and to phases that are past due (rules O14, V4)."""

from collections.abc import Sequence

from matoolkit.simulate.invariants import Violation
from matoolkit.simulate.recording import Entry

_OVER = ("failed", "poll_timeout", "cancelled")


def versions_are_followed(entries: Sequence[Entry]) -> None:
    """Demand that a retry runs the version that the batch follows, and that no phase is skipped that never began."""
    waited = {
        (entry.about["batch"], entry.about["name"].casefold())
        for entry in entries
        if entry.what == "phase" and (entry.old, entry.new) == ("pending", "superseded")
    }
    for entry in entries:
        about = entry.about
        if _is_reopened(entry) and about["version"] != about["follows"]:
            raise Violation(f"{entry} under version {about['version']}; its batch follows {about['follows']}")
        if _is_passed_by(entry) and (about["batch"], about["name"].casefold()) in waited:
            raise Violation(f"{entry}, though it waited and has begun under no version: {about}")


def _is_reopened(entry: Entry) -> bool:
    return entry.what == "step" and entry.new == "pending" and entry.old in _OVER


def _is_passed_by(entry: Entry) -> bool:
    return entry.what == "new_phase" and entry.new == "skipped" and not entry.about["begun"]
