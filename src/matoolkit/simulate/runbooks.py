"""Runbooks that a seed writes: every way of timing, retrying, polling, undoing and handing outputs on."""

import json
from random import Random
from typing import Any

from matoolkit.simulate.declared import Declared

NAME = "wave"
WORKERS = ("worker-01", "worker-02")
_OFFSETS = ("T-2d", "T-1d", "T-4h", "T-1h", "T-30m", "T-0", "T-0", "T+1h", "T+1d")
_UNDO = ("undo-early", "undo-late")
COLUMNS = ("id", "start", "city")
# A column more that only plays with gates use.
PILOT = "pilot"


class RunbookWriter:
    """Writes one version after the other of the same runbook; with a zone they declare gates."""

    def __init__(self, rng: Random, *, is_immediate: bool, zone: str | None = None) -> None:
        self._rng = rng
        self._declared = None if zone is None else Declared(rng, zone)
        self.is_immediate = is_immediate
        self._outputs: list[str] = []

    def write(self) -> str:
        """Write a version; JSON is YAML, and quicker to read."""
        rng = self._rng
        self._outputs = []
        document: dict[str, Any] = {"name": NAME, "data_source": self._source()}
        if rng.random() < 0.5:
            document["retry"] = self._retry()
        if rng.random() < 0.25:
            document["safeguards"] = {"max_removals": rng.choice([1, 2, "30%"])}
        init = [self._init(number) for number in range(rng.choice([0, 0, 0, 1, 2, 2]))]
        if init:
            document["init"] = init
        document["phases"] = self._phases()
        document["on_member_removed"] = [self._plain(f"leave-{number}") for number in range(rng.choice([0, 1, 2]))]
        document["rollbacks"] = {
            name: [self._plain(f"{name}-{number}") for number in range(rng.choice([1, 2, 3]))] for name in _UNDO
        }
        if self._declared is not None:
            self._declared.into(document)
        return json.dumps(document, indent=1)

    def _source(self) -> dict[str, Any]:
        columns = COLUMNS if self._declared is None else (*COLUMNS, PILOT)
        query = f"SELECT {', '.join(columns)} FROM people"
        source = {"type": "sql", "connection": "SOURCE", "query": query}
        timing = {"batch_time": "immediate"} if self.is_immediate else {"batch_time_column": "start"}
        return source | {"primary_key": "id"} | timing

    def _phases(self) -> list[dict[str, Any]]:
        rng = self._rng
        count = rng.choice([1, 2, 2, 3, 4])
        if self.is_immediate:
            offsets = ["T-0", "T-0", "T+1h", "T+1d"][:count]
        else:
            offsets = [_OFFSETS[place] for place in sorted(rng.sample(range(len(_OFFSETS)), count))]
        return [
            {
                "name": f"phase-{number}",
                "offset": offset,
                "steps": [self._step(f"step-{number}{letter}") for letter in "abc"[: rng.choice([1, 2, 2, 3])]],
            }
            for number, offset in enumerate(offsets)
        ]

    def _init(self, number: int) -> dict[str, Any]:
        """Write a step of an init: few are retried, so that rollbacks happen."""
        step = self._plain(f"init-{number}", polls=0.4)
        step["retry"] = {"max_retries": self._rng.choice([0, 0, 1]), "interval": "5m"}
        if self._rng.random() < 0.8:
            step["on_failure"] = self._rng.choice(_UNDO)
        return step

    def _step(self, name: str) -> dict[str, Any]:
        """Write a step of a phase: it may need the output of an earlier step, and may have an output itself."""
        rng, step = self._rng, self._plain(name, may_undo=True)
        step["params"] |= {"Member": "{{_member_key}}", "City": "{{city}}"}
        if "poll" in step:
            # Where there is a poll, a column is secret: it is resolved whenever a job is sent (rule W8).
            step["params"] |= {"Password": "{{city}}"}
        if self._outputs and rng.random() < 0.6:
            seen = rng.choice(self._outputs)
            step["params"] |= {"Output": seen, "Seen": "{{" + seen + "}}"}
        if rng.random() < 0.6:
            output = f"Out{name.removeprefix('step-')}"
            step["output_params"] = {output: "Value"}
            self._outputs.append(output)
        return step

    def _plain(self, name: str, *, may_undo: bool = False, polls: float = 0.25) -> dict[str, Any]:
        rng = self._rng
        step: dict[str, Any] = {"name": name, "worker_id": rng.choice(WORKERS), "function": "Do-It", "params": {}}
        step["params"] = {"Step": name}
        step["timeout"] = rng.choice(["20m", "2h", "6h"])
        if rng.random() < polls:
            step["function"] = "Test-It"
            step["poll"] = {"interval": rng.choice(["1m", "10m"]), "timeout": rng.choice(["5m", "15m", "2h"])}
        if rng.random() < 0.35:
            step["retry"] = self._retry()
        if may_undo and rng.random() < 0.5:
            step["on_failure"] = rng.choice(_UNDO)
        return step

    def _retry(self) -> dict[str, Any]:
        return {"max_retries": self._rng.choice([0, 1, 2, 3]), "interval": self._rng.choice(["30s", "5m", "1h"])}
