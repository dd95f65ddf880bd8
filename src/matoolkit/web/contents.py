"""Contents from elsewhere, such as messages, as text of many lines that can be read and is not too long."""

from dataclasses import dataclass

import orjson

from matoolkit.visible import visible

_LONGEST = 12_000


@dataclass(frozen=True, slots=True)
class Content:
    """A text with control characters written out, and whether more of it was left out."""

    text: str
    is_cut: bool


def content_of(text: str, longest: int = _LONGEST) -> Content:
    """Lay JSON out over lines, and cut what is too long."""
    try:
        laid_out = orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        laid_out = text
    return Content(visible(laid_out[:longest], keep="\n"), len(laid_out) > longest)
