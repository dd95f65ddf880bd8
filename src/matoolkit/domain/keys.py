"""How keys of members and names of runbooks are compared (rules T3 and R2).

`Anna@Contoso.com ` and `anna@contoso.com` are one member. The first spelling is kept for people;
what is compared is the folded form, the same on every database.
"""

from unicodedata import normalize

from matoolkit.domain.texts import is_storable, utf16_length

MAX_KEY_LENGTH = 400  # in UTF-16, also in the folded form; an index of every supported database holds it


def folded(key: str) -> str:
    """Return the form of a key that is equal for all its spellings."""
    return normalize("NFC", key.strip().casefold())


def is_usable_key(key: str) -> bool:
    """Tell whether a key can be stored as it is: not empty, not too long, without NUL or half a character."""
    if not is_storable(key):
        return False
    return 0 < utf16_length(folded(key)) <= MAX_KEY_LENGTH and utf16_length(key.strip()) <= MAX_KEY_LENGTH
