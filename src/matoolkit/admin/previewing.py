"""What a runbook's query returns now, and which batches that would make; nothing is changed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from matoolkit.admin.queries import latest_runbook
from matoolkit.admin.secrecy import secret_columns
from matoolkit.domain.cells import json_cell
from matoolkit.domain.rows import Reason, RowReader, SetAside
from matoolkit.domain.secrecy import row_without_secrets
from matoolkit.ports import Source
from matoolkit.runbook.model import DataSource
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store


@dataclass(frozen=True, slots=True)
class Preview:
    """Some rows of a query, and how many members each batch would have; immediate runbooks have no time yet."""

    total_rows: int
    columns: Sequence[str]
    sample_rows: Sequence[Mapping[str, Any]]
    groups: Mapping[datetime | None, int]
    set_aside: Mapping[Reason, int]
    set_aside_samples: Sequence[SetAside]


def preview_query(store: Store, open_source: Callable[[DataSource], Source], name: str, limit: int) -> Preview:
    """Run the query of a runbook's latest version; secrets in the samples are masked (rule W8)."""
    with store.reading() as tx:
        runbook = latest_runbook(tx, name)
        secret = secret_columns(tx, name)
    description = parse_runbook(runbook.yaml_content).data_source
    # Only the data of the samples is kept, so that a million rows fit into memory.
    reader = RowReader(description, lambda _: True)
    samples: list[Mapping[str, Any]] = []
    columns: Sequence[str] = ()
    for piece in open_source(description).pieces(description.query):
        columns = piece.columns
        reader.take(piece.columns, piece.rows)
        shown = piece.rows[: limit - len(samples)]
        samples += [row_without_secrets(_sample(piece.columns, row), secret) for row in shown]
    reading = reader.reading()
    groups = Counter(candidate.batch_time for candidate in reading.candidates.values())
    in_order = dict(sorted(groups.items(), key=lambda group: (group[0] is not None, group[0])))
    return Preview(reading.read, columns, samples, in_order, reading.counts, reading.samples)


def _sample(columns: Sequence[str], row: Sequence[Any]) -> Mapping[str, Any]:
    return {name: json_cell(value) for name, value in zip(columns, row, strict=True)}
