"""Windows that open, and open in time (rules K2, K5 and K6)."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_
from zoneinfo import ZoneInfo

from matoolkit.duration import format_duration
from matoolkit.runbook.model import Phase, Window
from matoolkit.runbook.rules.context import Check
from matoolkit.runbook.templates import Path
from matoolkit.runbook.values import DAY_MINUTES, WEEKDAYS

_WEEK = 7 * DAY_MINUTES
_ALWAYS = (1 << _WEEK) - 1
# A zone's clock has at most two settings, which these two days show.
_SEASONS = (datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 7, 6, tzinfo=UTC))


def windows_have_a_length(check: Check) -> None:
    """Report a window that ends when it begins, and warn of one that is never shut."""
    for path, _, window in _windows(check):
        if window.opens_at == window.closes_at:
            message = "'from' and 'to' of the window are the same time"
            check.report("RB220", (*path, "to" if window.closes is not None else "from"), message)
        elif window.is_always_open:
            check.report("RB310", path, "'window' has no effect: it is always open", "remove the key", key=True)


def windows_open_in_time(check: Check) -> None:
    """Warn of windows that some phase misses by more than `max_delay`, whatever T is."""
    delay = check.parts.safeguards.max_delay if check.parts.safeguards else None
    if delay is None or check.has_lost("phases", "offset", "window"):
        return
    found = [each for each in _windows(check) if each[2].opens_at != each[2].closes_at]
    if check.parts.data_source and check.parts.data_source.batch_time == "immediate":
        for path, phase, window in found:
            _warn_of_gap(check, path, phase, window, delay)
    else:
        _warn_of_contradiction(check, found, delay)


def windows_open_while_sign_offs_count(check: Check) -> None:
    """Warn of windows of immediate runbooks that may open only when sign-offs are too old (rule S5).

    Where T has a time there always is one for which the window is open when the phase is due, so nothing contradicts
    itself: the sign-off is given before `until`, and counts at the opening. Without `valid` it counts for a week.
    """
    source, safeguards = check.parts.data_source, check.parts.safeguards
    if source is None or source.batch_time != "immediate" or check.has_lost("phases", "offset", "window", "approval"):
        return
    delay = safeguards.max_delay if safeguards else None
    for path, phase, window in _windows(check):
        approval = phase.approval
        if approval is None or approval.until is None or approval.valid is None or window.opens_at == window.closes_at:
            continue
        # Offsets are kept as minutes before T (rule R3).
        longest = timedelta(minutes=phase.offset.minutes - approval.until.minutes) + approval.valid
        is_late_before = delay is not None and delay <= longest
        if not is_late_before and all(
            _in_time(check, phase, window, longest, season) != _ALWAYS for season in _SEASONS
        ):
            message = (
                f"T of an immediate runbook can be any time, and the window of phase '{phase.name}' is shut for longer"
                f" than sign-offs count: until {approval.until}, and then for {format_duration(approval.valid)}"
            )
            hint = "give the window more hours, or leave 'valid' out: then they count for a week"
            check.report("RB319", path, message, hint, key=True)


def _warn_of_gap(check: Check, path: Path, phase: Phase, window: Window, delay: timedelta) -> None:
    if all(_in_time(check, phase, window, delay, season) != _ALWAYS for season in _SEASONS):
        message = (
            f"T of an immediate runbook can be any time, and the window of phase '{phase.name}' is shut for longer than"
            f" {format_duration(delay)}, the max_delay"
        )
        check.report("RB319", path, message, key=True)


def _warn_of_contradiction(check: Check, found: list[tuple[Path, Phase, Window]], delay: timedelta) -> None:
    possible = [_ALWAYS for _ in _SEASONS]
    for path, phase, window in found:
        suits = [_in_time(check, phase, window, delay, season) for season in _SEASONS]
        possible = [reduce(and_, pair) for pair in zip(possible, suits, strict=True)]
        if not any(possible):
            message = (
                f"with a max_delay of {format_duration(delay)} there is no T for which phase '{phase.name}'"
                f" ({phase.offset}) and those above it all come into their windows in time"
            )
            check.report("RB319", path, message, key=True)
            return


def _in_time(check: Check, phase: Phase, window: Window, delay: timedelta, season: datetime) -> int:
    """Return the minutes of a week, as bits, at which T may be for the phase to begin within a delay after it is due.

    Clocks that change within the week are not looked at.
    """
    shown = season.astimezone(ZoneInfo(_zone(check, window))).utcoffset() or timedelta()
    ahead = int(shown.total_seconds()) // 60
    length = (window.closes_at - window.opens_at) % DAY_MINUTES or DAY_MINUTES
    reach = min(int(delay.total_seconds()) // 60 + length, _WEEK)
    bits = 0
    for day in set(window.days):
        opens = WEEKDAYS.index(day) * DAY_MINUTES + window.opens_at - ahead
        bits |= _turned((1 << reach) - 1, opens + length - reach + phase.offset.minutes)
    return bits


def _turned(bits: int, minutes: int) -> int:
    minutes %= _WEEK
    return (bits << minutes | bits >> (_WEEK - minutes)) & _ALWAYS


def _zone(check: Check, window: Window) -> str:
    source = check.parts.data_source
    return window.zone or (source.batch_time_zone if source else None) or "UTC"


def _windows(check: Check) -> Iterator[tuple[Path, Phase, Window]]:
    for path, phase in check.parts.items(("phases",), check.parts.phases):
        if phase.window is not None and check.is_sound((*path, "window")):
            yield (*path, "window"), phase, phase.window


RULES = (windows_have_a_length, windows_open_in_time, windows_open_while_sign_offs_count)
