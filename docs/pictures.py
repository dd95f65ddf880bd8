"""Pictures of a terminal, drawn by the code that draws there."""

import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from matoolkit.cli.batch_view import batch_view
from matoolkit.cli.story_output import Teller
from matoolkit.hosting.story import Line, Mark

_NOW = datetime(2026, 3, 4, 12, 3, tzinfo=UTC)
_NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
_STARTS = {1: _NOON + timedelta(seconds=10), 2: _NOON + timedelta(seconds=130)}
# Seconds after noon, batch, what happened: the demo, with some of its lines left out.
_STORY: tuple[tuple[int, int | None, Mark, str], ...] = (
    (2, 1, Mark.FOUND, "3 members of demo, T is 12:00:10: ada@contoso.com, grace@contoso.com, alan@contoso.com"),
    (2, 1, Mark.DUE, "phase prepare, planned for T-2m"),
    (2, None, Mark.SET_ASIDE, "joan@contoso.com: 'cutover_at': the order of day and month is ambiguous"),
    (3, 1, Mark.DONE, "ada@contoso.com create-account, join-group"),
    (3, 1, Mark.AGAIN, "alan@contoso.com join-group in 5s: there is no group 4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a99"),
    (4, 1, Mark.WAITS, "ada@contoso.com check-addresses, every 5s"),
    (8, 1, Mark.FAILED, "alan@contoso.com join-group: there is no group 4f0c1f5e-6f0e-4a57-9d6b-2f4f6f1f6a99"),
    (8, 1, Mark.UNDONE, "alan@contoso.com remove-account (undo-account)"),
    (10, 1, Mark.DUE, "phase cutover, planned for T-0"),
    (11, 1, Mark.DONE, "ada@contoso.com enable-account"),
    (11, 1, Mark.MIGRATED, "ada@contoso.com"),
    (11, 1, Mark.MIGRATED, "grace@contoso.com"),
    (11, 1, Mark.ENDED, "the batch is completed: 2 migrated, 1 failed"),
    (46, 2, Mark.JOINED, "emmy@contoso.com late, and catches up"),
    (61, 2, Mark.LEFT, "hedy@contoso.com: the source no longer returns it"),
    (62, 2, Mark.UNDONE, "hedy@contoso.com remove-account (on_member_removed)"),
)


def live_view() -> str:
    """Return a batch as `batch get --watch` draws it, as text."""
    return f"```text\n{_example_batch().plain}\n```\n"


def batch_picture() -> str:
    """Return the same as a picture."""
    console = _terminal(80)
    console.print(_example_batch())
    return _drawn(console, "matoolkit batch get 42 --watch", "batch-watch")


def story_picture() -> str:
    """Return the story that `make up` tells as a picture."""
    console = _terminal(100)
    lines = [
        Line(_NOON + timedelta(seconds=seconds), mark, text, number, _STARTS.get(number or 0))
        for seconds, number, mark, text in _STORY
    ]
    Teller(console).tell(lines)
    return _drawn(console, "make up", "up")


def _terminal(width: int) -> Console:
    return Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")


def _drawn(console: Console, title: str, name: str) -> str:
    """Draw what was printed, without the fonts that would be fetched from elsewhere."""
    plain = re.sub(r"@font-face \{\{.*?\}\}\n|<!--.*?-->\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    svg = console.export_svg(title=title, code_format=plain, unique_id=name)
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


def _example_batch() -> Text:
    """Draw a batch as `batch get --watch` does, in a terminal of 80 columns."""

    def phase(name: str, minutes: int, status: str, **steps: int) -> dict[str, Any]:
        due = _NOW + timedelta(days=1, minutes=-3 - minutes)
        return {"phaseName": name, "offsetMinutes": minutes, "dueAt": due.isoformat(), "status": status, "steps": steps}

    phases = [
        phase("announce", 5 * 1440, "completed", succeeded=9874),
        phase("pre-stage", 1440, "dispatched", succeeded=7125, dispatched=2686, failed=63),
        phase("cutover", 0, "pending"),
        phase("clean-up", -120, "pending"),
    ]
    batch = {
        "id": 42,
        "runbookName": "user-migration",
        "status": "active",
        "members": {"active": 9811, "failed": 63},
        "batchStartTime": (_NOW + timedelta(hours=23, minutes=57)).isoformat(),
        "initSteps": [{"status": "succeeded"}],
        "phases": [{**one, "runbookVersion": 3} for one in phases],
    }
    groups = {"the mailbox is over its quota": (58, 8117), "the service asked to be called less often": (5, 8342)}
    failures = [
        {"phaseName": "pre-stage", "stepName": "copy", "error": error, "members": count, "exampleStepId": step}
        for error, (count, step) in groups.items()
    ]
    return batch_view(batch, failures, _NOW, 80)
