"""What runbooks name and the environment holds: addresses and credentials of sources (rule R4)."""

from collections.abc import Mapping

from matoolkit.errors import SourceNotConfigured


def required_variable(environ: Mapping[str, str], name: str) -> str:
    """Return a variable's value; one that is missing or empty is an error that names it."""
    value = environ.get(name, "").strip()
    if not value:
        raise SourceNotConfigured(name)
    return value
