"""Requests that are made up from the document: nothing breaks, and every answer is one that the document knows."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from httpx import Client

from matoolkit.store.deadletters import NewDeadLetter, keep_dead_letters
from tests.api.conftest import create
from tests.stage import Stage

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
# The same every time: a seed, and no memory of earlier runs.
COMMAND = [
    *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"),
    *("--phases", "coverage,fuzzing", "--checks", ",".join(CHECKS), "--seed", "1", "--generation-deterministic"),
    # Otherwise it takes an answer for lost after ten seconds, which a machine that does much else may need.
    *("--warnings", "off", "--no-color", "--workers", "1", "--request-timeout", "60"),
]
EXAMPLES = 2
ONE_STEP = "phases: [{name: a, offset: T-0, steps: [{name: s, worker_id: w, function: Custom-One}]}]"


@pytest.mark.waits
@pytest.mark.on("sqlite")
def test_no_request_that_follows_or_breaks_the_document_gets_an_answer_unknown_to_it(
    client: Client, stage: Stage, published: Any, tmp_path: Path
) -> None:
    for key in ("ann@x", "bob@x"):
        batch = create(client, key)["batchId"]
        client.post(f"/api/batches/{batch}/advance")
    stage.run()
    stage.hold(stage.batch(stage.publish(ONE_STEP, "held"), ["eve@x"]))
    with stage.store.transaction() as tx:
        new = NewDeadLetter("t", "s", "m-1", "kind", "{}", "{}", "unreadable", None, 10, stage.now)
        keep_dead_letters(tx, [new], stage.now)
    # Numbers of batches are tried from 1 on; a name nobody would guess.
    (tmp_path / "schemathesis.toml").write_text('[parameters]\n"path.name" = "wave"\n', encoding="utf-8")
    command = [*COMMAND, "--max-examples", str(EXAMPLES), f"{client.base_url}/openapi.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
