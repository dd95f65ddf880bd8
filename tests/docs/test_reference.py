"""The reference cannot go stale: what is generated is up to date, and nothing is left out."""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import orjson
import pytest

from matoolkit.api.app import openapi_document
from matoolkit.cli.program import program, run
from matoolkit.errors import error_kinds, tree

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load_generator() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    return importlib.import_module("generate")


GENERATOR = load_generator()


@pytest.mark.parametrize(
    ("page", "written"), list(GENERATOR.pages().items()), ids=lambda value: getattr(value, "name", "")
)
def test_generated_pages_are_what_the_code_says(page: Path, written: Callable[[], str]) -> None:
    assert page.read_text(encoding="utf-8") == written(), "run `make docs`"


def test_no_two_errors_share_a_code() -> None:
    codes = [error.code for error in error_kinds()]
    assert len(codes) == len(set(codes))


def test_the_tree_that_is_drawn_is_the_tree_of_errors() -> None:
    drawn = re.findall(r"^\s*[│├└─ ]*(\w+) +([A-Z]{2}\d{3}) ", tree.__doc__ or "", re.MULTILINE)
    assert sorted(drawn) == sorted((error.__name__, error.code) for error in error_kinds())


def commands() -> Iterator[str]:
    for name, command in program().commands.items():
        for inner, one in getattr(command.real, "commands", {"": command.real}).items():
            yield f"matoolkit {name} {'' if one.hidden else inner}"


@pytest.mark.parametrize("command", list(commands()))
def test_every_command_is_in_the_reference(command: str) -> None:
    assert f"`{command.strip()}" in (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")


FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", prose):
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


def test_the_index_names_every_page() -> None:
    linked = re.findall(r"\]\(([^)\s]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8"))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert {page for page in pages if not page.startswith("adr/")} == set(linked)


def test_the_glossary_has_every_word_once_and_in_order() -> None:
    words = re.findall(
        r"^\| (?:<a .*?</a>)?\*\*(.+?)\*\*", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert words == sorted(set(words), key=str.casefold)


def anchors(page: Path) -> set[str]:
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)">', text))


def test_the_readme_shows_what_the_linter_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (runbook,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("people.yaml").write_text(runbook.replace("{{NewUpn}}", "{{NewUpm}}"), encoding="utf-8")
    run(["runbook", "lint", "people.yaml"])
    assert capsys.readouterr().out.strip() == shown.strip()


def routes() -> Iterator[str]:
    for path, methods in openapi_document()["paths"].items():
        yield from (f"{method.upper()} {path}" for method in methods)


def test_every_route_is_in_the_reference() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert [route for route in routes() if f"`{route}`" not in page] == []


def test_the_document_of_the_api_is_openapi_3_1_and_knows_no_other_refusal_than_problems() -> None:
    document = openapi_document()
    assert document["openapi"].startswith("3.1")
    assert "HTTPValidationError" not in document["components"]["schemas"]
    named = set(re.findall(r'"#/components/schemas/(\w+)"', orjson.dumps(document).decode()))
    assert named <= set(document["components"]["schemas"])
