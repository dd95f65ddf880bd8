""" "Did you mean" hints, for a limited number of mistakes."""

from collections.abc import Iterable

from matoolkit.errors import did_you_mean

_MOST = 100


class Suggestions:
    """Looks for the nearest known word; a document full of mistakes gets no more than a hundred such hints."""

    def __init__(self) -> None:
        self._left = _MOST

    def hint(self, word: str, known: Iterable[str]) -> str | None:
        """Phrase the nearest known word as a hint, if there is one."""
        if not self._left:
            return None
        self._left -= 1
        return did_you_mean(word, known)
