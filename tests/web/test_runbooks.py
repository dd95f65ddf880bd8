"""The list of runbooks and the page of one: the document with its findings in place, and how it is doing."""

from collections.abc import Callable

import orjson
import pytest

from matoolkit.admin.publishing import publish, set_automation
from matoolkit.clock import VirtualClock
from matoolkit.domain.states import OverdueBehavior
from matoolkit.store import Store
from matoolkit.store.automation import TickRow, record_tick
from matoolkit.store.runbooks import NewVersion, active_runbooks, publish_version, record_error
from matoolkit.web.serving import Site
from tests.documents import document
from tests.stage import Stage
from tests.web.conftest import Visitor

pytestmark = pytest.mark.on("sqlite")

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202eevil"
PHASES = """\
phases:
  - name: first
    offset: T-0
    steps:
      - {name: one, worker_id: worker-01, function: Custom-One}
"""


@pytest.fixture
def wave(store: Store, clock: VirtualClock) -> None:
    """A runbook that is at work."""
    publish(store, document(), by="anna", now=clock.now())
    set_automation(store, "wave", enabled=True, by="ben", now=clock.now())


def tick(store: Store, clock: VirtualClock, *, key: str = "joan", remarks: str = "[]") -> None:
    """Let the last tick have read some rows."""
    aside = {
        "counts": {"bad_batch_time": 3},
        "samples": [{"reason": "bad_batch_time", "key": key, "detail": "'cutover': 28/11 evening is no time"}],
    }
    now = clock.now()
    row = TickRow(
        "wave",
        1,
        now,
        now,
        queried=True,
        rows_read=29475,
        rows_set_aside=3,
        members_added=2,
        members_moved=1,
        set_aside_json=orjson.dumps(aside).decode(),
        remarks_json=remarks,
    )
    with store.transaction() as tx:
        record_tick(tx, row)


def stored(store: Store, clock: VirtualClock, text: str, name: str = "old") -> None:
    """Keep a document that today's linter may refuse."""
    new = NewVersion(name, text, f"hash-{hash(text)}", OverdueBehavior.RERUN, rerun_init=False, published_by="anna")
    with store.transaction() as tx:
        publish_version(tx, new, clock.now())


@pytest.mark.usefixtures("wave")
def test_the_list_says_how_each_runbook_is_doing(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    tick(store, clock)
    with store.transaction() as tx:
        (row,) = active_runbooks(tx)
        record_error(tx, row.id, "the source is away", clock.now())
    page = visitor.get("/runbooks").text
    assert 'href="/runbooks/wave"' in page
    for told in ("v1", "29,475", "the source is away"):
        assert told in page
    lines = visitor.get("/runbooks.csv").text.splitlines()
    assert lines[0].startswith("runbook,version,automation,last tick,rows read,set aside")
    assert lines[1].startswith("wave,1,on,")
    assert ",29475,3,the source is away," in lines[1]


def test_without_runbooks_the_list_says_so(visitor: Visitor) -> None:
    assert "No runbook was published yet" in visitor.get("/runbooks").text


@pytest.mark.usefixtures("wave")
def test_a_runbook_says_what_its_last_tick_did(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    remark = {"seen": "have a time whose batch has ended: it takes nobody", "batch_id": 7, "count": 6, "samples": ["a"]}
    tick(store, clock, remarks=orjson.dumps([remark]).decode())
    page = visitor.get("/runbooks/wave").text
    for told in (
        "29,475 read, 3 set aside, 0 for batches that have ended",
        "2 added, 1 moved",
        "28/11 evening is no time",
        "it takes nobody",
        "by <bdi>ben</bdi>",
    ):
        assert told.replace("'", "&#39;") in page
    assert visitor.get("/runbooks/wave/set-aside.csv").text.splitlines()[1].startswith("bad_batch_time,joan,")


def test_findings_stand_below_their_lines(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    text = document().replace("function: Set-EntraUserEnabled", "functoin: Set-EntraUserEnabled", 1)
    stored(store, clock, text.replace("{{email}}", "{{emial}}"))
    number = text.splitlines().index("        functoin: Set-EntraUserEnabled") + 1
    page = visitor.get("/runbooks/old").text
    assert f'<li value="{number}" id="L{number}" class="hit">        <u class="error">functoin</u>: Set' in page
    below = page[page.index(f'id="L{number}"') :].split("</li>")[1]
    assert "unknown key" in below
    assert "RB101" in below
    assert '<u class="warning">' in page


def test_a_password_in_an_old_document_is_masked(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    """Rule W8."""
    stored(store, clock, document().replace("connection: PEOPLE_URL", "connection: postgresql://u:hunter2@db/people"))
    page = visitor.get("/runbooks/old").text
    assert "hunter2" not in page
    assert "•••" in page


@pytest.mark.usefixtures("wave")
def test_texts_of_a_document_are_never_markup(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    stored(store, clock, f"# {HOSTILE}\n{document(remark='<b>people</b>', name='odd')}", "odd")
    tick(store, clock, key=HOSTILE * 500)
    for path in ("/runbooks/odd", "/runbooks/wave", "/runbooks"):
        page = visitor.get(path).text
        assert "<script>alert" not in page
        assert "<b>people" not in page
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert len(page) < 60_000


def test_a_long_document_is_shown_in_parts(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    stored(store, clock, document() + "".join(f"# line {number} {'x' * 100}\n" for number in range(2000)))
    first = visitor.get("/runbooks/old").text
    assert len(first) < 60_000
    (following,) = {part.split('"')[0] for part in first.split("?line=")[1:]}
    second = visitor.get(f"/runbooks/old?line={following}").text
    assert f'value="{following}"' in second
    assert f'value="{int(following) - 1}"' not in second


@pytest.mark.usefixtures("wave")
def test_versions_can_be_looked_at_and_fetched(visitor: Visitor, store: Store, clock: VirtualClock) -> None:
    publish(store, document(remark="others"), by="carla", now=clock.now())
    assert "description: others" in visitor.get("/runbooks/wave").text
    older = visitor.get("/runbooks/wave/versions/1").text
    assert "description: people" in older
    assert "not active" in older
    assert visitor.get("/runbooks/wave/document.yaml?version=1").text == document()
    lines = visitor.get("/runbooks/wave/versions.csv").text.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["2", "yes"], ["1", "no"]]
    assert visitor.get("/runbooks/wave/template.csv").text.startswith("email,cutover")


@pytest.mark.usefixtures("wave")
def test_what_does_not_exist_is_refused_with_its_code(visitor: Visitor) -> None:
    for path, code in (("/runbooks/wove", "PB404"), ("/runbooks/wave/versions/9", "PB405")):
        answer = visitor.get(path)
        assert (answer.status_code, code in answer.text) == (404, True)


def test_statements_do_not_grow(
    visitor: Visitor, site: Site, stage: Stage, statements: Callable[[], list[str]]
) -> None:
    def asked(path: str) -> int:
        site.looks.forget()
        statements()
        assert visitor.get(path).status_code == 200
        return len(statements())

    paths = ("/runbooks", "/runbooks/wave")
    stage.batch(stage.publish(PHASES), 1)
    before = [(visitor.get(path), asked(path))[1] for path in paths]
    for number in range(20):
        stage.batch(stage.publish(PHASES, f"wave-{number}"), 20)
        stage.batch_at(stage.publish(PHASES), 20, days=6 + number)
    assert [asked(path) for path in paths] == before
