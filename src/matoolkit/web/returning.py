"""Where somebody goes after signing in: only ever a page of ours, whatever an address asks for."""

import re
from urllib.parse import unquote

HOME = "/"
# Longer addresses would not fit into a cookie beside what else it holds.
_LONGEST = 1000
_MOST_LAYERS = 4
# Browsers read `\` like `/`, and leave out tabs and line ends, so `/\t/evil.example` is another site.
_PLACE = re.compile(r"/[^\\\x00-\x20\x7f-\x9f]*")
_OURS_ALONE = re.compile(r"/sign(in|out|ed-out)(?![\w-])")


def place_here(wanted: str) -> str:
    """Return an address if it is one of ours, however it is quoted, else that of the first page."""
    if len(wanted) > _LONGEST or not _PLACE.fullmatch(wanted) or _OURS_ALONE.match(wanted):
        return HOME
    read = wanted
    for _ in range(_MOST_LAYERS):
        before, read = read, unquote(read)
        if read.startswith(("//", "/\\")):
            return HOME
        if read == before:
            return wanted
    return HOME
