"""Which columns of a runbook's rows are secret, for all who look at rows (rule W8)."""

from typing import TypeAlias

from matoolkit.domain.secrecy import known_secrets
from matoolkit.errors import InvalidRunbook
from matoolkit.runbook.parse import parse_runbook
from matoolkit.runbook.secrecy import SecretParameters, secrets_of
from matoolkit.store import Transaction
from matoolkit.store.catalogue import known_functions
from matoolkit.store.runbooks import content_hashes, runbooks_by_id

_MOST_KEPT = 4096

# The key is a document, which never changes, and the secrets of the known functions, which rarely change.
_Key: TypeAlias = tuple[str, frozenset[tuple[str, frozenset[str]]]]
_found_before: dict[_Key, frozenset[str]] = {}


def secret_columns(tx: Transaction, runbook_name: str) -> frozenset[str]:
    """Return the folded names of the variables that any version of a runbook passes to a secret parameter.

    A column that is secret in one version is secret in all: they may read the same rows.
    """
    known = known_secrets((row.function_name, row.parameters_json) for row in known_functions(tx))
    functions = frozenset(known.items())
    hashes = content_hashes(tx, runbook_name)
    found = {digest: _found_before.get((digest, functions)) for digest in hashes.values()}
    if unread := [number for number, digest in hashes.items() if found[digest] is None]:
        if len(_found_before) >= _MOST_KEPT:
            _found_before.clear()
        for row in runbooks_by_id(tx, unread):
            found[row.content_hash] = _found_before[row.content_hash, functions] = _secret_in(row.yaml_content, known)
    return frozenset().union(*filter(None, found.values()))


def _secret_in(content: str, known: SecretParameters) -> frozenset[str]:
    try:
        return secrets_of(parse_runbook(content), known).variables
    except InvalidRunbook:
        # A document that today's rules refuse does not run, and must not block reading the others.
        return frozenset()
