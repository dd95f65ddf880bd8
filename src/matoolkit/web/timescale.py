"""Days side by side: where a time stands in a drawing, in per cent, in the zone of the viewer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

_WEEK = 7
_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Whole weeks from a Monday."""

    zone: ZoneInfo
    monday: date
    weeks: int

    @property
    def begin(self) -> datetime:
        """The first moment."""
        return self._midnight(0)

    @property
    def end(self) -> datetime:
        """The first moment that is not on it."""
        return self._midnight(self.weeks * _WEEK)

    def shows(self, at: datetime) -> bool:
        """Tell whether a time is on it."""
        return self.begin <= at < self.end

    def x(self, at: datetime) -> str:
        """Say where a time stands; what is before or after stands at the edge."""
        return f"{100 * self._share(at):.2f}%"

    def width(self, begin: datetime, end: datetime) -> str:
        """Say how wide the time between two moments is."""
        return f"{100 * max(0.0, self._share(end) - self._share(begin)):.2f}%"

    @property
    def weekends(self) -> list[tuple[str, str]]:
        """Where the weekends stand, and how wide they are."""
        found = [(self._midnight(week * _WEEK + _SATURDAY), self._midnight((week + 1) * _WEEK)) for week in self._all]
        return [(self.x(begin), self.width(begin, end)) for begin, end in found]

    @property
    def labels(self) -> list[tuple[str, str]]:
        """Where the Mondays stand, and their day; the month where it is another."""
        days = [self.monday + timedelta(days=week * _WEEK) for week in self._all]
        new = [at == 0 or day.month != days[at - 1].month for at, day in enumerate(days)]
        told = [f"{day.day} {day:%b}" if is_new else str(day.day) for day, is_new in zip(days, new, strict=True)]
        return [(self.x(self._midnight(week * _WEEK)), label) for week, label in zip(self._all, told, strict=True)]

    @property
    def _all(self) -> range:
        return range(self.weeks)

    def _share(self, at: datetime) -> float:
        return min(1.0, max(0.0, (at - self.begin) / (self.end - self.begin)))

    def _midnight(self, day: int) -> datetime:
        # Through UTC: a day on which clocks change is not 24 hours long.
        return datetime.combine(self.monday + timedelta(days=day), time(), self.zone).astimezone(ZoneInfo("UTC"))


def polyline(values: Sequence[float], height: int = 32) -> str:
    """Write values side by side as the points of a line in a box 100 wide; the largest is at the top."""
    top, room = max(values, default=0) or 1, height - 4
    step = 100 / max(1, len(values) - 1)
    return " ".join(f"{at * step:.1f},{height - 2 - room * value / top:.1f}" for at, value in enumerate(values))
