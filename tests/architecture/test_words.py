"""Prose is plain English: some turns of phrase that a reader has to read twice are refused.

The list has only what can be found by pattern without false alarms. Say *fix*, not the older verb; name the subject
instead of an unnamed person; say *already* or *now* instead of the vague phrase.
"""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is refused, and what to write instead.
SIGNS = {
    r"who(m)?ever": "name the subject: a member that, a process that, everybody who",
    r"of whom": "a sentence of its own",
    r"of which (no|a|an|any|the|only|some|it|its|there)": "a sentence of its own, or whose",
    r"by now": "now, already, since",
    r"mend(s|ed|ing)?": "fix",
    r"do(es)? no harm": "say what happens instead",
    r"how manieth": "the number of",
    r"for want of": "without, because ... is missing",
    r"all the same": "still, anyway",
    r"in vain": "without result",
}
_SIGN = re.compile("|".join(rf"\b{sign}\b" for sign in SIGNS), re.IGNORECASE)
_PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("runbooks/*.yaml")]
_MODULES = [
    path
    for folder in ("src", "tests", "bench", "docs", "examples")
    for path in ROOT.glob(f"{folder}/**/*.py")
    if path != Path(__file__)
]


def _prose(module: Path) -> Iterator[tuple[int, str]]:
    """Return the comments and texts of a module; its names are not prose."""
    with module.open("rb") as code:
        for token in tokenize.tokenize(code.readline):
            if token.type in {tokenize.COMMENT, tokenize.STRING}:
                yield token.start[0], " ".join(token.string.split())


def found_in(lines: Iterator[tuple[int, str]]) -> list[str]:
    """Return every sign, with its line."""
    return [f"line {number}: {sign[0]!r}" for number, text in lines for sign in _SIGN.finditer(text)]


@pytest.mark.parametrize(
    "room", sorted({path.parent for path in _MODULES}), ids=lambda room: str(room.relative_to(ROOT))
)
def test_comments_and_texts_are_plain(room: Path) -> None:
    modules = (path for path in _MODULES if path.parent == room)
    signs = {path.name: found for path in modules if (found := found_in(_prose(path)))}
    assert not signs, f"rewrite the sentence, see {Path(__file__).name}"


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_plain(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert found_in(iter(enumerate(lines, 1))) == []


@pytest.mark.parametrize(
    "text", ["Whoever waits is woken", "it is held by now", "mend the rows", "a pile of which a part is gone"]
)
def test_a_sign_is_found(text: str) -> None:
    assert found_in(iter([(1, text)]))


@pytest.mark.parametrize("text", ["amend the commit", "which attempt of which work", "recommended"])
def test_other_words_are_left_alone(text: str) -> None:
    assert not found_in(iter([(1, text)]))
