"""Pages as somebody who follows them reads them: files to save, commands to type, and what is then printed.

In a `console` block a line that begins with `$ ` is typed and the lines below it are what is printed; `…` stands for
anything, and `^C` stops what runs. What is typed has to succeed, unless an error is shown or `echo $?` comes next.
Each line of a `sh` block is typed too, and what it prints is not shown. A block of any other language whose first line
names a file after the language is that file. `no-test` after `sh` or `console` marks what cannot be run here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

_BLOCK = re.compile(r"^( *)```(?P<language>\w+)(?P<rest>[^\n]*)\n(?P<body>.*?)^ *```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class File:
    """A file to save."""

    name: str
    content: str


@dataclass(frozen=True)
class Command:
    """Something to type, and what is printed then; nothing if the page does not say."""

    typed: str
    shown: str = ""
    may_fail: bool = False


@dataclass(frozen=True)
class Interrupt:
    """Ctrl-C."""


Deed: TypeAlias = File | Command | Interrupt


def deeds(page: Path) -> list[Deed]:
    """List what a page asks its reader to do, in its order."""
    return list(_deeds(page.read_text(encoding="utf-8")))


def _deeds(text: str) -> Iterator[Deed]:
    for block in _BLOCK.finditer(text):
        language, rest, body = block["language"], block["rest"].strip(), block["body"]
        if rest == "no-test":
            continue
        if language == "console":
            yield from _typed(body)
        elif language == "sh":
            yield from (Command(line) for line in _joined(body).splitlines() if line.strip())
        elif rest:
            yield File(rest, body)


def _typed(body: str) -> Iterator[Deed]:
    entries = re.split(r"^(?=\$ |\^C$)", _joined(body), flags=re.MULTILINE)
    for entry, following in pairwise([*entries, ""]):
        first, _, shown = entry.partition("\n")
        if first.startswith("$ "):
            fails = following.startswith("$ echo $?") or re.search("^error:", shown, re.MULTILINE) is not None
            yield Command(first[2:], shown, fails)
        elif first == "^C":
            yield Interrupt()
        else:
            assert not entry.strip(), f"nothing was typed that could print this: {entry}"


def _joined(body: str) -> str:
    """Put commands together that go over several lines."""
    return re.sub(r"\\\n\s*", "", body)


# What is another each time. In a page it is what it was when the page was written.
_CHANGING = (
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?: ?(?:Z|UTC)\b|\+00:00)?"), "<time>"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d\d [A-Z][a-z]{2} \d\d:\d\d\b"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?: UTC|Z)?\b"), "<time>"),
    (re.compile(r"\b127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<fingerprint>"),
    (re.compile(r"\bT[+-](?:\d+[smhd]?)+(?: \d+[smh])?"), "<offset>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|s|seconds?|m|minutes?|h|hours?)\b"), "<while>"),
    (re.compile(r"\s+"), " "),
)


def is_shown(shown: str, printed: str) -> bool:
    """Tell whether something that was printed is what a page shows, times, ids and widths of columns left out.

    If it shows nothing, anything may be printed.
    """
    if not shown.strip():
        return True
    lines = [_settled(line) for line in printed.strip().splitlines()]
    first, *others = _passages(shown)
    if not _stands_at(0, first, lines):
        return False
    if not others:
        return len(lines) == len(first)
    *middle, last = others
    after = len(first)
    for passage in middle:
        found = next((at for at in range(after, len(lines)) if _stands_at(at, passage, lines)), None)
        if found is None:
            return False
        after = found + len(passage)
    return len(lines) - len(last) >= after and _stands_at(len(lines) - len(last), last, lines)


def _passages(shown: str) -> list[list[str]]:
    """Split what a page shows at the lines that stand for anything."""
    passages: list[list[str]] = [[]]
    for line in shown.strip().splitlines():
        if line.strip() == "…":
            passages.append([])
        else:
            passages[-1].append(_pattern(_settled(line)))
    return passages


def _stands_at(at: int, passage: list[str], lines: list[str]) -> bool:
    there = lines[at : at + len(passage)]
    return len(there) == len(passage) and all(map(re.fullmatch, passage, there))


def _settled(line: str) -> str:
    for changing, word in _CHANGING:
        line = changing.sub(word, line)
    return line.strip()


def _pattern(line: str) -> str:
    return ".*".join(re.escape(part.strip()) if part.strip() else "" for part in line.split("…"))
