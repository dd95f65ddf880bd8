"""Lists as files for a spreadsheet."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from starlette.responses import Response, StreamingResponse

from matoolkit.admin.csvfiles import csv_lines


def csv_file(name: str, heading: Sequence[str], rows: Iterable[Sequence[object]]) -> Response:
    """Return rows as a CSV file; they are written as they are sent."""
    lines = csv_lines(heading, ([_cell(value) for value in row] for row in rows))
    disposition = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=disposition)


def _cell(value: object) -> object:
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
        case _:
            return value
