"""Members by name, the first of them: they are texts from elsewhere."""

from collections.abc import Sequence

from markupsafe import Markup

from matoolkit.web.saying import shown
from matoolkit.words import counted

_MOST_NAMED = 5


def named(keys: Sequence[str]) -> Markup:
    """Count members and name the first of them."""
    more = f" and {len(keys) - _MOST_NAMED:,} more" if len(keys) > _MOST_NAMED else ""
    names = Markup(", ").join(shown(key) for key in keys[:_MOST_NAMED])
    return Markup("<b>{}</b> ({}{})").format(counted(len(keys), "member"), names, more)
