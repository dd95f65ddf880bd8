"""The lock files agree."""

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


def test_what_the_image_has_is_what_is_tested() -> None:
    in_image, developing = pins("image.txt"), pins("dev.txt")
    assert {"azure-servicebus", "mssql-python", "psycopg", "sqlalchemy"} <= set(in_image)
    assert in_image.items() <= developing.items()


def test_what_the_function_apps_have_is_what_is_tested() -> None:
    in_apps, developing = pins("functions.txt"), pins("dev.txt")
    assert {"azure-functions", "azure-servicebus", "mssql-python", "sqlalchemy"} <= set(in_apps)
    assert in_apps.items() <= developing.items()
