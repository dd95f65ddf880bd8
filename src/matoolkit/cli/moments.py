"""Times that people write."""

from datetime import UTC, datetime

import typer

_LENGTH_OF_A_DATE = len("2026-11-30")


def given_moment(text: str) -> str:
    """Read a date, or a time with its zone; a date begins at midnight UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or (found.tzinfo is None and len(text) > _LENGTH_OF_A_DATE):
        raise typer.BadParameter(f"'{text}' is neither a date such as 2026-11-30 nor a time with its zone")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
