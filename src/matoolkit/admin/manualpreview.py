"""What a file would make of a manual batch: how many join, who is left out and why; nothing is changed (rule O13)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from matoolkit.admin.manual import version_in_use
from matoolkit.admin.uploads import UploadedRow, keyed_pieces
from matoolkit.domain.phaseorder import phase_order
from matoolkit.runbook.model import Runbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.store import Store
from matoolkit.store.enrolments import taken_keys
from matoolkit.store.exclusions import excluded_keys
from matoolkit.store.runbooks import RunbookRow

_MOST_NAMED = 100


class Obstacle(StrEnum):
    """Why somebody does not join."""

    EXCLUDED = "excluded by a person"
    TAKEN = "in an unfinished batch of this runbook, or something still runs for them there"


@dataclass(slots=True)
class Group:
    """How many people share something, and the first of them."""

    count: int = 0
    keys: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        """Count somebody."""
        self.count += 1
        if len(self.keys) < _MOST_NAMED:
            self.keys.append(key)


@dataclass(frozen=True, slots=True)
class ManualPreview:
    """The batch that rows would make."""

    row: RunbookRow
    runbook: Runbook
    joining: Group
    left_out: dict[Obstacle, Group]

    @property
    def phases(self) -> Sequence[str]:
        """Its phases in the order in which a person begins them."""
        phases = self.runbook.phases
        order = sorted(range(len(phases)), key=lambda index: phase_order(0, phases[index].offset.minutes, index))
        return [phases[index].name for index in order]


def preview_manual_batch(store: Store, runbook_name: str, rows: Iterable[UploadedRow]) -> ManualPreview:
    """Look at rows as making a batch of them would; refuse them if one cannot be used."""
    with store.reading() as tx:
        row = version_in_use(tx, runbook_name)
        runbook = parse_runbook(row.yaml_content)
        seen = ManualPreview(row, runbook, Group(), {why: Group() for why in Obstacle})
        excluded = excluded_keys(tx, row.name)
        for piece in keyed_pieces(rows, runbook.data_source.primary_key):
            taken = taken_keys(tx, row.name, piece)
            for fold, (key, _) in piece.items():
                if fold in excluded:
                    seen.left_out[Obstacle.EXCLUDED].add(key)
                elif fold in taken:
                    seen.left_out[Obstacle.TAKEN].add(key)
                else:
                    seen.joining.add(key)
        return seen
