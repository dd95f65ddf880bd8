"""docs/reference/protocol.md is enough to write a part that works with ours."""

import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from matoolkit import ids
from matoolkit.bus.topology import DUPLICATE_WINDOW, LOCK_DURATION, TIME_TO_LIVE
from matoolkit.bus.wire import decode, encode
from matoolkit.bus.wire.writing import FORMS
from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.domain.delivery import MAX_BODY_BYTES, MAX_DELIVERIES
from matoolkit.domain.messages import WorkerResult
from matoolkit.runbook.values import MAX_WORKER_ID
from matoolkit.store import open_store, schema
from matoolkit.store.upgrade import upgrade
from tests.stage import Stage

MINUTE = timedelta(minutes=1)
PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")


def part(heading: str) -> str:
    """Return what stands under a heading, up to the next one of its level or above."""
    _, _, rest = PAGE.partition(f"\n{heading}\n")
    assert rest, heading
    level = heading.index(" ")
    return re.split(rf"^#{{2,{level}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


def documents() -> list[tuple[str, str]]:
    sections = re.split(r"^### ", part("## Messages"), flags=re.MULTILINE)[1:]
    return [
        (section.splitlines()[0], body)
        for section in sections
        for body in re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    ]


@pytest.mark.parametrize(("message_type", "body"), documents())
def test_m9_every_document_is_read_by_our_code_and_written_as_it_stands_there(message_type: str, body: str) -> None:
    topic = next(topic for topic, known in topics().items() if message_type in known)
    message = decode(topic, message_type, body)
    form, written = encode(message)
    assert (form.topic, form.message_type) == (topic, message_type)
    assert json.dumps(json.loads(written)) == json.dumps(json.loads(body))


def topics() -> dict[str, set[str]]:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+?) \|", part("## Topology"), re.MULTILINE)
    return {topic: set(re.findall(r"\[([a-z-]+)\]", messages)) for topic, messages in rows}


def test_m8_m9_every_message_has_a_document_and_a_topic() -> None:
    assert {name for name, _ in documents()} == {form.message_type for form in FORMS.values()}
    assert set().union(*topics().values()) == {form.message_type for form in FORMS.values()}


def test_o6_o7_the_results_show_a_success_a_poll_and_a_throttled_failure() -> None:
    results = [decode("worker-results", name, body) for name, body in documents() if name == "worker-result"]
    shown = [result for result in results if isinstance(result, WorkerResult)]
    assert {"complete": False} in [result.result for result in shown]
    assert any(result.error is not None and result.error.is_throttled for result in shown)


def test_m8_the_limits_are_those_of_the_code() -> None:
    limits = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", part("## Topology"), re.MULTILINE))
    assert limits["lock of a received message"].startswith(f"{LOCK_DURATION // MINUTE} minute,")
    assert limits["duplicate window"].startswith(f"{DUPLICATE_WINDOW // MINUTE} minutes,")
    assert limits["time to live"].startswith(f"{TIME_TO_LIVE.days} days ")
    assert limits["deliveries before a message is a dead letter"] == str(MAX_DELIVERIES)
    assert f"{MAX_BODY_BYTES:,} bytes" in limits["size of a body"]
    assert limits["length of a worker id"].startswith(f"{MAX_WORKER_ID} characters")


def test_m2_the_ids_are_those_of_the_code() -> None:
    made: list[Any] = [
        ids.job_id,
        ids.batch_init_id,
        ids.phase_due_id,
        ids.member_added_id,
        ids.member_removed_id,
        ids.poll_check_id,
        ids.retry_check_id,
    ]
    words = [
        ("{kind}", "{execution}", "{reason}", "{attempt}"),
        ("{batch}", "{version}", "{n}"),
        ("{phase execution}", "{n}"),
        ("{member}", "{epoch}"),
        ("{member}", "{epoch}"),
        ("{kind}", "{execution}", "{attempt}"),
        ("{kind}", "{execution}", "{attempt}"),
    ]
    section = part("## Ids")
    for make, given in zip(made, words, strict=True):
        assert f"`{make(*given)}`" in section


def test_every_rule_of_the_orchestrator_is_told_and_every_table_has_a_writer() -> None:
    headings = re.findall(r"^### (O\d+)(?: to (O\d+))?", part("## An orchestrator"), re.MULTILINE)
    told = {
        number
        for first, last in headings
        for number in range(int(first[1:]), int((last or first)[1:]) + 1)
    }  # fmt: skip
    assert told == set(range(1, 17))
    assert set(schema.metadata.tables) <= set(re.findall(r"`(\w+)`", part("## Who writes what")))


def test_the_smallest_worker_works_with_our_orchestrator(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", part("### The smallest worker"), re.DOTALL)
    (tmp_path / "worker.py").write_text(code, encoding="utf-8")
    store = open_store(f"sqlite:///{tmp_path / 'state.db'}")
    upgrade(store)
    stage = Stage(store, VirtualClock(SystemClock().now()))
    runbook = stage.publish(
        """
phases:
  - name: greet
    offset: T-0
    steps:
      - {name: hello, worker_id: worker-01, function: Greet-Person, params: {Name: "{{Name}}"},
         output_params: {Said: greeting}}
      - {name: again, worker_id: worker-01, function: Greet-Person, params: {Name: "{{Said}}"}}
      - {name: wrong, worker_id: worker-01, function: Greet-Nobody}
"""
    )
    batch = stage.batch(runbook, 2)
    stage.due(batch, "greet")
    for _ in range(3):
        stage.handle()
        subprocess.run([sys.executable, "worker.py", "state.db", "worker-01"], cwd=tmp_path, check=True, timeout=60)
    stage.handle()
    assert stage.states(batch, "u1") == {"hello": "succeeded", "again": "succeeded", "wrong": "failed"}
    assert stage.outputs(batch, "u1") == {"Said": "Hello U1"}
    assert stage.take_jobs() == []
    store.close()
