"""Times and texts as a page says them: in one zone, which the page names, with UTC at hand."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup

from matoolkit.runbook.offsets import Offset
from matoolkit.visible import visible
from matoolkit.words import LOOKS, UNKNOWN, counted, distance, gap_to

# Phones turn some glyphs into coloured pictures unless this follows them.
_AS_TEXT = "\ufe0e"
_CUT = 80
_HALF_A_YEAR = timedelta(days=183)


@dataclass(frozen=True, slots=True)
class Saying:
    """How a page says things to one viewer at one moment."""

    zone: ZoneInfo
    now: datetime

    @property
    def zone_name(self) -> str:
        """The short name of the zone at this moment."""
        return self.here(self.now).tzname() or self.zone.key

    def here(self, at: datetime) -> datetime:
        """Return a time in the viewer's zone."""
        return at.astimezone(self.zone)

    def at(self, at: datetime | None) -> Markup:
        """Write a whole date and time with its zone."""
        return self._time(at, "{day} %Y %H:%M %Z")

    def day(self, at: datetime | None) -> Markup:
        """Write a date and time for a column whose heading names the zone; the year only if it is far away."""
        far = at is not None and abs(at - self.now) > _HALF_A_YEAR
        return self._time(at, "{day} %Y %H:%M" if far else "{day} %H:%M")

    def plainly(self, at: datetime) -> str:
        """Write a date and time as bare text, for what cannot hold more."""
        here = self.here(at)
        return here.strftime(f"%a {here.day} %b %H:%M")

    def date(self, at: datetime) -> str:
        """Write a day without its time."""
        here = self.here(at)
        return here.strftime(f"{here.day} %b %Y")

    def exactly(self, at: datetime | None) -> Markup:
        """Write a date and time to the second."""
        return self._time(at, "{day} %H:%M:%S")

    def clock(self, at: datetime | None) -> Markup:
        """Write a time of day, with its day if that is not today."""
        same = at is not None and self.here(at).date() == self.here(self.now).date()
        return self._time(at, "%H:%M" if same else "{day} %H:%M")

    def gap(self, start: datetime | None, at: datetime | None) -> str:
        """Write where a time stands relative to T; nothing without a T."""
        return gap_to(start, at) if start and at else ""

    def ago(self, at: datetime | None) -> str:
        """Write how long ago something was, or how soon it is."""
        if at is None:
            return ""
        return f"{distance(self.now - at)} ago" if at <= self.now else f"in {distance(at - self.now)}"

    def since(self, at: datetime | None) -> str:
        """Write how long something has lasted."""
        return distance(self.now - at) if at else ""

    def lasting(self, duration: timedelta) -> str:
        """Write a duration."""
        return distance(duration)

    def took(self, begun: datetime | None, ended: datetime | None) -> str:
        """Write how long something took; short times with a decimal."""
        if begun is None or ended is None or ended < begun:
            return ""
        seconds = (ended - begun).total_seconds()
        return f"{seconds:.1f}s" if seconds < 10 else distance(ended - begun)

    def _time(self, at: datetime | None, form: str) -> Markup:
        if at is None:
            return Markup("")
        utc, here = at.astimezone(UTC), self.here(at)
        told = here.strftime(form.replace("{day}", f"%a {here.day} %b"))
        return Markup('<time datetime="{}" title="{}">{}</time>').format(
            f"{utc:%Y-%m-%dT%H:%M:%SZ}", f"{utc:%Y-%m-%d %H:%M:%S} UTC", told
        )


def state(word: object, text: str | None = None) -> Markup:
    """Write a state as colour, glyph and word."""
    look = LOOKS.get(str(word), UNKNOWN)
    told = text if text is not None else str(word).replace("_", " ")
    return signed(look.role, look.glyph, told)


def signed(role: str, glyph: str, text: str) -> Markup:
    """Write something with the colour and glyph of a role."""
    return Markup('<span class="st {}" data-g="{}">{}</span>').format(role, f"{glyph}{_AS_TEXT}", text)


def role_of(word: object) -> str:
    """Return the role of a state, which is the name of its colour."""
    return LOOKS.get(str(word), UNKNOWN).role


def glyph_of(word: object) -> str:
    """Return the glyph of a state."""
    return f"{LOOKS.get(str(word), UNKNOWN).glyph}{_AS_TEXT}"


def shown(text: object, longest: int = _CUT) -> Markup:
    """Write a text from elsewhere as `plain` does, with no influence on what is around it."""
    return Markup("<bdi>{}</bdi>").format(plain(text, longest))


def plain(text: object, longest: int = _CUT) -> str:
    """Write a text from elsewhere where there is no place for elements: cut, with control characters written out."""
    told = "" if text is None else str(text)
    return visible(told if len(told) <= longest else f"{told[: longest - 1]}…")


def number(count: int | None) -> str:
    """Write a number as the command line does."""
    return "" if count is None else f"{count:,}"


def plural(count: int, noun: str) -> str:
    """Write a count with its noun."""
    return counted(count, noun)


def percent(part: float, whole: float) -> str:
    """Write a share in per cent, as a coordinate of a drawing."""
    return f"{100 * part / whole:.2f}%" if whole else "0%"


def offset_of(minutes: int) -> str:
    """Write a distance from T as runbooks do."""
    return str(Offset(minutes))
