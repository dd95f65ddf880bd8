"""How keys of members and names of runbooks are compared (rules T3 and R2).

`Anna@Contoso.com ` and `anna@contoso.com` are one member. The first spelling is kept for people;
what is compared is the folded form, the same on every database.
"""

from unicodedata import normalize

MAX_KEY_LENGTH = 400  # in the folded form; an index of every supported database holds it


def folded(key: str) -> str:
    """Return the form of a key that is equal for all its spellings."""
    return normalize("NFC", key.strip().casefold())


def is_usable_key(key: str) -> bool:
    """Tell whether a key can be stored: not empty, not too long, without NUL."""
    return 0 < len(folded(key)) <= MAX_KEY_LENGTH and len(key.strip()) <= MAX_KEY_LENGTH and "\0" not in key
