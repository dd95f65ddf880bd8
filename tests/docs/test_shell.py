"""Commands in pages that no test can run, such as Azure's, are at least commands of a shell."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^( *)```sh[^\n]*\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if _BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_shell_can_read_every_block(page: Path) -> None:
    for indent, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
        script = re.sub(f"^{indent}", "", block, flags=re.MULTILINE)
        read = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True)
        assert (read.returncode, read.stderr) == (0, ""), script
