"""Colours that everybody can read and tell apart: computed from the tokens of the style sheet, for both themes.

Contrast is that of WCAG 2.2. Distances are CIEDE2000, as people see them with all cones and without one kind (the
matrices of Machado, Oliveira and Fernandes, 2009, at full severity).
"""

import re
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path

import pytest

from matoolkit.web import assets

ROLES = ("wait", "run", "poll", "done", "fail", "held", "undo", "gone")
SURFACES = ("bg", "surface", "sunk")
SIGHTS = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# Few people have no cones for blue; for them the glyph upon the fill carries more.
NEAREST = {"all cones": 15, "no green": 12, "no red": 12, "no blue": 9}
TEXT, GRAPHIC = 4.5, 3.0

Triple = tuple[float, float, float]


STATIC = Path(assets.__file__).with_name("static")
# A block for a width: the rules in it, to the brace at the beginning of a line, or to the end of the line.
FOR_A_WIDTH = re.compile(r"^@media \([a-z-]*width[^{]*\{(?:\n(.*?)^\}|([^\n]*)\}$)", re.DOTALL | re.MULTILINE)
# What decides how well words and marks can be seen.
COLOUR = re.compile(r"\b(?:background|color|fill|filter|opacity|stroke)\b")


def tokens(theme: int) -> dict[str, str]:
    css = STATIC.joinpath("base.css").read_text()
    found = {name: pair[theme] for name, *pair in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", css)}
    others = re.findall(r"--([\w-]+-ink): var\(--([\w-]+)\);", css)
    return found | {name: found[other] for name, other in others}


def linear(colour: str) -> Triple:
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return (_linear(red), _linear(green), _linear(blue))


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4


def contrast(one: str, two: str) -> float:
    bright, dark = sorted((_dot((0.2126, 0.7152, 0.0722), linear(colour)) for colour in (one, two)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def seen(colour: str, sight: str) -> Triple:
    """Return where somebody sees a colour in CIE L*a*b*."""
    light = linear(colour)
    red, green, blue = (min(max(_dot(row, light), 0.0), 1.0) for row in SIGHTS[sight])
    to_xyz = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    x, y, z = (_root(_dot(row, (red, green, blue)) / w) for row, w in zip(to_xyz, (0.95047, 1, 1.08883), strict=True))
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def _dot(row: Triple, other: Triple) -> float:
    return sum(one * two for one, two in zip(row, other, strict=True))


def _root(part: float) -> float:
    return float(part ** (1 / 3)) if part > 0.008856 else 7.787 * part + 16 / 116


def distance(one: Triple, two: Triple) -> float:
    """Return how different two colours look, CIEDE2000."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * _grown(mean)
    c1, c2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    h1, h2 = degrees(atan2(b1, a1 * stretch)) % 360, degrees(atan2(b2, a2 * stretch)) % 360
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    chroma, hue = (c1 + c2) / 2, (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    lightness = ((l1 + l2) / 2 - 50) ** 2
    waves = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    weight = 1 + sum(size * cos(radians(times * hue + by)) for size, times, by in waves)
    far = (l2 - l1) / (1 + 0.015 * lightness / sqrt(20 + lightness))
    full = (c2 - c1) / (1 + 0.045 * chroma)
    around = 2 * sqrt(c1 * c2) * sin(radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    bend = -2 * _grown(chroma) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    return sqrt(far**2 + full**2 + around**2 + bend * full * around)


def _grown(chroma: float) -> float:
    return sqrt(chroma**7 / (chroma**7 + 25.0**7))


@pytest.fixture(params=[0, 1], ids=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> dict[str, str]:
    return tokens(request.param)


def test_the_distance_is_that_of_the_standard() -> None:
    """Pairs of the test data of Sharma, Wu and Dalal, 2005."""
    assert distance((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert distance((50, 2.5, 0), (58, 24, 15)) == pytest.approx(19.4535, abs=1e-4)
    assert distance((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514)) == pytest.approx(0.9082, abs=1e-4)
    assert distance((50, -1, 2), (50, 0, 0)) == pytest.approx(2.3669, abs=1e-4)
    assert contrast("#ffffff", "#000000") == pytest.approx(21)


def test_words_can_be_read_upon_every_surface(theme: dict[str, str]) -> None:
    words = ["ink", "ink-2", "ink-3", "link", *(f"{role}-ink" for role in ROLES)]
    low = {(word, on) for word in words for on in SURFACES if contrast(theme[word], theme[on]) < TEXT}
    assert low == set()


def test_glyphs_can_be_read_upon_their_fills(theme: dict[str, str]) -> None:
    assert [role for role in ROLES if contrast(theme[f"{role}-mark"], theme[f"{role}-fill"]) < TEXT] == []


def test_borders_of_controls_and_the_focus_can_be_seen(theme: dict[str, str]) -> None:
    lines = [(line, on) for line in ("edge", "focus") for on in SURFACES]
    assert [pair for pair in lines if contrast(theme[pair[0]], theme[pair[1]]) < GRAPHIC] == []


@pytest.mark.parametrize("sight", SIGHTS)
def test_fills_of_roles_are_told_apart(theme: dict[str, str], sight: str) -> None:
    places = {role: seen(theme[f"{role}-fill"], sight) for role in ROLES}
    pairs = combinations(ROLES, 2)
    near = {(one, two): far for one, two in pairs if (far := distance(places[one], places[two])) < NEAREST[sight]}
    assert near == {}


def test_a_theme_changes_colours_alone_and_a_width_changes_none() -> None:
    """So a look at a page wide in one theme and one narrow in the other show all of it (test_accessible.py)."""
    sheets = [path.read_text() for path in STATIC.glob("*.css")]
    # `light-dark()` can only be a colour. Nothing else goes by the theme than which of the two it is.
    lines = [line.strip() for sheet in sheets for line in sheet.splitlines() if re.search("scheme|data-theme", line)]
    chosen = re.compile(r'(:root\[data-theme="\w+"\] \{ )?color-scheme: [\w ]+;( \})?')
    assert [line for line in lines if not chosen.fullmatch(line)] == []
    rules = ["".join(found) for sheet in sheets for found in FOR_A_WIDTH.findall(sheet)]
    assert len(rules) == sum(len(re.findall(r"@media \([a-z-]*width", sheet)) for sheet in sheets)
    assert [rule for rule in rules if COLOUR.search(rule)] == []
