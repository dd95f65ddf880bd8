"""What runbooks name and the environment holds: addresses and credentials of sources (rule R4)."""

from collections.abc import Mapping

from matoolkit.errors import SourceNotConfigured


def required_variable(
    environ: Mapping[str, str], name: str, *, needed_for: str = "which the runbook's data_source names"
) -> str:
    """Return a variable's value; one that is missing or empty is an error that names it."""
    value = environ.get(name, "").strip()
    if not value:
        raise SourceNotConfigured(name, needed_for=needed_for)
    return value
