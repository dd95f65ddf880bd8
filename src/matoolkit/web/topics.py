"""What can be watched: how it is seen, and which parts of a page show it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from matoolkit.web.serving import Site


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that a page shows and that changes while people look at it.

    `name` is its address below /live. Each part is a template; a page includes it, and watchers get it again whenever
    it reads differently. `look` returns what the templates show, for everybody alike. A signal is a short text for a
    script: watchers get it, as an event of its name, whenever it is another one.
    """

    name: str
    parts: Mapping[str, str]
    look: Callable[[], Mapping[str, Any]]
    signals: Mapping[str, Callable[[], str]] = field(default_factory=dict)


# Finds the topic of a kind by its key, such as the number of a batch.
TopicOf = Callable[[Site, str], Topic]
