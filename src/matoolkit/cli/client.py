"""What commands say to the admin API and get from it: paths, and lists that come in pages.

`cli/http.py` is what talks to it. Only a command that asks something imports it, because HTTP takes its time to import.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlsplit

from matoolkit.errors import UnreadableAnswer

MOST_ON_A_PAGE = 1000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Pages:
    """A list that comes in pages; the first page says how long it is, if the server counts it."""

    def __init__(self, page: Callable[..., dict[str, Any]], most: int | None, address: str) -> None:
        self._page = page
        self._most = most
        self._address = address
        self.total: int | None = None
        self.of: int | None = None
        self.has_more = False

    @property
    def is_long(self) -> bool:
        """Whether it may take more than one page."""
        return self._most is None or self._most > MOST_ON_A_PAGE

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Ask for page after page."""
        cursor: str | None = None
        left = self._most
        while left is None or left > 0:
            page = self._page(limit=MOST_ON_A_PAGE if left is None else min(MOST_ON_A_PAGE, left), cursor=cursor)
            self.total, self.of = _count(page.get("total")), _count(page.get("of"))
            found, following = page["items"], page.get("next")
            yield from found[:left]
            left = None if left is None else left - len(found)
            self.has_more = isinstance(following, str) and bool(found)
            if not self.has_more:
                return
            if following == cursor:
                raise UnreadableAnswer(self._address, "its pages repeat themselves")
            cursor = following


def path_of(*parts: str | int) -> str:
    """Return a path below `/api`, whatever letters a name has."""
    return "/api/" + "/".join(_part(str(part)) for part in parts)


def _part(text: str) -> str:
    quoted = quote(text, safe="")
    # A name of dots alone would mean a parent path.
    return quoted.replace(".", "%2E") if text.strip(".") == "" else quoted


def is_safe(address: str) -> bool:
    """Tell whether the way to an address is safe: HTTPS, or this machine."""
    return is_here(address) or address.startswith("https://")


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def is_here(address: str) -> bool:
    """Tell whether an address is on this machine."""
    return urlsplit(address).hostname in _LOOPBACK
