"""What can be watched: how it is seen, and which parts of a page show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matoolkit.web.serving import Site


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that a page shows and that changes while people look at it.

    `name` is its address below /live. Each part is a template; a page includes it, and watchers get it again whenever
    it reads differently. `look` returns what the templates show, for everybody alike.
    """

    name: str
    parts: Mapping[str, str]
    look: Callable[[], Mapping[str, Any]]


# Finds the topic of a kind by its key, such as the number of a batch.
TopicOf = Callable[[Site, str], Topic]
