"""The two lock files agree."""

import re
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[2] / "requirements"


def pins(name: str) -> dict[str, str]:
    text = (REQUIREMENTS / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))


def test_what_make_up_installs_is_what_is_tested() -> None:
    running, developing = pins("run.txt"), pins("dev.txt")
    assert "sqlalchemy" in running
    assert running.items() <= developing.items()
