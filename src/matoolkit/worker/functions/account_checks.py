"""Whether an account's attribute is as expected, for steps that wait until it is."""

import re
from typing import Any

from matoolkit.worker.clients.graph import GraphClient
from matoolkit.worker.clients.identifiers import user_key
from matoolkit.worker.context import Context
from matoolkit.worker.failures import InvalidParameters
from matoolkit.worker.functions.comparison import check_expectation, is_as_expected, value_of
from matoolkit.worker.functions.needs import READ_USERS
from matoolkit.worker.registry import function

_FUNCTION = "Test-EntraAttributeMatch"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*([./][A-Za-z][A-Za-z0-9_]*)?")


@function(_FUNCTION, needs=(READ_USERS,))
def check_entra_attribute(
    context: Context, user_id: str, attribute_name: str, expected_value: Any, is_multi_value: bool = False
) -> dict[str, Any]:
    """Say whether an attribute of a user is as expected; a user who is not there yet is not."""
    key = user_key(user_id, "UserId")
    if not _NAME.fullmatch(attribute_name.strip()):
        raise InvalidParameters(_FUNCTION, ["AttributeName is not the name of an attribute"])
    check_expectation(_FUNCTION, expected_value, is_multi_value=is_multi_value)
    outer, _, inner = attribute_name.strip().replace("/", ".").partition(".")
    graph: GraphClient = context.graph
    found = graph.find_user(key, ("id", outer))
    current = None if found is None else _dug_out(found, outer, inner)
    is_match = found is not None and is_as_expected(current, expected_value, is_multi_value=is_multi_value)
    data = {
        "Match": is_match,
        "AttributeName": attribute_name,
        "CurrentValue": current,
        "ExpectedValue": expected_value,
        "UserFound": found is not None,
    }
    return {"complete": is_match, "data": data}


def _dug_out(user: dict[str, Any], outer: str, inner: str) -> Any:
    value = value_of(user, outer)
    return value_of(value, inner) if inner and isinstance(value, dict) else value
