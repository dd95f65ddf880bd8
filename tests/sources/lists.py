"""A folder of lists, and a clock that has left them alone for a day."""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from matoolkit.clock import SystemClock, VirtualClock
from matoolkit.sources.files.source import FileSource

ALL = "SELECT * FROM rows"


def a_day_later() -> VirtualClock:
    """The files of a test are as old as the test, by the machine's own clock."""
    return VirtualClock(SystemClock().now() + timedelta(days=1))


@dataclass
class Lists:
    """A folder of lists."""

    folder: Path
    clock: VirtualClock

    def source(self, name: str = "people.xlsx", sheet: str | None = None, *, size: int = 500) -> FileSource:
        return FileSource(self.folder, name, sheet, self.clock, rows_in_a_piece=size)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def workbook(
        self, *rows: Sequence[Any], name: str = "people.xlsx", change: Callable[[Workbook], Any] | None = None
    ) -> Path:
        book = Workbook()
        sheet = book.worksheets[0]
        for row in rows:
            sheet.append(list(row))
        if change:
            change(book)
        path = self.folder / name
        book.save(path)
        return path

    def change_part(self, part: str, change: Callable[[bytes], bytes]) -> None:
        """Change what a workbook has inside."""
        path = self.folder / "people.xlsx"
        parts = dict(_parts_of(path))
        parts[part] = change(parts.get(part, b""))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
            for file, content in parts.items():
                made.writestr(file, content)
        path.write_bytes(packed.getvalue())

    def share_texts(self) -> None:
        """Keep the texts of the sheet apart from it, as Excel does and the library that wrote it does not."""
        texts: list[bytes] = []

        def shared(cell: re.Match[bytes]) -> bytes:
            texts.append(cell[1])
            return b't="s"><v>%d</v></c>' % (len(texts) - 1)

        kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
        name = b'<Override PartName="/xl/sharedStrings.xml" ContentType="' + kind + b'"/></Types>'
        inline = rb't="inlineStr"><is>(.*?)</is></c>'
        space = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        self.change_part("xl/worksheets/sheet1.xml", lambda text: re.sub(inline, shared, text))
        self.change_part("[Content_Types].xml", lambda text: text.replace(b"</Types>", name))
        items = b"".join(b"<si>" + text + b"</si>" for text in texts)
        self.change_part("xl/sharedStrings.xml", lambda _: b"<sst " + space + b">" + items + b"</sst>")

    def read(self, name: str = "people.xlsx", query: str = ALL, sheet: str | None = None) -> list[tuple[Any, ...]]:
        return [tuple(row) for piece in self.source(name, sheet).pieces(query) for row in piece.rows]


def _parts_of(path: Path) -> Iterable[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as made:
        return [(name, made.read(name)) for name in made.namelist()]
