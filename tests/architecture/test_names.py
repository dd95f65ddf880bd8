"""One word, one meaning (docs/glossary.md): where a word has a meaning of its own, no name uses it for another one."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import matoolkit

PACKAGE = Path(matoolkit.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

# The beginnings of words, and the rooms or modules in which they mean what the glossary says.
WORDS = {
    "pile": ("bus", "worker", "simulate"),
    "settl": ("bus", "ports.py", "simulate", "store/queue.py", "worker"),
    "agenda": ("orchestrator",),
    "snapshot": ("domain", "scheduler"),
    "expand": ("domain", "hosting/story", "orchestrator", "store"),
    "enrol": ("scheduler", "store", "admin", "api", "cli"),
}
# Words that were given up, because nobody could tell from them what was meant.
GIVEN_UP = ("debt", "desk", "picture")


def test_a_folder_has_a_class_of_a_name_once() -> None:
    names = Counter((module.parent, name) for module in MODULES for name in _classes(module) if name[0] != "_")
    assert [(folder.name, name) for (folder, name), count in names.items() if count > 1] == []


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_glossary_is_in_names_only_where_it_has_its_meaning(word: str) -> None:
    assert [(place, name) for place, name in _names_with(word) if not place.startswith(WORDS[word])] == []


@pytest.mark.parametrize("word", GIVEN_UP)
def test_a_word_that_was_given_up_is_in_no_name(word: str) -> None:
    assert list(_names_with(word)) == []


def _names_with(beginning: str) -> Iterator[tuple[str, str]]:
    for module in MODULES:
        place = module.relative_to(PACKAGE).as_posix()
        for name in (module.stem, *_classes(module), *_functions(module)):
            words = (word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name))
            if any(word.startswith(beginning) for word in words):
                yield place, name


@cache
def _classes(module: Path) -> list[str]:
    return [node.name for node in ast.walk(_tree(module)) if isinstance(node, ast.ClassDef)]


@cache
def _functions(module: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.FunctionDef):
            found += [node.name, *(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))]
    return found


def _tree(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))
