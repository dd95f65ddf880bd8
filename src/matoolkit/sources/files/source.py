"""A list below the folder of lists, read afresh for each query, which sees it as the table `rows` (rule U4)."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from matoolkit.clock import Clock
from matoolkit.ports import Piece
from matoolkit.sources.files.csvlists import read_csv_list
from matoolkit.sources.files.quiet import find_list, opened_while_quiet
from matoolkit.sources.files.table import RowsTable
from matoolkit.sources.files.workbooks import read_workbook

ROWS_IN_A_PIECE = 500


class FileSource:
    """A CSV file or a workbook. Nothing of it is handed out before all of it has been read, and nobody changed it."""

    def __init__(
        self,
        folder: Path,
        name: str,
        sheet: str | None,
        clock: Clock,
        *,
        rows_in_a_piece: int = ROWS_IN_A_PIECE,
        read_cell: Callable[[Any], Any] | None = None,
    ) -> None:
        self._folder = folder
        self._name = name
        self._sheet = sheet
        self._clock = clock
        self._rows = rows_in_a_piece
        self._read_cell = read_cell

    def pieces(self, query: str) -> Iterator[Piece]:
        """Run a query and return its result in pieces, at least one."""
        with closing(RowsTable()) as table:
            self._read_into(table)
            yield from table.pieces(query, self._rows, self._clock)

    def _read_into(self, table: RowsTable) -> None:
        path = find_list(self._folder, self._name)
        with opened_while_quiet(path, self._name, self._clock) as file:
            if self._name.casefold().endswith(".csv"):
                header, rows = read_csv_list(file, self._name)
            else:
                header, rows = read_workbook(file, self._name, self._sheet)
            read = self._read_cell
            table.fill(header.columns, rows if read is None else ([read(cell) for cell in row] for row in rows))
