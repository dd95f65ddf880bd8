"""Every command in README, tutorial and how-to does what the page says, in a folder that looks like a fresh clone."""

import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.databases import PostgresServer
from tests.docs.pages import Command, File, deeds, is_shown
from tests.docs.terminal import ROOT, Terminal

if TYPE_CHECKING:
    from tests.servers.servicebus.server import ServiceBus

PAGES = [page for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]) if deeds(page)]
SERVICE_BUS = "Endpoint=sb://contoso.servicebus.windows.net/;SharedAccessKeyName=operator;SharedAccessKey=KEY"
POSTGRES = "postgresql+psycopg://matoolkit:secret@localhost/matoolkit"
FOLLOWED = {"README.md", "docs/tutorial", "docs/how-to", "docs/reference/runbook.md"}


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.waits
@pytest.mark.parametrize("page", [page for page in PAGES if name(page).startswith(tuple(FOLLOWED))], ids=name)
def test_a_page_can_be_followed_from_top_to_bottom(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    to_do = deeds(page)
    meant = {}
    typed = "\n".join(deed.typed for deed in to_do if isinstance(deed, Command))
    if POSTGRES in typed:
        server: PostgresServer = request.getfixturevalue("postgres")
        meant[POSTGRES] = server.url_of(server.make())
    if SERVICE_BUS in typed:
        namespace: ServiceBus = request.getfixturevalue("service_bus")
        meant[SERVICE_BUS] = namespace.connection_string
    with closing(Terminal(tmp_path, meant)) as terminal:
        for deed in to_do:
            terminal.follow(deed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("batch 1 is active", "batch 1 is active"),
        ("at 2026-11-15 12:00:31 UTC", "at 2027-01-02 03:04:05 UTC"),
        ("one\n…\nfour", "one\ntwo\nthree\nfour"),
        ("one\n…", "one"),
        ("id   name\n1 Ada", "id name\n1    Ada"),
        ("key … is new", "key 77 is new"),
        ("", "anything"),
    ],
)
def test_what_a_page_shows_is_recognised(shown: str, printed: str) -> None:
    assert is_shown(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("batch 1 is active", "batch 2 is active"),
        ("batch 1 is active", ""),
        ("one\nfour", "one\ntwo\nfour"),
        ("one\n…\nfour", "one\ntwo"),
        ("failed 0", "failed 1"),
    ],
)
def test_anything_else_is_not(shown: str, printed: str) -> None:
    assert not is_shown(shown, printed)


def test_a_page_that_does_not_say_what_happens_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ echo one\ntwo\n```\n```console\n$ false\n```\n", encoding="utf-8")
    (tmp_path / "clone").mkdir()
    terminal = Terminal(tmp_path / "clone")
    for deed in deeds(page):
        with pytest.raises(AssertionError):
            terminal.follow(deed)


def test_a_workflow_runs_nothing_but_what_its_page_has_typed() -> None:
    page = ROOT / "docs" / "how-to" / "publish-from-a-pipeline.md"
    (workflow,) = (deed for deed in deeds(page) if isinstance(deed, File))
    steps = yaml.safe_load(workflow.content)["jobs"]["runbooks"]["steps"]
    run = [step["run"] for step in steps if "run" in step and not step["run"].startswith("pip install")]
    assert len(run) == 3
    assert set(run) <= {deed.typed for deed in deeds(page) if isinstance(deed, Command)}


SHELLS = {"bash", "shell", "zsh", "shell-session", "pwsh-session"}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_command_hides_from_the_test(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```(\w+)([^\n]*)\n(.*?)^ *```$", text, re.DOTALL | re.MULTILINE)
    assert [language for language, *_ in blocks if language in SHELLS] == []
    untested = [body for _, rest, body in blocks if rest.strip() == "no-test"]
    assert [body for body in untested if not re.search(r"az |AZURE|git ", body)] == []
